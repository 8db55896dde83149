"""Prices move by the seed alone, and their history is what was charged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from local.market_model import Purchase, Shape
from local.market_prices import PriceBook, PriceRow
from tests.unit.local.market_world import SHAPE, pool

NOW = datetime(2026, 12, 1, tzinfo=UTC)
STEP = timedelta(minutes=6)


@settings(deadline=None)
@given(seed=st.integers(0, 1000), minutes=st.integers(0, 100_000), vcpus=st.integers(1, 448), gpus=st.integers(0, 16))
def test_spot_is_never_above_on_demand_nor_free(seed: int, minutes: int, vcpus: int, gpus: int) -> None:
    """At any time, for any size, zero < spot <= on demand, and the same seed says the same."""
    shape = Shape(vcpus=vcpus, memory_mib=vcpus * 4096, gpus=gpus, quota_family="Standard")
    at = NOW + timedelta(minutes=minutes)
    prices = [PriceBook(seed, STEP).price(pool(), shape, at) for _ in range(2)]
    on_demand = PriceBook(seed, STEP).price(pool(purchase=Purchase.ON_DEMAND), shape, at)
    assert prices[0] is not None
    assert on_demand is not None
    assert prices[0] == prices[1]
    assert 0 < prices[0] <= on_demand


def test_the_price_moves_over_time_and_differs_between_zones() -> None:
    """Fifty steps show many prices; two zones start apart."""
    book = PriceBook(3, STEP)
    seen = {book.price(pool(), SHAPE, NOW + STEP * step) for step in range(50)}
    assert len(seen) > 40
    assert book.price(pool(), SHAPE, NOW) != book.price(pool("eu-west-1b"), SHAPE, NOW)


def test_a_price_that_was_set_holds_at_first_and_for_good_when_fixed() -> None:
    """A set price is the price until the next step; fixed ones never move."""
    book = PriceBook(3, STEP)
    book.put(pool(), PriceRow(NOW, Decimal("0.04"), Decimal("0.1"), fixed=False))
    book.put(pool("eu-west-1b"), PriceRow(NOW, Decimal("0.04"), Decimal("0.1"), fixed=True))
    assert book.price(pool(), SHAPE, NOW + STEP - timedelta(seconds=1)) == Decimal("0.04")
    assert book.price(pool(), SHAPE, NOW + STEP) != Decimal("0.04")
    assert book.price(pool("eu-west-1b"), SHAPE, NOW + STEP * 1000) == Decimal("0.04")


def test_setting_a_price_leaves_the_past_alone() -> None:
    """What held before the change still stands in the history."""
    book = PriceBook(3, STEP)
    before = book.price(pool(), SHAPE, NOW - STEP * 3)
    book.put(pool(), PriceRow(NOW, Decimal(9), Decimal(10), fixed=True))
    assert book.price(pool(), SHAPE, NOW - STEP * 3) == before


@settings(deadline=None)
@given(changes=st.lists(st.integers(1, 3000), max_size=4), back=st.integers(0, 40), span=st.integers(0, 40))
def test_the_history_is_the_price_at_every_time(changes: list[int], back: int, span: int) -> None:
    """Its first entry held at the start, entries ascend, and between two entries the older one's price holds."""
    book = PriceBook(5, STEP)
    for number, seconds in enumerate(sorted(changes)):
        book.put(pool(), PriceRow(NOW + timedelta(seconds=seconds), Decimal(number + 1), Decimal(9), fixed=False))
    start = NOW - timedelta(minutes=back)
    end = start + timedelta(minutes=span)
    history = book.history(pool(), SHAPE, start, end)
    assert history[0][0] <= start
    assert [at for at, _ in history] == sorted({at for at, _ in history})
    for probe in range(span * 2 + 1):
        at = start + timedelta(seconds=30 * probe)
        assert [price for since, price in history if since <= at][-1] == book.price(pool(), SHAPE, at)
