"""A specification as sets of rows and zones of an index."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain

from spotferry.domain.bitsets import members, union
from spotferry.domain.costs import disk_usd_hour
from spotferry.domain.cpu_families import cpu_family
from spotferry.domain.offer_index import OfferIndex, TypeRow, ZoneTable
from spotferry.domain.offer_words import gpu_word
from spotferry.domain.plan import Limits
from spotferry.domain.run_cost import Costing
from spotferry.types.instance import Market
from spotferry.types.job_file import UserInstanceSpecs

_MIB_PER_GIB = 1024
_PARTS_OF_A_POOL = 3

Zones = Mapping[str, int]
"""A set of zones for each cloud."""


@dataclass(frozen=True, slots=True)
class Pools:
    """What patterns over pools cover: zones of a whole cloud and market, and zones of single rows."""

    blocks: Mapping[tuple[str, Market], int]
    rows: Mapping[int, int]

    def zones(self, number: int, row: TypeRow) -> int:
        """The zones in which the row is covered."""
        return self.blocks.get(row.block, 0) | self.rows.get(number, 0)

    def touched(self, index: OfferIndex) -> int:
        """The rows that may be covered somewhere."""
        return union(index.by_block[block] for block, zones in self.blocks.items() if zones) | union(
            1 << number for number in self.rows
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """What a specification and its limits mean to one index.

    Attributes:
        where: rows that meet the conditions on where and how to buy, by condition, in order.
        regions: zones that the specification allows; None for all.
        open: zones that were set up; None for all.
        allowed: zones that are both; None for all.
        what: rows that meet the conditions on the machine, by condition, in order.
        cap: most that machine and disk may cost an hour; None for no cap.
        banned, avoided: pools that are left alone.
        disk_gb, gpu_disk_gb: size of the disk of a machine without and with a GPU.
        costing: what whole runs cost.
    """

    where: Mapping[str, int]
    regions: Zones | None
    open: Zones | None
    allowed: Zones | None
    what: Mapping[str, int]
    cap: Decimal | None
    banned: Pools
    avoided: Pools
    disk_gb: int
    gpu_disk_gb: int
    costing: Costing

    def rows(self, index: OfferIndex) -> int:
        """The rows that meet every condition that depends on the type alone."""
        rows = index.machines
        for passing in chain(self.where.values(), self.what.values()):
            rows &= passing
        return rows

    def disk_of(self, row: TypeRow) -> int:
        """Size of the row's disk in GB."""
        return self.gpu_disk_gb if row.has_gpu else self.disk_gb

    def least_disk_usd_hour(self, index: OfferIndex) -> Decimal:
        """No disk costs less: a lower bound for every candidate."""
        return disk_usd_hour(index.low_disk, min(self.disk_gb, self.gpu_disk_gb))

    def zones_allowed(self, row: TypeRow) -> int:
        """The zones that asker and operator allow and in which the row has a price."""
        return row.zones if self.allowed is None else row.zones & self.allowed[row.example.provider]

    def allowed_in(self, zones: Zones) -> Zones:
        """Those of these zones that asker and operator allow."""
        return zones if self.allowed is None else {name: here & self.allowed[name] for name, here in zones.items()}

    def zones_left(self, number: int, row: TypeRow) -> int:
        """The zones in which the row may be bought now, its price apart."""
        return self.zones_allowed(row) & ~(self.banned.zones(number, row) | self.avoided.zones(number, row))


def select(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> Selection:
    """Translate a specification and its limits; a few bisections and look-ups, no look at a price."""
    regions, opened = _regions(index, specs), _open(index, limits)
    disk_gb, gpu_disk_gb = (
        specs.disk_gb or max(limits.default_disk_gb, image) + limits.room_gb
        for image in (limits.image_gb, limits.gpu_image_gb)
    )
    return Selection(
        where={"market": _market(index, specs), "providers": _any_of(index, index.by_provider, specs.providers)},
        regions=regions,
        open=opened,
        allowed=_both(regions, opened),
        what=_machine(index, specs) | {"disk_gb": _disk(index, specs, limits)} | _processor(index, limits),
        cap=specs.max_price_usd_hour or None,
        banned=_banned(index, limits),
        avoided=_pools(index, dict.fromkeys(index.by_block, limits.avoid) if limits.avoid else {}),
        disk_gb=disk_gb,
        gpu_disk_gb=gpu_disk_gb,
        costing=Costing(index, limits),
    )


def _market(index: OfferIndex, specs: UserInstanceSpecs) -> int:
    on_demand = index.by_market.get("on_demand", 0)
    if not specs.spot:
        return on_demand
    spotless = union(index.by_provider.get(name, 0) for name in index.no_spot_market)
    return index.by_market.get("spot", 0) | (on_demand & spotless)


def _any_of(index: OfferIndex, by_name: Mapping[str, int], names: Sequence[str]) -> int:
    return union(by_name.get(name, 0) for name in names) if names else index.everything


def _regions(index: OfferIndex, specs: UserInstanceSpecs) -> Zones | None:
    if not specs.regions:
        return None
    return {name: _zones_of(table, specs.regions) for name, table in index.zones.items()}


def _open(index: OfferIndex, limits: Limits) -> Zones | None:
    if limits.open_regions is None:
        return None
    by_provider: dict[str, list[str]] = {}
    for provider, region in sorted(limits.open_regions):
        by_provider.setdefault(provider, []).append(region)
    return {name: _zones_of(table, by_provider.get(name, ())) for name, table in index.zones.items()}


def _both(first: Zones | None, second: Zones | None) -> Zones | None:
    if first is None or second is None:
        return second if first is None else first
    return {name: zones & second[name] for name, zones in first.items()}


def _zones_of(table: ZoneTable, regions: Iterable[str]) -> int:
    return union(table.by_region.get(region, 0) for region in regions)


def _machine(index: OfferIndex, specs: UserInstanceSpecs) -> dict[str, int]:
    return {
        "arch": index.by_arch.get(specs.arch, 0),
        "instance_type": _any_of(index, index.by_type, (specs.instance_type,) if specs.instance_type else ()),
        "cpu_cores": index.vcpus(specs.cpu_cores),
        "memory_gb": index.memory_gib(specs.memory_gb),
        "gpu": index.by_gpu.get(gpu_word(specs.gpu), 0) if specs.gpu.strip() else index.everything,
        "gpu_count": index.gpu_count(specs.gpu_count),
        "vram_gb": index.vram_mib(specs.vram_gb * _MIB_PER_GIB),
    }


def _processor(index: OfferIndex, limits: Limits) -> dict[str, int]:
    """The rows of the processors that the checkpoint needs; no condition where it needs none."""
    if limits.cpu_families is None:
        return {}
    kinds = ((number, row.example) for number, row in enumerate(index.rows))
    fitting = (n for n, o in kinds if (o.provider, cpu_family(o.provider, o.instance_type)) in limits.cpu_families)
    return {"checkpoint_processor": union(1 << number for number in fitting)}


def _disk(index: OfferIndex, specs: UserInstanceSpecs, limits: Limits) -> int:
    if not specs.disk_gb:
        return index.everything
    image, gpu_image = (0, 0) if limits.custom_image else (limits.image_gb, limits.gpu_image_gb)
    holds = index.with_gpu if specs.disk_gb >= gpu_image + limits.room_gb else 0
    return holds | (index.everything & ~index.with_gpu if specs.disk_gb >= image + limits.room_gb else 0)


def _banned(index: OfferIndex, limits: Limits) -> Pools:
    return _pools(index, {block: limits.bans[block] for block in index.by_block if limits.bans.get(block)})


def _parts(pattern: str) -> tuple[str, str, str]:
    """Region, zone and type; what has no three parts covers nothing, so that one bad record stops no placement."""
    parts = pattern.split("/")
    return (parts[0], parts[1], parts[2]) if len(parts) == _PARTS_OF_A_POOL else ("", "", "")


def _pools(index: OfferIndex, patterns: Mapping[tuple[str, Market], Sequence[str]]) -> Pools:
    blocks: dict[tuple[str, Market], int] = {}
    rows: dict[int, int] = {}
    for block, wanted in patterns.items():
        for pattern in wanted:
            region, zone, kind = _parts(pattern)
            zones = index.zones_like(block[0], region, zone)
            if kind == "*":
                blocks[block] = blocks.get(block, 0) | zones
            elif zones:
                for number in members(index.types_like(kind) & index.by_block[block]):
                    rows[number] = rows.get(number, 0) | zones
    return Pools(blocks, rows)
