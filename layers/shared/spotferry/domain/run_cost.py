"""What a whole run costs on each candidate: what candidates are compared by.

The cost of a run is `(price + disk) * hours + transfer`. With the objective `price`, hours is how long the work takes
and transfer is one copy of the inputs: without inputs the order is that of the prices of an hour. With `expected_cost`:

    hours = (work + start) / (1 - rate * (start + lost))
    transfer = one copy * (1 + rate * hours)

`rate` is the pool's interruptions an hour (`interruption_rates`), `start` what a machine is paid for before the work
goes on (boot, set-up, copy of the inputs), `lost` the work since the last checkpoint. Each hour of machine time brings
`rate` interruptions, each of which costs `start + lost` more hours: solving for the hours gives the formula.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from spotferry.domain.bitsets import members, union
from spotferry.domain.interruption_rates import CLASS_SOURCE, OWN_SOURCE, PoolHistory, Rate, class_rate, pool_rate
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
        source: where the rate of interruptions is from; "" where nobody asked.
    """

    zones: int
    hours: Decimal
    transfer_usd: Decimal = _NOTHING
    interruptions: Decimal = _NOTHING
    source: str = ""

    def usd(self, usd_hour: Decimal) -> Decimal:
        """The run, at so much an hour."""
        return usd_hour * self.hours + self.transfer_usd

    def run(self, candidate: Candidate) -> RunCost:
        """The run on a candidate of these zones."""
        return RunCost(
            hours=self.hours,
            interruptions=self.interruptions,
            interruptions_source=self.source,
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
        self._asks = limits.objective == "expected_cost"
        self._told_rates = index.told_rates
        self._own = _own_pools(index, limits) if self._asks else {}
        self._by_class: dict[tuple[str, Market, bool, Decimal], Terms] = {}
        self._by_rate: dict[tuple[Decimal, Decimal], tuple[Decimal, Decimal, Decimal]] = {}
        self.levels = [
            Level(usd, zones, self._terms(Rate(_EVERYWHERE, _NOTHING, ""), usd))
            for usd, zones in index.copy_prices(tuple(limits.inputs))
        ]

    def terms(self, number: int, row: TypeRow, level: Level) -> Sequence[Terms]:
        """The terms of a row at a level, with disjoint sets of zones."""
        kind = (row.example.provider, row.market, row.has_gpu, level.copy_usd)
        usual = self._by_class.get(kind)
        if usual is None:
            usual = self._by_class[kind] = self._terms(
                Rate(level.zones.get(row.example.provider, 0), *_of_class(row)), level.copy_usd
            )
        known = self._known(number, row) if self._asks else ()
        return self._corrected(usual, known, level) if known else (usual,)

    def of(self, number: int, row: TypeRow, at: int) -> Terms:
        """The terms of one cell."""
        every = (terms for level in self.levels for terms in self.terms(number, row, level))
        return next(terms for terms in every if terms.zones & row.spots[at])

    def _known(self, number: int, row: TypeRow) -> Sequence[Rate]:
        """The rates of a row where more than its class is known, with disjoint sets of zones."""
        told, own = self._told_rates(number), self._own.get(number, ())
        if not own:
            return told
        untold = Rate(~union(rate.zones for rate in told), *_of_class(row))
        corrected = [
            Rate(zones & prior.zones, pool_rate(prior.per_hour, past), f"{OWN_SOURCE}+{prior.source}")
            for zones, past in own
            for prior in (*told, untold)
        ]
        ours = union(zones for zones, _ in own)
        return [*corrected, *(rate._replace(zones=rate.zones & ~ours) for rate in told)]

    def _corrected(self, usual: Terms, known: Sequence[Rate], level: Level) -> Sequence[Terms]:
        """The usual terms but where more is known."""
        here = [rate._replace(zones=rate.zones & usual.zones) for rate in known]
        left = usual.zones & ~union(rate.zones for rate in here)
        return [*(self._terms(rate, level.copy_usd) for rate in here if rate.zones), replace(usual, zones=left)]

    def _terms(self, rate: Rate, copy_usd: Decimal) -> Terms:
        if not self._asks:
            return Terms(rate.zones, self._limits.hours, copy_usd)
        key = (rate.per_hour, copy_usd)
        if key not in self._by_rate:
            overhead = min(rate.per_hour * (self._start + LOST_HOURS), _MOST_OVERHEAD)
            hours = (self._limits.hours + self._start) / (1 - overhead)
            self._by_rate[key] = (hours, copy_usd * (1 + rate.per_hour * hours), rate.per_hour * hours)
        return Terms(rate.zones, *self._by_rate[key], rate.source)


def _of_class(row: TypeRow) -> tuple[Decimal, str]:
    """The rate of the row's class, and its source."""
    return class_rate(row.example.provider, row.market, has_gpu=row.has_gpu), CLASS_SOURCE


def _own_pools(index: OfferIndex, limits: Limits) -> Mapping[int, Sequence[tuple[int, PoolHistory]]]:
    """What happened in each pool that we had machines of: sets of zones by row, disjoint."""
    found: dict[int, list[tuple[int, PoolHistory]]] = {}
    for block in index.by_block.keys() & limits.history.keys():
        provider, _ = block
        for pool, past in limits.history[block].items():
            region, zone, kind = pool.split("/", 2)
            zones = index.zones_like(provider, region, zone)
            for number in members(index.by_type.get(kind, 0) & index.by_block[block]) if zones else ():
                found.setdefault(number, []).append((zones, past))
    return found
