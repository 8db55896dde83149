"""Prices of the market: a rule by size, prices somebody set, and a seeded movement of the spot price."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from local.market_model import PoolKey, Purchase, Shape

_CENT_FRACTION = Decimal("0.000001")
_VCPU_USD_HOUR = Decimal("0.026")
_GIB_USD_HOUR = Decimal("0.0035")
_GPU_USD_HOUR = Decimal("0.55")
_LOWEST_SPOT_SHARE = Decimal("0.28")
_SPOT_SHARE_RANGE = Decimal("0.30")
_ORIGIN = datetime(2020, 1, 1, tzinfo=UTC)


def seeded_fraction(*parts: object) -> Decimal:
    """A number in [0, 1) that depends on nothing but the parts."""
    digest = hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).digest()
    return Decimal(int.from_bytes(digest[:6], "big")) / Decimal(1 << 48)


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Prices that hold from `since` on. A None spot price means: not sold as spot in this zone."""

    since: datetime
    spot: Decimal | None
    on_demand: Decimal
    fixed: bool


class PriceBook:
    """What each pool costs at any time, as a pure function of the seed and of the prices set so far."""

    def __init__(self, seed: int, step: timedelta, volatility: Decimal = Decimal("0.05")) -> None:
        self._seed = seed
        self._step = step
        self._volatility = volatility
        self._set: dict[tuple[str, str, str, str], list[PriceRow]] = {}

    def put(self, key: PoolKey, row: PriceRow) -> None:
        """Let the row hold for the pool's type and zone from its time on."""
        self._set.setdefault(_place(key), []).append(row)

    def is_set(self, key: PoolKey) -> bool:
        """Tell whether somebody set a price for this type in this zone."""
        return _place(key) in self._set

    def price(self, key: PoolKey, shape: Shape, at: datetime) -> Decimal | None:
        """USD per hour at that time; None when the pool is not sold that way."""
        row = self.row(key, shape, at)
        if key.purchase is Purchase.ON_DEMAND:
            return row.on_demand
        return self._moved(key, row, at)

    def row(self, key: PoolKey, shape: Shape, at: datetime) -> PriceRow:
        """The prices the movement starts from at that time."""
        for row in reversed(self._set.get(_place(key), [])):
            if row.since <= at:
                return row
        return self.ruled(key, shape)

    def ruled(self, key: PoolKey, shape: Shape) -> PriceRow:
        """The prices of a pool nobody priced: linear in its size, the spot share seeded by zone and type."""
        gib = Decimal(shape.memory_mib) / 1024
        on_demand = _VCPU_USD_HOUR * shape.vcpus + _GIB_USD_HOUR * gib + _GPU_USD_HOUR * shape.gpus
        share = _LOWEST_SPOT_SHARE + _SPOT_SHARE_RANGE * seeded_fraction(self._seed, "share", *_place(key))
        return PriceRow(
            since=_ORIGIN,
            spot=(on_demand * share).quantize(_CENT_FRACTION),
            on_demand=on_demand.quantize(_CENT_FRACTION),
            fixed=False,
        )

    def next_change(self, key: PoolKey, shape: Shape, after: datetime) -> datetime:
        """When the spot price may move next."""
        since = self.row(key, shape, after).since
        return since + ((after - since) // self._step + 1) * self._step

    def history(self, key: PoolKey, shape: Shape, start: datetime, end: datetime) -> list[tuple[datetime, Decimal]]:
        """Every spot price that held between start and end, oldest first, with the time it came to hold.

        The price that was in force at `start` comes first, as the clouds answer it.
        """
        changes: list[tuple[datetime, Decimal]] = []
        at = self._came_to_hold(key, shape, start)
        while at <= end:
            price = self.price(key, shape, at)
            if price is not None:
                changes.append((at, price))
            at = self._next_or_set(key, shape, at)
        return changes

    def _came_to_hold(self, key: PoolKey, shape: Shape, at: datetime) -> datetime:
        since = self.row(key, shape, at).since
        return since + ((at - since) // self._step) * self._step

    def _next_or_set(self, key: PoolKey, shape: Shape, at: datetime) -> datetime:
        moved = self.next_change(key, shape, at)
        later = [row.since for row in self._set.get(_place(key), []) if row.since > at]
        return min([moved, *later])

    def _moved(self, key: PoolKey, row: PriceRow, at: datetime) -> Decimal | None:
        if row.spot is None:
            return None
        step = (at - row.since) // self._step
        if row.fixed or step == 0:
            return row.spot
        swing = 2 * seeded_fraction(self._seed, "move", *_place(key), step) - 1
        moved = (row.spot * (1 + self._volatility * swing)).quantize(_CENT_FRACTION)
        return max(_CENT_FRACTION, min(moved, row.on_demand))


def _place(key: PoolKey) -> tuple[str, str, str, str]:
    return (key.provider, key.region, key.zone, key.instance_type)
