"""What happened to our own machines, and that a placement by expected cost asks for it."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from spotferry.domain.interruption_rates import PoolHistory
from spotferry.usecases.pool_history import LOOK_AGAIN_AFTER, ReadHistory, history_of
from tests.builders import NOW, an_attempt
from tests.unit.usecases.world import World, state_change, warning

POOL = "us-east-1/us-east-1a/m5.large"


def test_hours_and_interruptions_are_summed_by_pool() -> None:
    """What still runs counts up to now, what the cloud ended or announced to end as taken back."""
    hour = timedelta(hours=1)
    attempts = [
        an_attempt(1, launched_at=NOW - 3 * hour, gone_at=NOW - 2 * hour, ended_by="us"),
        an_attempt(2, launched_at=NOW - 2 * hour, gone_at=NOW, ended_by="cloud"),
        an_attempt(3, launched_at=NOW - hour / 2, notice_at=NOW, taken_back=True),
        an_attempt(4, launched_at=None, gone_at=NOW),
        an_attempt(5, launched_at=NOW - hour, market="on_demand"),
        an_attempt(6, launched_at=NOW - hour, availability_zone="us-east-1b"),
    ]
    assert history_of(attempts, NOW) == {
        ("aws", "spot"): {
            POOL: PoolHistory(Decimal("3.5"), 2),
            "us-east-1/us-east-1b/m5.large": PoolHistory(Decimal(1), 0),
        },
        ("aws", "on_demand"): {POOL: PoolHistory(Decimal(1), 0)},
    }


def test_history_is_read_once_in_ten_minutes(world: World) -> None:
    """The next placements of the same owner find it remembered."""
    world.launched()
    read = ReadHistory(world.store, world.clock)
    first = read("ann")
    assert len(first["aws", "spot"]) == 1
    world.launched()
    assert read("ann") is first
    assert read("bob") == {}
    world.clock.move(seconds=LOOK_AGAIN_AFTER.total_seconds())
    assert read("ann") != first


def test_memory_of_many_owners_is_bounded(world: World) -> None:
    """A function that serves very many owners forgets rather than grows."""
    read = ReadHistory(world.store, world.clock)
    for number in range(150):
        read(f"owner-{number}")
    assert len(read.known) <= 100


def test_pool_that_takes_our_machines_back_loses_by_expected_cost(world: World) -> None:
    """After many interruptions another pool is expected to cost less; by price it would be the same as before."""
    wanted: dict[str, Any] = {"objective": "expected_cost", "expected_hours": 10}
    first = world.create_instance(world.submit(**wanted).job_id)
    assert first is not None
    assert first.chosen is not None
    for _ in range(25):
        job = world.submit()
        world.create_instance(job.job_id)
        attempt = world.attempt(job)
        world.hello(attempt)
        world.clock.move(minutes=2)
        world.interruption(warning(attempt))
        world.interruption(state_change(attempt, "terminated"))
        world.steer("cancel", job.job_id, "ann")
        world.clock.move(minutes=20)
    second = world.create_instance(world.submit(**wanted).job_id)
    assert second is not None
    assert second.chosen is not None
    assert second.runs[0].interruptions > 0
    by_price = world.plan_job.plan(world.submit().spec)
    assert by_price.chosen == first.chosen
    assert second.chosen.pool != first.chosen.pool
