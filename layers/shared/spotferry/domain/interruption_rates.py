"""How often a pool takes machines back: what its cloud tells, else its class, corrected by what happened to our own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import NamedTuple

from spotferry.types.instance import Candidate, Market, Offer
from spotferry.types.provider import PoolRate

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
"""How many hours of our own machines weigh as much as what was known before."""

CLASS_SOURCE = "class"
"""Source of a rate that the class table gives."""
OWN_SOURCE = "own_history"
"""Source of a rate that our own machines corrected; with a "+", that of the rate before stands behind it."""


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


class Rate(NamedTuple):
    """Interruptions an hour in a set of zones, and where that is from."""

    zones: int
    per_hour: Decimal
    source: str


class ToldRate(NamedTuple):
    """What a cloud tells of one type; see `PoolRate`."""

    region: str
    zone: str
    per_hour: Decimal
    source: str


Told = Mapping[tuple[str, str], Sequence[ToldRate]]
"""By (provider, type whatever its case): clouds that tell rates do not always spell types as their price lists do."""


def told_by(rates: Iterable[PoolRate]) -> Told:
    """Rates as an index takes them."""
    found: dict[tuple[str, str], list[ToldRate]] = {}
    for rate in rates:
        told = ToldRate(rate.region, rate.zone, rate.per_hour, rate.source)
        found.setdefault((rate.provider, rate.instance_type.casefold()), []).append(told)
    return found


def class_rate(provider: str, market: Market, *, has_gpu: bool) -> Decimal:
    """Interruptions an hour of machines of this class; machines at list price are not taken back."""
    return _CLASSES.get((provider, has_gpu), _UNKNOWN_CLASS) if market == "spot" else Decimal(0)


def pool_rate(prior: Decimal, history: PoolHistory) -> Decimal:
    """Interruptions an hour of a spot pool: what is told of it or its class, the less of it the more we know ourselves.

    `(prior * 24 h + interruptions) / (24 h + hours)`: the mean of a gamma distribution that starts as if we had
    watched such a pool for a day, and has seen the pool's own hours and interruptions.
    """
    if not prior:
        return prior
    return (prior * _BELIEF_HOURS + history.interruptions) / (_BELIEF_HOURS + history.hours)


def told_rate(told: Told, candidate: Candidate) -> Decimal | None:
    """Interruptions an hour that its cloud tells of a candidate's pool, its zone before its region; None: nothing."""
    offer = candidate.offer
    if candidate.market != "spot":
        return None
    known = [rate for rate in told.get((offer.provider, offer.instance_type.casefold()), ()) if _covers(rate, offer)]
    return max(known, key=lambda rate: bool(rate.zone)).per_hour if known else None


def _covers(rate: ToldRate, offer: Offer) -> bool:
    return rate.region == offer.region and rate.zone in {"", offer.zone}
