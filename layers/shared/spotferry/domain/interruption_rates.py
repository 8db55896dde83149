"""How often a pool takes machines back: what is commonly known of its class, corrected by what happened to our own."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from spotferry.types.instance import Market

_HOURS_PER_MONTH = 730
_HOURS_PER_DAY = 24

_CLASSES: Mapping[tuple[str, bool], Decimal] = MappingProxyType(
    {
        ("aws", False): Decimal("0.08") / _HOURS_PER_MONTH,
        ("aws", True): Decimal("0.20") / _HOURS_PER_MONTH,
        ("gcp", False): Decimal("0.10") / _HOURS_PER_DAY,
        ("gcp", True): Decimal("0.15") / _HOURS_PER_DAY,
        ("azure", False): Decimal("0.025"),
        ("azure", True): Decimal("0.075"),
    }
)
"""Interruptions an hour by (cloud, with a GPU), from the units that each cloud speaks in.

AWS's Spot Instance Advisor tells the share of machines taken back in a month, in steps of 5 % (most CPU types 5 to
10 %, GPU types about 20 %); Google has long told 5 to 15 % a day; Azure tells the chance for the next hour, in steps
of 5 %.
"""
_UNKNOWN_CLASS = Decimal("0.025")
"""A cloud that says nothing counts as the most restless one."""

_BELIEF_HOURS = 24
"""How many hours of our own machines weigh as much as the class table."""


@dataclass(frozen=True, slots=True)
class PoolHistory:
    """What happened to our own machines of one pool.

    Attributes:
        hours: how long they ran, all together.
        interruptions: how many were taken back.
    """

    hours: Decimal
    interruptions: int


History = Mapping[tuple[str, str], Mapping[str, PoolHistory]]
"""By (provider, market), then by `Candidate.pool`."""


def class_rate(provider: str, market: Market, *, has_gpu: bool) -> Decimal:
    """Interruptions an hour of machines of this class; machines at list price are not taken back."""
    return _CLASSES.get((provider, has_gpu), _UNKNOWN_CLASS) if market == "spot" else Decimal(0)


def pool_rate(class_rate: Decimal, history: PoolHistory) -> Decimal:
    """Interruptions an hour of a pool: the class's, the less of it the more we know ourselves.

    `(class rate * 24 h + interruptions) / (24 h + hours)`: the mean of a gamma distribution that starts as if we had
    watched the class for a day, and has seen the pool's own hours and interruptions.
    """
    if not class_rate:
        return class_rate
    return (class_rate * _BELIEF_HOURS + history.interruptions) / (_BELIEF_HOURS + history.hours)
