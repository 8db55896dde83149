"""What machines cost: attempts by the prices stored with them, and what the same machines cost at list price."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache

from spotferry.types.instance import Attempt

HOURS_PER_MONTH = 730
"""The month by which clouds convert disk prices."""
MINIMUM_BILLED = timedelta(seconds=60)
"""Clouds bill a machine by the second, but never less than its first minute."""
WAIVED_WITHIN: Mapping[str, timedelta] = {"aws": timedelta(hours=1)}
"""By cloud: a spot machine that it takes back earlier than that is not billed; its disk is."""

_SECONDS_PER_HOUR = Decimal(3600)
_NANO_USD = Decimal("0.000000001")
_MICRO_USD = Decimal("0.000001")
_SECOND = timedelta(seconds=1)


@lru_cache(maxsize=4096)
def disk_usd_hour(usd_gib_month: Decimal, disk_gb: int) -> Decimal:
    """Price of a disk in US dollars an hour, to the billionth of a dollar, so that totals compare exactly."""
    return (usd_gib_month * disk_gb / HOURS_PER_MONTH).quantize(_NANO_USD, ROUND_HALF_UP)


@dataclass(frozen=True, slots=True)
class Cost:
    """What machine time cost; nothing is rounded.

    Attributes:
        machine_usd: the machines alone, at the prices read at launch.
        disk_usd: their disks, at the prices stored at launch.
        waived_usd: machine time that was not billed because the cloud took the machine back early.
        on_demand_usd: the same time and disks at the list price read at launch; at the price paid where that was
            unknown.
        seconds: the time, whether billed or waived.
    """

    machine_usd: Decimal = Decimal(0)
    disk_usd: Decimal = Decimal(0)
    waived_usd: Decimal = Decimal(0)
    on_demand_usd: Decimal = Decimal(0)
    seconds: Decimal = Decimal(0)

    def __add__(self, other: "Cost") -> "Cost":
        """Both together."""
        return Cost(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def usd(self) -> Decimal:
        """Machine and disk."""
        return self.machine_usd + self.disk_usd

    @property
    def saved_usd(self) -> Decimal:
        """What the list price would have cost more; negative where spot was dearer."""
        return self.on_demand_usd - self.usd

    def rounded(self) -> "Cost":
        """As it is shown: dollars to the sixth place; time is in whole seconds anyway."""
        return Cost(
            machine_usd=self.machine_usd.quantize(_MICRO_USD, ROUND_HALF_UP),
            disk_usd=self.disk_usd.quantize(_MICRO_USD, ROUND_HALF_UP),
            waived_usd=self.waived_usd.quantize(_MICRO_USD, ROUND_HALF_UP),
            on_demand_usd=self.on_demand_usd.quantize(_MICRO_USD, ROUND_HALF_UP),
            seconds=self.seconds,
        )


def billed_time(attempt: Attempt, now: datetime) -> timedelta:
    """The whole seconds that the cloud bills: launch to end, or to now; zero for a machine that never came to run.

    The end is when the cloud said that it stopped billing, else when its end was heard of.
    """
    if attempt.launched_at is None or attempt.ended_by == "launch":
        return timedelta(0)
    elapsed = (attempt.billed_until or attempt.gone_at or now) - attempt.launched_at
    return max(-(-elapsed // _SECOND) * _SECOND, MINIMUM_BILLED)


def attempt_cost(attempt: Attempt, now: datetime) -> Cost:
    """What one attempt has cost up to now, by the prices stored with it: a later catalogue changes nothing."""
    time = billed_time(attempt, now)
    seconds = Decimal(time // _SECOND)
    hours = seconds / _SECONDS_PER_HOUR
    list_price = attempt.price if attempt.on_demand_usd_hour is None else attempt.on_demand_usd_hour
    machine, disk = attempt.price * hours, attempt.disk_usd_hour * hours
    waived = is_waived(attempt, time)
    return Cost(
        machine_usd=Decimal(0) if waived else machine,
        disk_usd=disk,
        waived_usd=machine if waived else Decimal(0),
        on_demand_usd=list_price * hours + disk,
        seconds=seconds,
    )


def is_waived(attempt: Attempt, time: timedelta) -> bool:
    """The cloud took the machine back so early that it does not bill it."""
    limit = WAIVED_WITHIN.get(attempt.provider)
    return limit is not None and attempt.market == "spot" and attempt.ended_by == "cloud" and time < limit


def job_cost(attempts: Iterable[Attempt], now: datetime) -> Cost:
    """What all attempts of a job have cost up to now."""
    return sum((attempt_cost(attempt, now) for attempt in attempts), Cost())
