"""What time alone calls for, and what a poll makes of it."""

import pytest

from spotferry.types import JobState, ProviderUnavailable, SpotferryError
from tests.unit.usecases.world import World


def test_a_silent_agent_loses_its_machine_but_the_job_moves_when_the_cloud_confirms(world: World) -> None:
    """Silence condemns the machine; the job passes on only once the cloud says that it is gone."""
    job, attempt = world.running()
    world.later(minutes=19)
    assert world.state(job) is JobState.RUNNING
    world.later(minutes=1)
    assert world.state(job) is JobState.INTERRUPTED
    assert world.job(job).owner_id == attempt.cedana_id
    assert "silent for 20 min" in world.job(job).reason
    world.perform()
    assert attempt.cedana_id in world.cloud.destroyed
    assert world.job(job).owner_id == attempt.cedana_id
    world.cloud.finish_ending()
    world.poll()
    assert world.job(job).owner_id == world.attempt(job).cedana_id != attempt.cedana_id


def test_a_heartbeat_keeps_the_machine(world: World) -> None:
    """An agent that speaks is never condemned for silence."""
    job, attempt = world.running()
    for _ in range(3):
        world.clock.move(minutes=15)
        world.beat(attempt)
        world.poll()
    assert world.state(job) is JobState.RUNNING


def test_a_machine_that_never_reports_is_replaced_and_three_fail_the_job(world: World) -> None:
    """Each machine gets its time to boot; after three in a row the job is FAILED and says so."""
    job, _ = world.launched()
    for number in (1, 2, 3):
        assert world.job(job).epoch == number
        world.later(minutes=10)
        world.perform()
        world.cloud.finish_ending()
        world.poll()
        world.perform()
        world.cloud.finish_ending()
        world.poll()
    # Each condemned machine had a successor: it inherits, and must report in its own time.
    assert world.state(job) is JobState.FAILED
    assert "3 machines in a row never reported" in world.job(job).reason
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.job(job).is_settled
    assert world.cloud.living() == []


def test_a_cloud_without_a_verdict_never_fails_the_job(world: World) -> None:
    """Launches that are never answered are given up one after the other, but no machine failed to report."""
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"), times=1000)
    job = world.submit()
    for _ in range(60):
        world.perform()
        world.later(minutes=2)
    assert not world.state(job).is_final
    assert world.job(job).startup_failures == 0
    world.cloud._faults.clear()
    for _ in range(10):
        world.perform()
        world.later(minutes=2)
    assert world.cloud.living()


def test_a_machine_outlives_its_job_by_two_polls_at_most(world: World) -> None:
    """The order to end it was lost with the queue: one poll sends it again, the next sees it gone."""
    job, attempt = world.running()
    world.queue.fail()
    with pytest.raises(SpotferryError):
        world.report(attempt, "task_exited", exit_code=0)
    world.later(minutes=1)
    world.perform()
    world.cloud.finish_ending()
    world.later(minutes=1)
    assert world.job(job).is_settled
    assert world.cloud.living() == []


def test_a_false_notice_ends_in_another_machine(world: World) -> None:
    """A machine that was to be taken back and is still there a minute past its time is ended by us."""
    job, owner, successor = world.interrupted()
    world.later(minutes=3)
    world.perform()
    assert owner.cedana_id in world.cloud.destroyed
    world.cloud.finish_ending()
    world.poll()
    assert world.job(job).owner_id == successor.cedana_id


def test_a_hold_that_nobody_ends_fails_the_job(world: World) -> None:
    """The machine waits for its time, then the job is FAILED with what went wrong."""
    job, attempt = world.set_up()
    world.report(attempt, "setup_failed", exit_code=2, line="make")
    world.later(minutes=9)
    assert world.state(job) is JobState.SETUP_FAILED
    world.later(minutes=1)
    assert world.state(job) is JobState.FAILED
    assert world.job(job).reason == "setup failed with status 2 at `make`; nobody asked for a retry in time"


def test_a_task_that_outlives_its_cancel_is_ended_with_its_machine(world: World) -> None:
    """Past the deadline of a cancel the machine is ended, and with it the job."""
    job, _ = world.running()
    world.steer("cancel", job.job_id, "ann")
    world.later(minutes=2)
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.state(job) is JobState.CANCELLED
    assert world.job(job).is_settled
