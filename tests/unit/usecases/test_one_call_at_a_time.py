"""A cloud that goes by names is asked for an attempt's machine by one caller at a time, so that none comes too late."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from spotferry.domain.asking import BEGIN_WITHIN, LAUNCH_LEASE
from spotferry.domain.view import Effect
from spotferry.types import Attempt, Instance, Job, JobState, ProviderUnavailable, TryNextZone
from tests.fake_cloud import FakeCloud, FakeClouds
from tests.fakes import FakeQueue
from tests.unit.usecases.world import World, state_change

STOCKOUT = TryNextZone("ZONE_RESOURCE_POOL_EXHAUSTED", "none left", "us-east-1", ban_for=timedelta(minutes=3))


@dataclass(slots=True)
class NamedCloud(FakeCloud):
    """A cloud without tokens: a name is free again once its machine is gone, and whoever asks then gets another one."""

    made: list[str] = field(default_factory=list)

    def create_instance(self, candidate: Instance) -> Attempt:
        """The machine of that name, or a new one."""
        known = self.machines.get(candidate.cedana_id)
        if known is not None and known.state == "terminated":
            del self.machines[candidate.cedana_id]
        if candidate.cedana_id not in self.machines:
            self.made.append(candidate.cedana_id)
        # Of a dataclass with slots, the class that super() would look for is another one.
        return FakeCloud.create_instance(self, candidate)


@pytest.fixture
def cloud(world: World) -> NamedCloud:
    """The cloud of every test here."""
    world.cloud = cloud = NamedCloud()
    world.clouds = FakeClouds({"aws": cloud})
    world.ask = type(world.ask)(world.change, world.clouds, world.store)
    return cloud


class SlowQueue(FakeQueue):
    """A queue that something else happens behind, while it takes what is sent."""

    def __init__(self, world: World, seconds: float) -> None:
        super().__init__()
        self._world, self._seconds = world, seconds
        self.slow = True

    def send(self, effects: Sequence[Effect], now: datetime) -> None:
        """Take them, and let the other one go on first."""
        super().send(effects, now)
        if self.slow:
            self.slow = False
            self._world.clock.move(seconds=self._seconds)
            for job_id in {effect.job_id for effect in effects}:
                self._world.create_instance(job_id)


@pytest.fixture
def lost(world: World, cloud: NamedCloud) -> Job:
    """A job whose launch made a machine, but whose answer was lost."""
    cloud.lose_answer()
    job = world.submit()
    world.create_instance(job.job_id)
    world.queue.take()
    return job


def test_a_placement_that_comes_again_meanwhile_does_not_ask(world: World, cloud: NamedCloud) -> None:
    """Whoever saved the intent asks, and nobody else while that may take."""
    job = world.submit()
    world.queue = queue = SlowQueue(world, seconds=3)
    world.change = type(world.change)(world.store, queue, world.clock)
    world.create_instance(job.job_id)
    assert cloud.calls["create"] == 1
    assert world.attempt(job).allocated_id


def test_a_call_that_would_begin_too_late_is_not_made(world: World, cloud: NamedCloud) -> None:
    """Its caller stood still after the save: the check asks in its place, and there is one machine."""
    job = world.submit()
    world.queue = queue = SlowQueue(world, seconds=BEGIN_WITHIN.total_seconds() + 1)
    world.change = type(world.change)(world.store, queue, world.clock)
    world.create_instance(job.job_id)
    assert cloud.made == []
    assert not world.attempt(job).allocated_id
    world.perform()
    assert cloud.made == [world.attempt(job).cedana_id]
    assert world.attempt(job).allocated_id


def test_of_two_who_ask_again_one_asks(world: World, cloud: NamedCloud, lost: Job) -> None:
    """The right to ask is saved with the job, so the second finds it taken."""
    world.let_answers_come()
    cloud.terminate(world.attempt(lost).cedana_id)
    stale = world.attempt(lost)
    cloud.lose_answer()
    world.ask.again(lost.job_id, stale)
    world.ask.again(lost.job_id, stale)
    world.create_instance(lost.job_id)
    assert cloud.calls["create"] == 2
    assert "asking again" in world.messages(lost)[-1]


def test_nobody_asks_again_before_the_first_call_is_over(world: World, cloud: NamedCloud, lost: Job) -> None:
    """A check or a placement that comes early leaves the launch to whoever asked."""
    attempt = world.attempt(lost)
    cloud.terminate(attempt.cedana_id)
    world.clock.move(seconds=LAUNCH_LEASE.total_seconds() - 1)
    world.check_launch(lost.job_id, attempt.cedana_id)
    world.create_instance(lost.job_id)
    assert cloud.calls["create"] == 1
    assert cloud.calls["find"] == 0


def test_a_refusal_that_is_older_than_the_last_call_closes_nothing(world: World, cloud: NamedCloud, lost: Job) -> None:
    """Its caller was slow to save it, and by then the cloud has been asked again and has made the machine."""
    first = world.attempt(lost)
    world.let_answers_come()
    cloud.terminate(first.cedana_id)
    cloud.lose_answer()
    world.ask.again(lost.job_id, first)
    world.ask.fail(lost.job_id, first, STOCKOUT)
    assert world.state(lost) is JobState.PROVISIONING
    assert not world.attempt(lost).is_gone
    world.let_answers_come()
    world.check_launch(lost.job_id, first.cedana_id)
    assert world.attempt(lost).allocated_id
    assert cloud.living() == [first.cedana_id]


def test_an_answer_that_is_older_than_the_last_call_is_not_believed(world: World, cloud: NamedCloud, lost: Job) -> None:
    """The machine it is about may be gone, and the last call may have made another: that one is found."""
    first = world.attempt(lost)
    old = cloud.machines[first.cedana_id]
    world.let_answers_come()
    cloud.terminate(first.cedana_id)
    cloud.lose_answer()
    world.ask.again(lost.job_id, first)
    world.ask.record(lost.job_id, first, old)
    assert not world.attempt(lost).allocated_id
    world.let_answers_come()
    world.check_launch(lost.job_id, first.cedana_id)
    assert world.attempt(lost).allocated_id == cloud.machines[first.cedana_id].allocated_id


def test_a_machine_that_is_not_wanted_any_more_is_ended_once_no_call_can_make_another(
    world: World, cloud: NamedCloud, lost: Job
) -> None:
    """To end it while one is under way would set the name free for that one."""
    attempt = world.attempt(lost)
    world.steer("cancel", lost.job_id, "ann")
    world.destroy_instance(lost.job_id, attempt.cedana_id)
    assert cloud.destroyed == []
    world.let_answers_come()
    world.destroy_instance(lost.job_id, attempt.cedana_id)
    assert cloud.destroyed == [attempt.cedana_id]
    assert world.attempt(lost).allocated_id


def test_an_attempt_that_was_answered_is_never_asked_for_again(world: World, cloud: NamedCloud) -> None:
    """Its machine was taken back at once: a late placement buys no second one of its name."""
    job, attempt = world.launched()
    cloud.terminate(attempt.cedana_id)
    world.let_answers_come()
    world.ask.again(job.job_id, attempt.model_copy(update={"allocated_id": ""}))
    assert cloud.made == [attempt.cedana_id]
    world.interruption(state_change(attempt, "terminated"))
    assert world.attempt(job, 0).is_gone


def test_nobody_is_asked_again_for_a_job_that_is_being_ended(world: World, cloud: NamedCloud, lost: Job) -> None:
    """The cancel came between the look at the job and the call."""
    attempt = world.attempt(lost)
    world.let_answers_come()
    world.steer("cancel", lost.job_id, "ann")
    assert world.ask.again(lost.job_id, attempt) is None
    assert cloud.calls["create"] == 1


def test_no_verdict_leaves_the_time_to_ask_again(world: World, cloud: NamedCloud) -> None:
    """Each call has its own time; nothing is closed while the cloud does not answer."""
    cloud.refuse(ProviderUnavailable("Unavailable", "try later"), times=3)
    job = world.submit()
    world.perform()
    for _ in range(2):
        world.later(minutes=1)
        world.perform()
    assert cloud.calls["create"] == 4
    assert world.attempt(job).allocated_id
    assert len(world.store.attempts_of(job.job_id)) == 1


@pytest.mark.parametrize("unanswered", [1, 2, 5])
def test_every_call_is_looked_after_when_its_time_is_over(world: World, cloud: NamedCloud, unanswered: int) -> None:
    """By a message of its own: a cloud that is busy for a while costs its own time, and no wait for the poll on top."""
    cloud.refuse(ProviderUnavailable("Unavailable", "try later"), times=unanswered)
    job, began_at = world.submit(), world.clock()
    world.perform()
    while not world.attempt(job).allocated_id and world.queue.waiting:
        world.let_answers_come()
        world.perform()
    assert world.attempt(job).allocated_id
    assert world.clock() - began_at == unanswered * LAUNCH_LEASE


def test_a_cloud_that_never_answers_is_named(world: World, cloud: NamedCloud) -> None:
    """Nobody looks for an agent where there is no machine."""
    cloud.refuse(ProviderUnavailable("Unavailable", "try later"), times=1000)
    job = world.submit()
    world.create_instance(job.job_id)
    world.later(minutes=11)
    assert "gave no verdict on its launch within 10 min" in world.job(job).reason
