"""The ledger: what attempts cost, and what the same machines cost at list price."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

from spotferry.types.instance import Attempt

HOURS_PER_MONTH = 730
"""The month by which clouds convert disk prices."""
MINIMUM_BILLED = timedelta(seconds=60)
"""Clouds bill a machine by the second, but never less than its first minute."""

_SECONDS_PER_HOUR = Decimal(3600)
_NANO_USD = Decimal("0.000000001")
_MICRO_USD = Decimal("0.000001")


@lru_cache(maxsize=4096)
def disk_usd_hour(usd_gib_month: Decimal, disk_gb: int) -> Decimal:
    """Price of a disk in US dollars an hour, to the billionth of a dollar, so that totals compare exactly."""
    return (usd_gib_month * disk_gb / HOURS_PER_MONTH).quantize(_NANO_USD, ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Cost:
    """What machine time cost.

    Attributes:
        usd: machine and disk, at the prices read at launch; not rounded.
        on_demand_usd: the same time at the list price read at launch; at the price paid where that was unknown.
        seconds: billed time.
    """

    usd: Decimal = Decimal(0)
    on_demand_usd: Decimal = Decimal(0)
    seconds: Decimal = Decimal(0)

    def __add__(self, other: "Cost") -> "Cost":
        """Both together."""
        return Cost(self.usd + other.usd, self.on_demand_usd + other.on_demand_usd, self.seconds + other.seconds)

    @property
    def saved_usd(self) -> Decimal:
        """What the list price would have cost more; negative where spot was dearer."""
        return self.on_demand_usd - self.usd

    def rounded(self) -> "Cost":
        """As it is shown: dollars to the sixth place, time to the millisecond."""
        return Cost(
            self.usd.quantize(_MICRO_USD, ROUND_HALF_UP),
            self.on_demand_usd.quantize(_MICRO_USD, ROUND_HALF_UP),
            self.seconds.quantize(Decimal("0.001"), ROUND_HALF_UP),
        )


def billed_time(attempt: Attempt, now: datetime) -> timedelta:
    """The time that the cloud bills: launch to end, or to now; zero for a machine that never came to be."""
    if attempt.launched_at is None:
        return timedelta(0)
    return max((attempt.gone_at or now) - attempt.launched_at, MINIMUM_BILLED)


def attempt_cost(attempt: Attempt, now: datetime) -> Cost:
    """What one attempt has cost up to now, by the prices stored with it: a later catalogue changes nothing."""
    seconds = Decimal(billed_time(attempt, now) // timedelta(microseconds=1)) / 1_000_000
    hours = seconds / _SECONDS_PER_HOUR
    list_price = attempt.price if attempt.on_demand_usd_hour is None else attempt.on_demand_usd_hour
    return Cost(
        usd=(attempt.price + attempt.disk_usd_hour) * hours,
        on_demand_usd=(list_price + attempt.disk_usd_hour) * hours,
        seconds=seconds,
    )


def job_cost(attempts: Iterable[Attempt], now: datetime) -> Cost:
    """What all attempts of a job have cost up to now."""
    return sum((attempt_cost(attempt, now) for attempt in attempts), Cost())
