"""All offers, arranged so that a choice is a handful of set operations.

Clouds have far fewer machine types than offers. A row is one type of one cloud in one market, its cells are the zones
that offer it. What depends on the type alone is a set of rows, what depends on the place alone is a set of zones, and
only prices are looked at cell by cell, cheapest first.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType

from spotferry.domain.bitsets import AtLeast, Weights, members, sets_by_key, union
from spotferry.domain.costs import disk_usd_hour
from spotferry.domain.interruption_rates import Rate, Told
from spotferry.domain.offer_words import gpu_words, part_matches
from spotferry.domain.transfer import transfer_usd
from spotferry.types.instance import Candidate, Market, Offer
from spotferry.types.job_file import Input

NO_SPOT_MARKET = frozenset({"paperspace"})
"""Clouds without any spot market.

A job that asks for spot machines may have theirs at the list price: nobody takes them back, and there is no cheaper way
to buy them.
"""

_MARKETS: tuple[Market, Market] = ("spot", "on_demand")
_STRIDE = 16
_FEW = 8
_NOWHERE = Decimal("Infinity")

ShapeKey = tuple[str, str, str, float, float, str, str, int, int]


class ZoneTable:
    """The zones of one cloud, numbered; a zone whose disks differ in price from offer to offer has several numbers."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, Decimal], int] = {}

    def number(self, offer: Offer) -> int:
        """The number of the offer's zone; given out at first sight."""
        return self._numbers.setdefault((offer.region, offer.zone, offer.disk_usd_gib_month), len(self._numbers))

    def close(self) -> None:
        """Arrange what was numbered."""
        self.places = [(region, zone) for region, zone, _ in self._numbers]
        self.by_region = sets_by_key(region for region, _ in self.places)
        self.by_disk_price = sets_by_key(price for _, _, price in self._numbers)
        self.everywhere = (1 << len(self.places)) - 1


class TypeRow:
    """One machine type of one cloud in one market: its priced cells, cheapest first.

    Attributes:
        example: any of its offers; they differ in place and price only.
        size: how many offers it has, with or without a price.
        prices: of the cells with a price, ascending; offers and zone sets (of one) stand beside them.
        zones: where it has a price.
        low: its lowest price.
        low_disk, high_disk: lowest and highest price of a GiB of disk for a month among its cells.
    """

    __slots__ = (
        "_at",
        "_prefixes",
        "example",
        "high_disk",
        "low",
        "low_disk",
        "market",
        "offers",
        "prices",
        "size",
        "spots",
        "zones",
    )

    def __init__(self, market: Market, cells: Mapping[int, Offer]) -> None:
        self.market = market
        self.size = len(cells)
        self.example = next(iter(cells.values()))
        priced = sorted(
            ((price, zone) for zone, offer in cells.items() if (price := price_in(offer, market)) is not None),
        )
        self.prices = [price for price, _ in priced]
        self.offers = [cells[zone] for _, zone in priced]
        self.spots = [1 << zone for _, zone in priced]
        self._at = {zone: at for at, (_, zone) in enumerate(priced)}
        self._prefixes = [0]
        for start in range(0, len(priced), _STRIDE):
            self._prefixes.append(self._prefixes[-1] | sum(self.spots[start : start + _STRIDE]))
        self.zones = self._prefixes[-1]
        self.low = self.prices[0] if priced else _NOWHERE
        self.low_disk = min((offer.disk_usd_gib_month for offer in self.offers), default=Decimal(0))
        self.high_disk = max((offer.disk_usd_gib_month for offer in self.offers), default=Decimal(0))

    @property
    def block(self) -> tuple[str, Market]:
        """Its cloud and market."""
        return self.example.provider, self.market

    @property
    def has_gpu(self) -> bool:
        """The machine has a GPU."""
        return self.example.gpu_count > 0

    def cells_in(self, zones: int) -> Iterator[int]:
        """Which of its cells are in these zones, cheapest first."""
        here = self.zones & zones
        if here.bit_count() <= _FEW:
            return iter(sorted(self._at[zone] for zone in members(here)))
        return (at for at, spot in enumerate(self.spots) if spot & here)

    def within(self, cap: Decimal, disk_gb: int, by_disk_price: Mapping[Decimal, int]) -> int:
        """The zones in which machine and disk cost `cap` an hour at most."""
        sure = bisect_right(self.prices, cap - disk_usd_hour(self.high_disk, disk_gb))
        edge = bisect_right(self.prices, cap - disk_usd_hour(self.low_disk, disk_gb))
        zones = self._cheapest(sure)
        if edge - sure <= 2 * _STRIDE:
            for at in range(sure, edge):
                if self.prices[at] + disk_usd_hour(self.offers[at].disk_usd_gib_month, disk_gb) <= cap:
                    zones |= self.spots[at]
            return zones
        for price, same_disk in by_disk_price.items():
            zones |= same_disk & self._cheapest(bisect_right(self.prices, cap - disk_usd_hour(price, disk_gb)))
        return zones

    def _cheapest(self, count: int) -> int:
        whole, rest = divmod(count, _STRIDE)
        return self._prefixes[whole] | sum(self.spots[count - rest : count])


class OfferIndex:
    """The offers of one catalogue; built once, then only read.

    Args:
        offers: in any order; one place may offer a type more than once.
        no_spot_market: clouds whose machines are bought at the list price only.
        told: how often clouds say that they take machines back; looked at by questions that ask for it.
    """

    def __init__(
        self,
        offers: Iterable[Offer],
        no_spot_market: frozenset[str] = NO_SPOT_MARKET,
        told: Told = MappingProxyType({}),
    ) -> None:
        self.offers = tuple(offers)
        self.told = told
        self.no_spot_market = no_spot_market
        self.zones: dict[str, ZoneTable] = {}
        shapes = _by_shape(self.offers, self.zones)
        rows = [TypeRow(market, cells) for cells in shapes for market in _MARKETS]
        self.rows = sorted(rows, key=lambda row: row.low)
        for table in self.zones.values():
            table.close()
        self.considered = len(_MARKETS) * len(self.offers)
        self._index_types()
        # Bound to the instance, so that they end with it; bans and regions are the same from one question to the next.
        self.zones_like = lru_cache(maxsize=1024)(self._zones_like)
        self.types_like = lru_cache(maxsize=1024)(self._types_like)
        self._counts = lru_cache(maxsize=64)(self._count)
        self.copy_prices = lru_cache(maxsize=64)(self._copy_prices)
        self.told_rates = lru_cache(maxsize=len(self.rows))(self._told_rates)
        self.sizes = Weights([row.size for row in self.rows])
        self.priced = Weights([row.zones.bit_count() for row in self.rows])

    def _index_types(self) -> None:
        examples = [row.example for row in self.rows]
        self.everything = (1 << len(self.rows)) - 1
        self.lows = [row.low for row in self.rows]
        self.low_disk = min((row.low_disk for row in self.rows if row.prices), default=Decimal(0))
        self.machines = sets_by_key(is_machine(offer) for offer in examples).get(True, 0)
        self.with_gpu = sets_by_key(row.has_gpu for row in self.rows).get(True, 0)
        self.by_block = sets_by_key(row.block for row in self.rows)
        self.by_provider = sets_by_key(offer.provider for offer in examples)
        self.by_market = sets_by_key(row.market for row in self.rows)
        self.by_arch = sets_by_key(offer.arch for offer in examples)
        self.by_type = sets_by_key(offer.instance_type for offer in examples)
        self.by_gpu = _by_gpu_word(examples)
        self.vcpus = AtLeast([offer.vcpus for offer in examples])
        self.memory_gib = AtLeast([offer.memory_gib for offer in examples])
        self.gpu_count = AtLeast([offer.gpu_count for offer in examples])
        self.vram_mib = AtLeast([offer.vram_mib for offer in examples])

    def counts(self, zones: Mapping[str, int]) -> Weights:
        """How many priced cells each row has in these zones; remembered, as most questions name the same regions."""
        return self._counts(tuple(zones.items()))

    def _count(self, zones: tuple[tuple[str, int], ...]) -> Weights:
        allowed = dict(zones)
        return Weights([(row.zones & allowed.get(row.example.provider, 0)).bit_count() for row in self.rows])

    def _copy_prices(self, inputs: tuple[Input, ...]) -> Sequence[tuple[Decimal, Mapping[str, int]]]:
        """Each price that one copy of these inputs costs, ascending, with the zones of each cloud where it does."""
        found: dict[Decimal, dict[str, int]] = {}
        for provider, table in self.zones.items():
            for region, zones in table.by_region.items():
                here = found.setdefault(transfer_usd(inputs, provider, region), {})
                here[provider] = here.get(provider, 0) | zones
        return sorted(found.items(), key=itemgetter(0))

    def _told_rates(self, number: int) -> Sequence[Rate]:
        """What is told of a row, with disjoint sets of its zones; what is told of a zone outdoes its region's."""
        row = self.rows[number]
        told = self.told.get((row.example.provider, row.example.instance_type.casefold()), ())
        found: dict[tuple[Decimal, str], int] = {}
        left = row.zones if row.market == "spot" else 0
        for rate in sorted(told, key=lambda rate: not rate.zone):
            zones = left & self.zones_like(row.example.provider, rate.region, rate.zone or "*")
            left &= ~zones
            found[rate.per_hour, rate.source] = found.get((rate.per_hour, rate.source), 0) | zones
        return [Rate(zones, *key) for key, zones in found.items() if zones]

    def _zones_like(self, provider: str, region: str, zone: str) -> int:
        """The zones of a cloud that these two parts of a pattern cover."""
        return union(
            1 << number
            for number, place in enumerate(self.zones[provider].places)
            if part_matches(region, place[0]) and part_matches(zone, place[1])
        )

    def _types_like(self, pattern: str) -> int:
        """The rows whose type this part of a pattern covers."""
        return union(rows for name, rows in self.by_type.items() if part_matches(pattern, name))

    def candidate(self, row: TypeRow, at: int, disk_gb: int) -> Candidate:
        """One cell as what the broker would buy."""
        offer = row.offers[at]
        return Candidate(
            offer=offer,
            market=row.market,
            price_usd_hour=row.prices[at],
            disk_gb=disk_gb,
            disk_usd_hour=disk_usd_hour(offer.disk_usd_gib_month, disk_gb),
        )


def is_machine(offer: Offer) -> bool:
    """A machine has a type, processors and memory; an accelerator that is sold alone does not."""
    return bool(offer.instance_type) and offer.vcpus > 0 and offer.memory_gib > 0


def price_in(offer: Offer, market: Market) -> Decimal | None:
    """The offer's price in a market; None where it has none or one that cannot be true."""
    price = offer.spot_usd_hour if market == "spot" else offer.on_demand_usd_hour
    return price if price is not None and price > 0 else None


def _by_shape(offers: Iterable[Offer], zones: dict[str, ZoneTable]) -> list[dict[int, Offer]]:
    shapes: dict[tuple[ShapeKey, int], dict[int, Offer]] = {}
    for offer in offers:
        zone = zones.setdefault(offer.provider, ZoneTable()).number(offer)
        key = _shape(offer)
        layer = 0
        while zone in (cells := shapes.setdefault((key, layer), {})):
            layer += 1
        cells[zone] = offer
    return list(shapes.values())


def _shape(offer: Offer) -> ShapeKey:
    return (
        offer.provider,
        offer.instance_type,
        offer.arch,
        offer.vcpus,
        offer.memory_gib,
        offer.gpu_name,
        offer.gpu_maker,
        offer.gpu_count,
        offer.vram_mib,
    )


def _by_gpu_word(examples: Iterable[Offer]) -> dict[str, int]:
    found: dict[str, int] = {}
    by_name = sets_by_key((offer.gpu_name, offer.gpu_maker) for offer in examples)
    for (name, maker), rows in by_name.items():
        for word in gpu_words(name, maker):
            found[word] = found.get(word, 0) | rows
    return found
