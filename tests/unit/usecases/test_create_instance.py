"""A job that waits gets a machine: one, whatever comes twice or gets lost."""

from datetime import timedelta

import pytest

from spotferry.domain.view import CheckLaunch, PlaceJob
from spotferry.types import (
    AttemptPhase,
    Conflict,
    JobState,
    ProviderUnavailable,
    SpotferryError,
    TryAgainLater,
)
from spotferry.usecases.keys import agent_key
from tests.fakes import OFFERS, FakeCatalogue, QueueAwayError
from tests.unit.usecases.world import BUNDLE, World, state_change


def test_the_cheapest_is_chosen_saved_and_made(world: World) -> None:
    """The intent with price, plan and request is saved, the machine is made, and the job is PROVISIONING."""
    job, attempt = world.launched(name="count")
    assert job.state is JobState.PROVISIONING
    assert (attempt.instance_type, attempt.availability_zone, attempt.market) == ("t3.small", "us-east-1a", "spot")
    assert attempt.allocated_id == "i-00000000000000001"
    assert attempt.phase is AttemptPhase.CREATED
    assert attempt.plan["chosen"]["instance_type"] == "t3.small"
    assert world.cloud.living() == [attempt.cedana_id]


def test_the_request_carries_all_that_a_repeat_needs(world: World) -> None:
    """Tags name deployment, job, instance and epoch; agent and broker are fixed with the intent."""
    job, attempt = world.launched()
    assert attempt.launch is not None
    assert attempt.launch.tags["spotferry:deployment"] == "test"
    assert attempt.launch.tags["spotferry:job"] == job.job_id
    assert attempt.launch.tags["spotferry:instance"] == attempt.cedana_id
    assert attempt.launch.tags["spotferry:epoch"] == "1"
    assert attempt.launch.agent_sha256 == BUNDLE.sha256
    assert attempt.launch.broker_url == "https://broker"


def test_the_agent_is_published_before_the_first_machine_and_once(world: World) -> None:
    """The file that machines fetch is in the bucket, and not written again for the next job."""
    world.launched()
    world.launched()
    assert world.objects.stored[agent_key(BUNDLE.sha256)] == BUNDLE.body
    assert world.objects.puts.count(agent_key(BUNDLE.sha256)) == 1


def test_the_intent_is_saved_before_the_cloud_is_asked(world: World) -> None:
    """A store that refuses the intent leaves no machine."""
    job = world.submit()
    world.store.fail_saves(SpotferryError("the store is away"))
    with pytest.raises(SpotferryError, match="away"):
        world.create_instance(job.job_id)
    assert world.cloud.machines == {}


def test_a_placement_that_is_delivered_twice_makes_one_machine(world: World) -> None:
    """The second delivery finds nothing to do."""
    job, _ = world.launched()
    assert world.create_instance(job.job_id) is None
    assert len(world.cloud.machines) == 1
    assert world.job(job).epoch == 1


def test_of_two_placements_at_once_one_saves_its_intent(world: World) -> None:
    """The one that lost the race finds the other's attempt, and asks for the very same machine."""
    job = world.submit()
    stale = world.store.load(job.job_id)
    world.create_instance(job.job_id)
    with pytest.raises(Conflict):
        world.create_instance._place(stale)
    assert world.create_instance(job.job_id) is None
    assert len(world.cloud.machines) == 1
    assert len(world.store.attempts_of(job.job_id)) == 1


def test_a_job_that_was_changed_meanwhile_is_placed_all_the_same(world: World) -> None:
    """A save that lost to somebody else's is made again on the new version, at once."""
    job = world.submit()
    world.store.conflict_saves(3)
    world.perform()
    assert world.state(job) is JobState.PROVISIONING


def test_a_job_that_is_changed_all_the_time_is_placed_a_little_later(world: World) -> None:
    """After so many lost saves the message is acknowledged and another one is sent; the queue's retries stay whole."""
    job = world.submit()
    world.store.conflict_saves(6)
    world.queue.take()
    assert world.create_instance(job.job_id) is None
    assert world.queue.waiting == [PlaceJob(job.job_id, world.clock.now + timedelta(seconds=5))]


def test_a_crash_after_the_save_is_healed_by_the_redelivery(world: World) -> None:
    """Intent saved, effects lost: the redelivered message asks the cloud with the same token."""
    job = world.submit()
    world.queue.take()
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.create_instance(job.job_id)
    assert world.cloud.machines == {}
    world.let_answers_come()
    world.create_instance(job.job_id)
    assert world.attempt(job).allocated_id
    assert len(world.store.attempts_of(job.job_id)) == 1


def test_a_crash_after_the_save_is_healed_by_the_poll(world: World) -> None:
    """Intent saved, nothing redelivered: one poll and its effects make the machine."""
    job = world.submit()
    world.queue.take()
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.create_instance(job.job_id)
    world.poll()
    world.perform()
    assert world.attempt(job).allocated_id


def test_an_answer_that_was_lost_is_found_by_the_check(world: World) -> None:
    """The machine was made, its answer lost: the CheckLaunch finds it, and buys no second one."""
    world.cloud.lose_answer()
    job = world.submit()
    world.create_instance(job.job_id)
    attempt = world.attempt(job)
    assert attempt.allocated_id == ""
    assert CheckLaunch(job.job_id, attempt.cedana_id) in world.queue.waiting
    world.let_answers_come()
    world.check_launch(job.job_id, attempt.cedana_id)
    assert world.attempt(job).allocated_id == world.cloud.machines[attempt.cedana_id].allocated_id
    assert world.cloud.calls["create"] == 1


def test_an_answer_that_was_lost_and_does_not_show_is_asked_for_again(world: World) -> None:
    """A machine that the cloud does not show yet is had by the same token."""
    world.cloud.lose_answer()
    world.cloud.hidden = True
    job = world.submit()
    world.perform()
    assert len(world.cloud.machines) == 1
    assert world.attempt(job).allocated_id == "i-00000000000000001"


def test_no_verdict_leaves_the_question_open(world: World) -> None:
    """A cloud that is away costs nothing but time: no attempt is closed, the check asks again."""
    world.cloud.refuse(ProviderUnavailable("Unavailable", "try later"), times=1)
    job = world.submit()
    world.create_instance(job.job_id)
    assert world.state(job) is JobState.PROVISIONING
    world.let_answers_come()
    world.check_launch(job.job_id, world.attempt(job).cedana_id)
    assert world.attempt(job).allocated_id


def test_a_throttled_launch_is_asked_again_with_the_same_token(world: World) -> None:
    """TryAgainLater sets nothing aside and stays the same attempt."""
    world.cloud.refuse(TryAgainLater("RequestLimitExceeded", "slow down"))
    job = world.submit()
    world.perform()
    assert len(world.store.attempts_of(job.job_id)) == 1
    assert world.store.bans(["aws"], world.clock()) == {}


def test_a_message_that_comes_too_early_changes_nothing_and_breeds_none(world: World) -> None:
    """The wait stands, and the message that was sent for its end stays the only one."""
    world.store.ban("aws", "spot", "*/*/*", world.clock.now.replace(year=2027), "all is taken")
    job = world.submit()
    world.perform()
    before = list(world.queue.waiting)
    assert world.create_instance(job.job_id) is None
    assert world.queue.waiting == before
    assert world.job(job).tries == 1


def test_a_machine_that_is_free_again_ends_the_wait(world: World) -> None:
    """The job goes on once something is free, and its count of fruitless tries begins anew."""
    world.store.ban("aws", "spot", "*/*/*", world.clock.now + timedelta(seconds=10), "all is taken")
    job = world.submit()
    world.perform()
    world.clock.move(seconds=15)
    world.perform()
    assert world.state(job) is JobState.PROVISIONING
    assert world.job(job).tries == 0


def test_nothing_that_fits_fails_the_job_by_the_name_of_its_condition(world: World) -> None:
    """When the catalogue changed under an accepted job, it fails at once and says why."""
    job = world.submit(instance_specs={"memory_gb": 16})
    world.catalogue = FakeCatalogue(OFFERS[:2])
    world.perform()
    assert world.state(job) is JobState.FAILED
    assert "memory_gb" in world.job(job).reason
    assert world.job(job).is_settled


def test_a_successor_avoids_the_pool_that_takes_the_machine_back(world: World) -> None:
    """The next machine of an interrupted job comes from another pool, and waits under the next epoch."""
    job, owner, successor = world.interrupted()
    assert job.state is JobState.INTERRUPTED
    assert job.successor_id == successor.cedana_id
    assert successor.epoch == 2
    assert (successor.instance_type, successor.availability_zone) != (owner.instance_type, owner.availability_zone)


def test_a_pool_that_this_job_just_lost_is_avoided_without_any_ban(world: World) -> None:
    """A machine that merely stops sets nothing aside for others, but this job looks elsewhere."""
    job, owner = world.running()
    world.interruption(state_change(owner, "stopping"))
    world.perform()
    assert world.store.bans(["aws"], world.clock()) == {}
    assert world.attempt(job).availability_zone != owner.availability_zone


def test_a_job_that_is_over_gets_no_machine(world: World) -> None:
    """A placement that comes after a cancel does nothing."""
    job = world.submit()
    world.steer("cancel", job.job_id, "ann")
    assert world.create_instance(job.job_id) is None
    assert world.cloud.machines == {}
    assert world.state(job) is JobState.CANCELLED
