"""What a whole run costs on each candidate: what candidates are compared by.

The cost of a run is `(price + disk) * hours + transfer`. With the objective `price`, hours is how long the work takes
and transfer is one copy of the inputs: without inputs the order is that of the prices of an hour. With `expected_cost`:

    hours = (work + start) / (1 - rate * (start + lost))
    transfer = one copy * (1 + rate * hours)

`rate` is the pool's interruptions an hour, `start` what a machine is paid for before the work goes on (boot, set-up,
copy of the inputs), `lost` the work since the last checkpoint. Each hour of machine time brings `rate` interruptions,
each of which costs `start + lost` more hours: solving for the hours gives the formula.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from spotferry.domain.bitsets import members
from spotferry.domain.interruption_rates import class_rate, pool_rate
from spotferry.domain.offer_index import OfferIndex, TypeRow
from spotferry.domain.plan import Limits, RunCost
from spotferry.types.instance import Candidate, Market

BOOT_HOURS = Decimal(5) / 60
"""Boot and set-up of a machine."""
LOST_HOURS = Decimal(5) / 60
"""Work that an interruption undoes: most are announced, and then next to nothing; some come without a checkpoint."""
COPY_GB_HOUR = Decimal(360)
"""A tenth of a gigabyte a second: what one stream from a bucket brings."""
_MOST_OVERHEAD = Decimal("0.99")
"""A pool that interrupts faster than machines start still counts as making some headway, so that all compare."""

_NOTHING = Decimal(0)
_EVERYWHERE = -1


@dataclass(frozen=True, slots=True)
class Terms:
    """What a run costs beyond the price of an hour, the same in all these zones.

    Attributes:
        zones: of one cloud.
        hours: machine time of the run.
        transfer_usd: of the run.
        interruptions: in the run.
    """

    zones: int
    hours: Decimal
    transfer_usd: Decimal = _NOTHING
    interruptions: Decimal = _NOTHING

    def usd(self, usd_hour: Decimal) -> Decimal:
        """The run, at so much an hour."""
        return usd_hour * self.hours + self.transfer_usd

    def run(self, candidate: Candidate) -> RunCost:
        """The run on a candidate of these zones."""
        return RunCost(
            hours=self.hours,
            interruptions=self.interruptions,
            transfer_usd=self.transfer_usd,
            usd=self.usd(candidate.total_usd_hour),
        )


@dataclass(frozen=True, slots=True)
class Level:
    """All zones, of all clouds, to which one copy of the inputs costs the same.

    Attributes:
        copy_usd: what it costs.
        zones: by cloud.
        least: no candidate in these zones has better terms.
    """

    copy_usd: Decimal
    zones: Mapping[str, int]
    least: Terms


class Costing:
    """The terms of every candidate of one question.

    Attributes:
        levels: the cheapest to copy to first; together they are all zones.
    """

    def __init__(self, index: OfferIndex, limits: Limits) -> None:
        self._limits = limits
        self._start = BOOT_HOURS + limits.inputs_gb / COPY_GB_HOUR
        self._own = _own_pools(index, limits) if limits.objective == "expected_cost" else {}
        self._by_class: dict[tuple[str, Market, bool, Decimal], Terms] = {}
        self.levels = [
            Level(usd, zones, self._terms(_EVERYWHERE, usd, _NOTHING))
            for usd, zones in index.copy_prices(tuple(limits.inputs))
        ]

    def terms(self, number: int, row: TypeRow, level: Level) -> Sequence[Terms]:
        """The terms of a row at a level, with disjoint sets of zones."""
        kind = (row.example.provider, row.market, row.has_gpu, level.copy_usd)
        usual = self._by_class.get(kind)
        if usual is None:
            rate = class_rate(row.example.provider, row.market, has_gpu=row.has_gpu)
            zones = level.zones.get(row.example.provider, 0)
            usual = self._by_class[kind] = self._terms(zones, level.copy_usd, rate)
        return self._corrected(usual, self._own[number], level) if number in self._own else (usual,)

    def of(self, number: int, row: TypeRow, at: int) -> Terms:
        """The terms of one cell."""
        every = (terms for level in self.levels for terms in self.terms(number, row, level))
        return next(terms for terms in every if terms.zones & row.spots[at])

    def _corrected(self, usual: Terms, own: Sequence[tuple[int, Decimal]], level: Level) -> Sequence[Terms]:
        """The usual terms but where we have machines of our own to go by."""
        known = sum(zones for zones, _ in own)
        corrected = [self._terms(zones & usual.zones, level.copy_usd, rate) for zones, rate in own]
        return [*corrected, replace(usual, zones=usual.zones & ~known)]

    def _terms(self, zones: int, copy_usd: Decimal, rate: Decimal) -> Terms:
        if self._limits.objective == "price":
            return Terms(zones, self._limits.hours, copy_usd)
        overhead = min(rate * (self._start + LOST_HOURS), _MOST_OVERHEAD)
        hours = (self._limits.hours + self._start) / (1 - overhead)
        return Terms(zones, hours, copy_usd * (1 + rate * hours), rate * hours)


def _own_pools(index: OfferIndex, limits: Limits) -> Mapping[int, Sequence[tuple[int, Decimal]]]:
    """The rate of each pool that we had machines of: sets of zones by row, disjoint."""
    found: dict[int, list[tuple[int, Decimal]]] = {}
    for block in index.by_block.keys() & limits.history.keys():
        provider, market = block
        for pool, past in limits.history[block].items():
            region, zone, kind = pool.split("/", 2)
            zones = index.zones_like(provider, region, zone)
            for number in members(index.by_type.get(kind, 0) & index.by_block[block]) if zones else ():
                usual = class_rate(provider, market, has_gpu=index.rows[number].has_gpu)
                found.setdefault(number, []).append((zones, pool_rate(usual, past)))
    return found
