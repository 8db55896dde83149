"""The life of machines on the market, on a clock that only the tests move."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from local.market_model import (
    InterruptionCause,
    MachineState,
    NotPossibleError,
    PoolPattern,
    Purchase,
    StateReason,
    UnknownMachineError,
)
from local.market_prices import PriceRow
from tests.unit.local.market_world import REGION, World, pool, request


def test_a_machine_boots_and_ends_on_request_at_the_times_of_its_cloud() -> None:
    """Pending, running, shutting-down and terminated come at exactly the times the timings say."""
    world = World()
    machine = world.running()
    world.market.terminate("aws", REGION, [machine.allocated_id])
    world.wait(2)
    assert world.story(machine) == [("pending", 0.0), ("running", 1.0), ("shutting-down", 1.0), ("terminated", 3.0)]
    assert machine.reason is not None
    assert machine.reason.code == "Client.UserInitiatedShutdown"


def test_ending_a_machine_twice_changes_nothing() -> None:
    """The second request finds it ended, keeps its reason and its bill."""
    world = World()
    machine = world.running()
    world.market.interrupt(machine.allocated_id, notice=timedelta(0))
    world.wait(3)
    cost = machine.cost_usd(world.now)
    [(again, before)] = world.market.terminate("aws", REGION, [machine.allocated_id])
    assert (before, again.reason and again.reason.code) == (MachineState.TERMINATED, "Server.SpotInstanceTermination")
    assert again.cost_usd(world.now + timedelta(hours=1)) == cost


def test_one_wrong_id_ends_no_machine() -> None:
    """A list with an unknown id is refused whole."""
    world = World()
    machine = world.running()
    with pytest.raises(UnknownMachineError, match="i-nobody"):
        world.market.terminate("aws", REGION, [machine.allocated_id, "i-nobody"])
    assert machine.state is MachineState.RUNNING


def test_an_interruption_is_announced_and_comes_when_it_was_announced_for() -> None:
    """The notice stands from the start, the end comes at its due time, late clocks included."""
    world = World()
    machine = world.running()
    notice = world.market.interrupt(machine.allocated_id)
    assert notice.due_at - notice.noticed_at == timedelta(seconds=12)
    world.wait(11.9)
    assert machine.state is MachineState.RUNNING
    world.wait(50)
    assert world.story(machine)[2:] == [("terminate", 1.0), ("shutting-down", 13.0), ("terminated", 15.0)]
    assert machine.reclaimed_for is InterruptionCause.NO_CAPACITY


def test_a_second_interruption_keeps_the_first_notice() -> None:
    """A machine has one end; repeating the lever neither moves it nor tells it twice."""
    world = World()
    machine = world.running()
    first = world.market.interrupt(machine.allocated_id)
    assert world.market.interrupt(machine.allocated_id, notice=timedelta(0)) is first
    assert [value for value, _ in world.story(machine)].count("terminate") == 1


def test_a_false_notice_is_taken_back() -> None:
    """The machine lives on past the due time and can be interrupted in earnest later."""
    world = World()
    machine = world.running()
    world.market.interrupt(machine.allocated_id, false_notice=True)
    world.wait(13)
    assert (machine.state, machine.notice) == (MachineState.RUNNING, None)
    world.market.interrupt(machine.allocated_id)
    world.wait(15)
    assert machine.state is MachineState.TERMINATED


def test_a_machine_can_be_interrupted_before_it_runs() -> None:
    """Clouds take machines back during their start, too."""
    world = World()
    machine = world.market.launch(request())
    world.market.interrupt(machine.allocated_id, notice=timedelta(seconds=0.5))
    world.wait(10)
    assert [value for value, _ in world.story(machine)] == ["pending", "terminate", "shutting-down", "terminated"]


def test_only_live_spot_machines_can_be_interrupted() -> None:
    """On demand or ended: the lever says why it cannot."""
    world = World()
    on_demand = world.running(request(pool(purchase=Purchase.ON_DEMAND)))
    ended = world.running()
    world.market.kill(ended.allocated_id)
    with pytest.raises(NotPossibleError, match="on demand"):
        world.market.interrupt(on_demand.allocated_id)
    with pytest.raises(NotPossibleError, match="shutting-down"):
        world.market.interrupt(ended.allocated_id)


def test_a_price_above_the_maximum_interrupts() -> None:
    """A machine goes when its pool's price passes what its owner pays, with a notice and the reason."""
    world = World()
    machine = world.running(request(max_price=Decimal("0.9")))
    untouched = world.running(request(pool("eu-west-1b"), max_price=Decimal("0.9")))
    world.market.set_prices([(pool(), PriceRow(world.now, Decimal("0.91"), Decimal(2), fixed=True))])
    world.wait(20)
    assert (machine.state, machine.reclaimed_for) == (MachineState.TERMINATED, InterruptionCause.BY_PRICE)
    assert untouched.state is MachineState.RUNNING


def test_a_price_that_moves_by_itself_interrupts_too() -> None:
    """With a maximum just above today's price, the seeded movement passes it sooner or later."""
    world = World()
    price = world.market.prices.price(pool(), request().shape, world.now)
    assert price is not None
    machine = world.running(request(max_price=price))
    for _ in range(200):
        world.wait(100)
    assert machine.reclaimed_for is InterruptionCause.BY_PRICE


def test_an_ordered_rate_takes_machines_back_at_random_and_by_the_seed() -> None:
    """About 63 of 100 are gone after one mean life; the same seed takes the same ones; others are left alone."""
    lost = []
    for _ in range(2):
        world = World()
        world.market.order_interruptions(PoolPattern(zone="eu-west-1a"), per_hour=1.0)
        machines = [world.market.launch(request()) for _ in range(100)]
        safe = world.market.launch(request(pool("eu-west-1b")))
        world.wait(100 + 12)
        lost.append([machine.serial for machine in machines if not machine.live])
        assert safe.live
    assert lost[0] == lost[1]
    assert 45 <= len(lost[0]) <= 80


def test_a_machine_that_switches_itself_off_terminates_or_stops_as_it_was_told() -> None:
    """Shutdown means stop where the request says so, however the machine was bought, else terminate; either ends the
    bill.
    """
    world = World()
    spot = world.running()
    kept = world.running(request(pool(purchase=Purchase.ON_DEMAND), stop_on_shutdown=True))
    kept_spot = world.running(request(stop_on_shutdown=True))
    for machine in (spot, kept, kept_spot):
        world.market.os_shutdown(machine.allocated_id)
    world.wait(5)
    stopped = (MachineState.STOPPED, MachineState.STOPPED)
    assert (spot.state, kept.state, kept_spot.state) == (MachineState.TERMINATED, *stopped)
    assert {machine.reason.code for machine in (spot, kept) if machine.reason} == {"Client.InstanceInitiatedShutdown"}
    assert kept.cost_usd(world.now) == kept.cost_usd(world.now + timedelta(hours=5))


def test_a_machine_with_a_body_is_not_terminated_before_its_power_is_off() -> None:
    """Nobody may conclude from `terminated` that it is gone while its processes run."""
    world = World(external_power=True)
    machine = world.running()
    world.market.terminate("aws", REGION, [machine.allocated_id])
    world.wait(100)
    assert machine.state is MachineState.SHUTTING_DOWN
    world.market.powered_off(machine.allocated_id)
    assert world.story(machine)[-1] == ("terminated", 101.0)


def test_a_lost_machine_says_whose_fault_it_was() -> None:
    """Killed spot machines count as reclaimed, on-demand ones as broken, and an ordered reason is kept."""
    world = World()
    spot, other = world.running(), world.running(request(pool(purchase=Purchase.ON_DEMAND)))
    world.market.kill(spot.allocated_id)
    world.market.kill(other.allocated_id)
    assert spot.reason is not None
    assert other.reason is not None
    assert (spot.reason.code, other.reason.code) == ("Server.SpotInstanceTermination", "Server.InternalError")
    assert spot.notice is None


def test_an_ordered_boot_failure_ends_the_next_machines_while_pending() -> None:
    """They go from pending to their end with the ordered reason; the one after them boots."""
    world = World()
    world.market.fail_boots(1, StateReason("Server.InsufficientInstanceCapacity", "none left"))
    failed, fine = world.market.launch(request()), world.market.launch(request())
    world.wait(5)
    assert [value for value, _ in world.story(failed)] == ["pending", "shutting-down", "terminated"]
    assert failed.reason == StateReason("Server.InsufficientInstanceCapacity", "none left")
    assert fine.state is MachineState.RUNNING


def test_a_new_machine_can_stay_hidden_and_an_old_one_is_forgotten() -> None:
    """Eventual consistency at birth and a tombstone at the end, as the API shows them."""
    world = World()
    world.market.delay_visibility(timedelta(seconds=30))
    machine = world.running()
    with pytest.raises(UnknownMachineError):
        world.market.find("aws", REGION, [machine.allocated_id])
    world.wait(30)
    assert world.market.visible("aws", REGION) == [machine]
    world.market.kill(machine.allocated_id)
    world.wait(61)
    assert world.market.visible("aws", REGION) == [machine]
    world.wait(2)
    assert world.market.visible("aws", REGION) == []
    assert world.market.everything() == [machine]


def test_a_recommendation_to_leave_changes_nothing_else() -> None:
    """It is told and stays on the machine, which runs on."""
    world = World()
    machine = world.running()
    world.market.rebalance(machine.allocated_id)
    world.wait(500)
    assert world.story(machine)[-1] == ("rebalance", 1.0)
    assert machine.state is MachineState.RUNNING
    assert machine.rebalance_at is not None
