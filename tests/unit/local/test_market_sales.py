"""What the market sells, refuses and charges, and that one token never buys two machines."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.market_model import (
    INTERNAL_ERROR,
    MachineState,
    NoCapacityError,
    PoolPattern,
    PriceTooLowError,
    Purchase,
    QuotaExceededError,
    TokenMismatchError,
)
from local.market_prices import PriceRow
from local.market_stock import CapacityRule
from tests.unit.local.market_world import REGION, SHAPE, World, pool, request

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), st.sampled_from("abc"), st.sampled_from(["same", "other"])),
        st.tuples(st.just("wait"), st.floats(0, 40), st.just("")),
        st.tuples(st.just("end"), st.integers(0, 5), st.just("")),
        st.tuples(st.just("full"), st.booleans(), st.just("")),
    ),
    max_size=40,
)


@settings(deadline=None)
@given(_STEPS)
def test_a_token_buys_one_machine_whatever_happens_in_between(steps: list[tuple[str, object, str]]) -> None:
    """Launches, ends, stockouts and time in any order: one token, one machine; another request is refused."""
    world = World()
    bought: dict[str, tuple[str, str]] = {}
    for kind, value, fingerprint in steps:
        if kind == "launch":
            _launch_once(world, bought, str(value), fingerprint)
        elif kind == "wait" and isinstance(value, float):
            world.wait(value)
        elif kind == "end" and isinstance(value, int) and value < len(bought):
            world.market.kill(list(bought.values())[value][0])
        elif kind == "full":
            world.market.order_capacity(CapacityRule(PoolPattern(), 0 if value else None))
    assert sorted(m.allocated_id for m in world.market.everything()) == sorted(known for known, _ in bought.values())


def _launch_once(world: World, bought: dict[str, tuple[str, str]], token: str, fingerprint: str) -> None:
    known = bought.get(token)
    try:
        machine = world.market.launch(request(token=token, fingerprint=fingerprint))
    except TokenMismatchError:
        assert known is not None
        assert known[1] != fingerprint
    except NoCapacityError:
        assert known is None
    else:
        assert known in {None, (machine.allocated_id, fingerprint)}
        bought[token] = (machine.allocated_id, fingerprint)


def test_a_token_buys_one_machine_when_many_ask_at_once() -> None:
    """Sixteen threads with one token get one machine."""
    world = World()
    together = threading.Barrier(16)

    def ask(_: int) -> str:
        together.wait(5)
        return world.market.launch(request(token="t")).allocated_id

    with ThreadPoolExecutor(16) as threads:
        assert len(set(threads.map(ask, range(16)))) == 1
    assert len(world.market.everything()) == 1


def test_a_refused_token_can_be_used_again() -> None:
    """A stockout binds nothing: the same request gets a machine when there is one."""
    world = World()
    world.market.order_capacity(CapacityRule(PoolPattern(instance_type="m5.*"), 0))
    with pytest.raises(NoCapacityError):
        world.market.launch(request(token="t"))
    world.market.order_capacity(CapacityRule(PoolPattern(instance_type="m5.*"), None))
    assert world.market.launch(request(token="t")).live


@settings(deadline=None)
@given(
    price=st.decimals("0.000001", "40", places=6),
    lives=st.lists(st.floats(0.001, 500_000), min_size=1, max_size=5),
)
def test_the_bill_is_price_times_begun_seconds(price: Decimal, lives: list[float]) -> None:
    """Each machine pays its launch price for every second begun between running and ending, a minute at least, whatever
    the price does later.
    """
    world = World()
    world.market.set_prices([(pool(), PriceRow(world.now, price, Decimal(50), fixed=True))])
    for seconds in lives:
        machine = world.running()
        world.market.set_prices([(pool(), PriceRow(world.now, price * 2, Decimal(100), fixed=True))])
        began = world.now
        world.wait(seconds)
        ran = world.now - began
        world.market.terminate("aws", REGION, [machine.allocated_id])
        world.market.set_prices([(pool(), PriceRow(world.now, price, Decimal(50), fixed=True))])
        world.wait(100)
        assert machine.cost_usd(world.now) == price * max(60, math.ceil(ran / timedelta(seconds=1))) / 3600


@pytest.mark.parametrize(("hours", "share"), [(0.99, 0), (1.01, 1)])
def test_a_machine_taken_back_in_its_first_hour_is_free(hours: float, share: int) -> None:
    """EC2 bills a spot machine that it takes back from its second hour on."""
    world = World()
    machine = world.running()
    world.wait(hours * 3600)
    world.market.kill(machine.allocated_id)
    world.wait(5)
    assert bool(machine.cost_usd(world.now)) == bool(share)


def test_a_machine_that_never_ran_is_free() -> None:
    """Nothing is billed before a machine runs, nor for one that fails before it does."""
    world = World()
    world.market.fail_boots(1, INTERNAL_ERROR)
    machine = world.market.launch(request(pool(purchase=Purchase.ON_DEMAND)))
    assert machine.cost_usd(world.now) == 0
    world.wait(500)
    assert (machine.state, machine.cost_usd(world.now)) == (MachineState.TERMINATED, Decimal(0))


def test_a_pool_sells_what_it_has_and_names_zones_that_have_more() -> None:
    """The machine after the last is refused; an ended one makes room again."""
    world = World()
    world.market.order_capacity(CapacityRule(PoolPattern(zone="eu-west-1a"), 2))
    first = world.market.launch(request())
    world.market.launch(request())
    with pytest.raises(NoCapacityError) as refused:
        world.market.launch(request(), siblings=(pool("eu-west-1b"), pool("eu-west-1c")))
    assert refused.value.elsewhere == ("eu-west-1b", "eu-west-1c")
    world.market.kill(first.allocated_id)
    assert world.market.launch(request()).live


def test_patterns_exhaust_zones_types_and_regions_and_the_last_order_wins() -> None:
    """A wide order can be followed by a narrow exception, and all is restored at once."""
    world = World()
    world.market.order_capacity(CapacityRule(PoolPattern(region=REGION), 0))
    world.market.order_capacity(CapacityRule(PoolPattern(zone="eu-west-1b"), None))
    with pytest.raises(NoCapacityError):
        world.market.launch(request())
    assert world.market.launch(request(pool("eu-west-1b"))).live
    world.market.order_capacity(CapacityRule(PoolPattern(), None))
    assert world.market.launch(request()).live


def test_quotas_count_vcpus_of_the_living_by_family_and_purchase() -> None:
    """Two of two vCPUs each fill a quota of five; on demand has its own; an ended one gives its share back."""
    world = World()
    world.market.set_quota(("aws", REGION, Purchase.SPOT, "Standard"), 5)
    first = world.market.launch(request())
    world.market.launch(request(pool("eu-west-1b")))
    with pytest.raises(QuotaExceededError) as refused:
        world.market.launch(request())
    assert (refused.value.limit_vcpus, refused.value.family) == (5, "Standard")
    assert world.market.launch(request(pool(purchase=Purchase.ON_DEMAND))).live
    world.market.kill(first.allocated_id)
    assert world.market.launch(request()).live


def test_a_maximum_price_below_the_price_is_refused_with_both() -> None:
    """The refusal names what was offered and what it would take; the very price is enough."""
    world = World()
    world.market.set_prices([(pool(), PriceRow(world.now, Decimal("0.05"), Decimal("0.1"), fixed=True))])
    with pytest.raises(PriceTooLowError) as refused:
        world.market.launch(request(max_price=Decimal("0.0499")))
    assert (refused.value.offered, refused.value.price) == (Decimal("0.0499"), Decimal("0.05"))
    assert world.market.launch(request(max_price=Decimal("0.05"))).price_usd_hour == Decimal("0.05")


def test_a_zone_without_a_spot_price_sells_no_spot() -> None:
    """A row with no spot price means that there is nothing to sell; on demand is not concerned."""
    world = World()
    world.market.set_prices([(pool(), PriceRow(world.now, None, Decimal("0.1"), fixed=False))])
    with pytest.raises(NoCapacityError):
        world.market.launch(request())
    assert world.market.launch(request(pool(purchase=Purchase.ON_DEMAND))).price_usd_hour == Decimal("0.1")


def test_seeded_capacities_are_the_same_for_the_same_seed_only() -> None:
    """Two markets of one seed have the same stock, another seed another one."""
    stocks = [World(seed=seed).market.stock for seed in (1, 1, 2)]
    keys = [pool(zone, purchase) for zone in ("eu-west-1a", "eu-west-1b", "eu-west-1c") for purchase in Purchase]
    first, same, other = ([stock.capacity(key, SHAPE) for key in keys] for stock in stocks)
    assert first == same != other
    assert min(first) >= 2


def test_a_name_that_is_used_again_is_another_machine() -> None:
    """Where callers name machines, who asks for a name means the last; the first stays on the list, with its bill."""
    world = World()
    named = replace(request(), allocated_id="mine")
    first = world.running(named)
    world.market.terminate("aws", REGION, ["mine"])
    world.wait(3)
    second = world.running(named)
    assert world.market.get("mine") is second
    assert world.market.everything() == [first, second]


def test_a_stopped_machine_that_bills_keeps_its_place() -> None:
    """It counts against capacity and quota, and costs, until somebody ends it."""
    world = World()
    world.market.order_capacity(CapacityRule(PoolPattern(), 1))
    machine = world.running(replace(request(), stop_on_shutdown=True, bills_when_stopped=True))
    world.market.os_shutdown(machine.allocated_id)
    world.wait(100)
    assert machine.state == "stopped"
    assert machine.billing_ended_at is None
    with pytest.raises(NoCapacityError):
        world.market.launch(request())
    world.market.terminate("aws", REGION, [machine.allocated_id])
    assert machine.billing_ended_at == world.now
    assert world.market.launch(request()).live


def test_a_machine_that_accepts_its_notice_goes_at_once() -> None:
    """Its end is the cloud's doing all the same; what is accepted twice, or too late, changes nothing."""
    world = World()
    machine = world.running()
    notice = world.market.interrupt(machine.allocated_id)
    notice.accept()
    assert world.story(machine)[-1] == ("shutting-down", 1.0)
    assert machine.taken_back
    notice.accept()
    world.wait(60)
    assert [value for value, _ in world.story(machine)].count("terminated") == 1
