"""A launch that the cloud only accepted is settled: it made its machine, or came to nothing."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from spotferry.domain.view import CheckLaunch
from spotferry.types import Attempt, CapacityError, Job, JobState, ProviderUnavailable, TryNextZone
from spotferry.types.errors import LaunchRefused, NotYet, ProviderError
from tests.fake_cloud import FakeCloud, FakeClouds
from tests.unit.usecases.world import World

STOCKOUT = TryNextZone("ZONE_RESOURCE_POOL_EXHAUSTED", "none left", "us-east-1", ban_for=timedelta(minutes=3))


@dataclass(slots=True)
class SlowCloud(FakeCloud):
    """A cloud that accepts launches, and tells later how they ended."""

    outcome: CapacityError | ProviderError | NotYet | None = None
    settled: list[str] = field(default_factory=list)

    def settle_launch(self, attempt: Attempt) -> CapacityError | None:
        """As the test ordered."""
        self.settled.append(attempt.cedana_id)
        if self.outcome is None or isinstance(self.outcome, CapacityError):
            return self.outcome
        raise self.outcome


@pytest.fixture
def cloud(world: World) -> SlowCloud:
    """The cloud of every test here."""
    world.cloud = cloud = SlowCloud()
    world.clouds = FakeClouds({"aws": cloud})
    world.ask = type(world.ask)(world.change, world.clouds, world.store)
    return cloud


@pytest.fixture
def accepted(world: World, cloud: SlowCloud) -> Job:
    """A job whose launch was accepted."""
    job = world.submit()
    world.create_instance(job.job_id)
    world.queue.take()
    assert world.attempt(job).allocated_id
    assert not cloud.settled
    return job


def test_a_launch_that_came_to_nothing_is_a_refusal(world: World, cloud: SlowCloud, accepted: Job) -> None:
    """Its attempt is closed with the cloud's code, its pool is set aside, and the job looks for another machine."""
    first = world.attempt(accepted)
    cloud.outcome = STOCKOUT
    world.check_launch(accepted.job_id, first.cedana_id)
    closed = world.attempt(accepted)
    assert (closed.failure_code, closed.is_gone) == ("ZONE_RESOURCE_POOL_EXHAUSTED", True)
    assert world.state(accepted) is JobState.PENDING
    assert world.job(accepted).startup_failures == 0
    assert any("refused" in message and "none left" in message for message in world.messages(accepted))
    cloud.outcome = None
    world.perform()
    assert world.attempt(accepted).availability_zone != first.availability_zone


def test_a_launch_that_made_its_machine_is_left_alone(world: World, cloud: SlowCloud, accepted: Job) -> None:
    """The cloud is asked once, nothing is saved, and no second machine is asked for."""
    saves = world.store.saves
    world.check_launch(accepted.job_id, world.attempt(accepted).cedana_id)
    assert cloud.settled == [world.attempt(accepted).cedana_id]
    assert (world.store.saves, cloud.calls["create"], world.queue.waiting) == (saves, 1, [])


def test_a_launch_that_goes_on_is_looked_at_again(world: World, cloud: SlowCloud, accepted: Job) -> None:
    """The question is sent again while the cloud is at it, and no longer once the agent has said hello."""
    attempt = world.attempt(accepted)
    cloud.outcome = NotYet("still at it", timedelta(seconds=45))
    world.check_launch(accepted.job_id, attempt.cedana_id)
    assert world.queue.waiting == [CheckLaunch(accepted.job_id, attempt.cedana_id)]
    world.hello(attempt)
    world.queue.take()
    world.check_launch(accepted.job_id, attempt.cedana_id)
    assert world.queue.waiting == []
    assert len(cloud.settled) == 1


def test_a_question_that_failed_proves_nothing(world: World, cloud: SlowCloud, accepted: Job) -> None:
    """The attempt stays open."""
    cloud.outcome = ProviderUnavailable("Timeout", "no answer")
    world.check_launch(accepted.job_id, world.attempt(accepted).cedana_id)
    assert not world.attempt(accepted).is_gone


def test_a_refusal_of_what_the_job_asked_for_fails_it(world: World, cloud: SlowCloud, accepted: Job) -> None:
    """No other candidate would do."""
    cloud.outcome = LaunchRefused("invalid", "the image is broken", scope="none")
    world.check_launch(accepted.job_id, world.attempt(accepted).cedana_id)
    assert world.state(accepted) is JobState.FAILED


@pytest.mark.parametrize("outcome", [STOCKOUT, None, ProviderUnavailable("Timeout", "no answer")])
def test_a_poll_settles_what_no_message_did(
    world: World, cloud: SlowCloud, accepted: Job, outcome: CapacityError | None
) -> None:
    """A machine that never came to run is settled by the poll that misses it; gone it is in any case."""
    first = world.attempt(accepted)
    machine = cloud.machines[first.cedana_id].model_copy(update={"ended_by": "launch"})
    cloud.machines[first.cedana_id] = machine
    cloud.terminate(first.cedana_id, "ZONE_RESOURCE_POOL_EXHAUSTED: none left")
    cloud.outcome = outcome
    world.poll()
    closed = world.attempt(accepted, 0)
    assert closed.is_gone
    assert closed.failure_code == ("ZONE_RESOURCE_POOL_EXHAUSTED" if outcome is STOCKOUT else "")
    assert world.job(accepted).startup_failures == 0
    assert cloud.settled == [first.cedana_id]


def test_a_cloud_that_answers_at_once_is_not_asked(world: World) -> None:
    """Where a launch's answer is its end, a machine that was made costs a read and no call."""
    job, attempt = world.launched()
    calls = dict(world.cloud.calls)
    world.check_launch(job.job_id, attempt.cedana_id)
    assert dict(world.cloud.calls) == calls
