"""Price lists, as the public catalogues of this field publish them, become offers."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from spotferry.catalog.accelerators import Gpus, gpus_of
from spotferry.catalog.architectures import arch_of
from spotferry.catalog.disk_prices import disk_usd_gib_month
from spotferry.catalog.gcp_accelerators import Accelerator, Host, comes_with_accelerators, joined
from spotferry.catalog.price_list import Row, rows_of
from spotferry.types.instance import Offer

ACCELERATOR_ALONE = "accelerator without a machine"
NOT_A_MACHINE = "no processors or no memory"
OTHER_ARCH = "architecture other than x86_64 and arm64"
HOST_ALONE = "host priced without its accelerators"
NO_PRICE = "no price in any market"
NO_REGION = "no region"
MALFORMED = "malformed row or number"
DUPLICATE = "duplicate of another row"

_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}
_MIB_PER_GIB = 1024
_ABSURD = Decimal(10_000_000)

_Identity = tuple[str, str, str, str, str, int]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What came of a list's rows: each became offers (`taken`) or was left out, by reason.

    Attributes:
        rows: rows read.
        taken: rows that became offers, or a part of one: an accelerator and the machine that has it.
        offers: offers made of them; a row for several regions makes several, as does an accelerator that several
            machines take.
        left_out: rows left out, by reason.
    """

    rows: int
    taken: int
    offers: int
    left_out: Mapping[str, int]


class _LeftOut(Exception):
    """The row becomes no offer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def import_price_list(
    data: bytes,
    provider: str,
    read_at: datetime,
    source: str = "price list",
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[list[Offer], ImportReport]:
    """Take what can be taken of a CSV list; what cannot is counted by reason.

    Args:
        data: the file, as it is.
        provider: whose prices they are; the list does not say.
        read_at: when the prices were read.
        source: name for messages.
        progress: told the number of rows done, every thousand.

    Raises:
        InvalidInput: it is not a price list at all.
    """
    found = _Found(provider, read_at)
    number = 0
    for number, row in enumerate(rows_of(data, source), start=1):
        try:
            found.take(number, row)
        except _LeftOut as outcome:
            found.left_out[outcome.reason] += 1
        if number % 1000 == 0:
            progress(number)
    found.join()
    left_out = found.left_out
    report = ImportReport(number, number - left_out.total(), len(found.offers), dict(left_out.most_common()))
    return list(found.offers.values()), report


@dataclass(slots=True)
class _Found:
    """What was found in a list so far; of GCP's also the rows that are a part of a machine only."""

    provider: str
    read_at: datetime
    offers: dict[_Identity, Offer] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    accelerators: list[Accelerator] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=list)

    def take(self, number: int, row: Row | None) -> None:
        """Take a row, or raise the reason why not."""
        if row is None:
            raise _LeftOut(MALFORMED)
        if self.provider == "gcp" and not row.get("type") and row.get("accelerator"):
            self.accelerators += _accelerators(number, row)
            return
        made = list(_offers(row, self.provider, self.read_at))
        if self.provider == "gcp" and comes_with_accelerators(row.get("type", "")) and not row.get("accelerator"):
            self.hosts += [Host(number, offer) for offer in made]
            return
        before = len(self.offers)
        for offer in made:
            self.offers.setdefault(_identity(offer), offer)
        if len(self.offers) == before:
            raise _LeftOut(DUPLICATE)

    def join(self) -> None:
        """Make machines of the parts; a part that fits none is left out."""
        used: set[int] = set()
        for offer, rows in list(joined(self.accelerators, self.offers.values(), self.hosts)):
            used |= rows
            self.offers.setdefault(_identity(offer), offer)
        for reason, parts in ((ACCELERATOR_ALONE, self.accelerators), (HOST_ALONE, self.hosts)):
            if unused := len({part.row for part in parts} - used):
                self.left_out[reason] += unused


def _identity(offer: Offer) -> _Identity:
    return offer.region, offer.zone, offer.instance_type, offer.arch, offer.gpu_name, offer.gpu_count


def _accelerators(number: int, row: Row) -> Iterator[Accelerator]:
    count, zone = int(_size(row, "accelerator_count")), row.get("zone", "")
    spot, on_demand = _prices(row)
    for region in _regions(row):
        yield Accelerator(number, row["accelerator"], count, region, zone, spot, on_demand)


def _offers(row: Row, provider: str, read_at: datetime) -> Iterator[Offer]:
    instance_type, vcpus, memory = row.get("type", ""), _size(row, "vcpus"), _size(row, "memory_gib")
    if not instance_type:
        raise _LeftOut(ACCELERATOR_ALONE if row.get("accelerator") else NOT_A_MACHINE)
    if not vcpus or not memory:
        raise _LeftOut(NOT_A_MACHINE)
    spot, on_demand = _prices(row)
    gpus, arch = _gpus(row, instance_type), _arch(row, provider, instance_type)
    for region in _regions(row):
        yield Offer(
            provider=provider,
            region=region,
            zone=row.get("zone", ""),
            instance_type=instance_type,
            arch=arch,
            vcpus=vcpus,
            memory_gib=memory,
            gpu_name=gpus.name,
            gpu_maker=gpus.maker,
            gpu_count=gpus.count,
            vram_mib=gpus.vram_mib,
            spot_usd_hour=spot,
            on_demand_usd_hour=on_demand,
            disk_usd_gib_month=disk_usd_gib_month(provider, region),
            read_at=read_at,
        )


def _prices(row: Row) -> tuple[Decimal | None, Decimal | None]:
    spot, on_demand = _price(row, "spot_price"), _price(row, "price")
    if spot is None and on_demand is None:
        raise _LeftOut(NO_PRICE)
    return spot, on_demand


def _regions(row: Row) -> list[str]:
    regions = [name.strip() for name in (row.get("region") or row.get("regions", "")).split(",")]
    named = [name for name in regions if name]
    if not named:
        raise _LeftOut(NO_REGION)
    return named


def _arch(row: Row, provider: str, instance_type: str) -> str:
    said = row.get("arch", "").casefold()
    if not said:
        return arch_of(provider, instance_type)
    if said not in _ARCHITECTURES:
        raise _LeftOut(OTHER_ARCH)
    return _ARCHITECTURES[said]


def _gpus(row: Row, instance_type: str) -> Gpus:
    if vram_gb := _size(row, "vram_gb"):
        return Gpus(instance_type, "NVIDIA", 1, int(vram_gb * _MIB_PER_GIB))
    return gpus_of(row.get("accelerator", ""), _size(row, "accelerator_count"), row.get("gpu_info", ""))


def _size(row: Row, name: str) -> float:
    return float(_number(row.get(name, "")) or 0)


def _price(row: Row, name: str) -> Decimal | None:
    """A price of zero says that nobody knew the price."""
    return _number(row.get(name, "").removeprefix("$").removesuffix("/hr")) or None


@lru_cache(maxsize=65_536)
def _number(text: str) -> Decimal | None:
    if not text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise _LeftOut(MALFORMED) from None
    if not value.is_finite() or not 0 <= value < _ABSURD:
        raise _LeftOut(MALFORMED)
    return value
