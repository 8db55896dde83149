"""What the broker keeps of a machine's beginning and end, for the ledger."""

from datetime import UTC, datetime, timedelta

import pytest

from spotferry.types import Attempt, JobState, ProviderError, ProviderEvent
from tests.unit.usecases.world import World, state_change

EVENT_AT = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
EARLIER = EVENT_AT - timedelta(seconds=40)


def ended(world: World, attempt: Attempt, **told: object) -> None:
    """The machine is gone, and the cloud tells this about it."""
    world.cloud.terminate(attempt.cedana_id)
    world.cloud.machines[attempt.cedana_id] = world.cloud.machines[attempt.cedana_id].model_copy(update=told)


@pytest.mark.parametrize("way", ["bus", "poll"])
def test_who_ended_a_machine_and_when_is_kept(world: World, way: str) -> None:
    """By event or by poll, the cloud's own account of the end is saved with the attempt."""
    job, attempt = world.running()
    ended(world, attempt, ended_by="cloud", billed_until=EARLIER)
    if way == "bus":
        world.interruption(state_change(attempt, "terminated"))
    else:
        world.poll()
    found = world.attempt(job)
    assert (found.is_gone, found.ended_by, found.billed_until) == (True, "cloud", EARLIER)
    assert found.end_reason == "Server.SpotInstanceTermination"


def test_the_time_of_the_announcement_counts_where_the_machine_shows_none(world: World) -> None:
    """What the cloud says about the end beside the description has its time."""
    job, attempt = world.running()
    ended(world, attempt)
    said = ProviderEvent(instance_id="i", fault_code="c", termination_time=int(EARLIER.timestamp()))
    world.cloud.statuses[attempt.cedana_id] = said
    world.interruption(state_change(attempt, "terminated"))
    assert world.attempt(job).billed_until == EARLIER


def test_the_events_own_time_is_the_last_resort(world: World) -> None:
    """A cloud that cannot be asked delays nothing: the end is saved as it was heard."""
    job, attempt = world.running()
    world.cloud.terminate(attempt.cedana_id)
    world.cloud.refuse(ProviderError("RequestTimeout", "no answer"), on="describe")
    world.interruption(state_change(attempt, "terminated"))
    found = world.attempt(job)
    assert (found.is_gone, found.ended_by, found.billed_until) == (True, "", EVENT_AT)
    assert found.end_reason == "terminated"


def test_a_cloud_without_credentials_delays_no_end(world: World) -> None:
    """Where the cloud cannot even be opened, the job passes on as where it does not answer."""
    job, attempt = world.running()
    world.clouds.by_name.clear()
    world.interruption(state_change(attempt, "terminated"))
    found = world.attempt(job)
    assert (found.is_gone, found.ended_by, found.billed_until) == (True, "", EVENT_AT)
    assert world.state(job) is JobState.PENDING


def test_a_repeated_end_asks_nobody(world: World) -> None:
    """An event that comes twice costs no second question, and changes nothing."""
    job, attempt = world.running()
    world.cloud.terminate(attempt.cedana_id)
    world.interruption(state_change(attempt, "terminated"))
    asked, revision = world.cloud.calls["describe"], world.job(job).revision
    world.interruption(state_change(attempt, "terminated"))
    assert (world.cloud.calls["describe"], world.job(job).revision) == (asked, revision)


def test_a_price_that_cannot_be_read_leaves_the_catalogues(world: World) -> None:
    """The machine is there: a price that nobody tells must not stop its job."""
    world.cloud.refuse(ProviderError("UnauthorizedOperation", "no"), on="price")
    job, attempt = world.launched()
    assert attempt.price == attempt.plan["chosen"]["price_usd_hour"] or str(attempt.price) == "0.010"
    assert world.attempt(job).allocated_id
