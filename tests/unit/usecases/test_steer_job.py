"""People's orders: cancel, retry, end a machine."""

import pytest

from spotferry.domain.view import DestroyInstance, PlaceJob
from spotferry.types import JobState, NotFound, NotPossibleNow, Upload
from spotferry.usecases.keys import upload_key
from tests.fakes import QueueAwayError
from tests.unit.usecases.world import ARCHIVE, SHA, World


def test_a_job_that_waits_is_cancelled_at_once(world: World) -> None:
    """No machine, nothing to stop."""
    job = world.submit()
    assert world.steer("cancel", job.job_id, "ann").state is JobState.CANCELLED
    assert world.job(job).is_settled


def test_a_job_that_waits_for_capacity_is_cancelled_at_once(world: World) -> None:
    """The message that still waits for its time finds nothing to do."""
    world.store.ban("aws", "spot", "*/*/*", world.clock.now.replace(year=2027), "all is taken")
    job = world.submit()
    world.perform()
    world.steer("cancel", job.job_id, "ann")
    world.clock.move(minutes=1)
    world.perform()
    assert world.state(job) is JobState.CANCELLED
    assert world.cloud.machines == {}


def test_a_running_task_is_stopped_first(world: World) -> None:
    """The agent is told to stop; the machine is not pulled from under it."""
    job, _ = world.running()
    assert world.steer("cancel", job.job_id, "ann").state is JobState.CANCELLING
    assert world.queue.waiting == []
    assert "ann" in world.job(job).reason


def test_an_interrupted_job_is_cancelled_with_its_successor(world: World) -> None:
    """The successor's machine is ended at once, the owner's when its task has stopped."""
    job, owner, successor = world.interrupted()
    world.steer("cancel", job.job_id, "ann")
    assert world.queue.waiting == [DestroyInstance(job.job_id, successor.cedana_id, successor.allocated_id)]
    assert world.beat(owner)["directive"] == {"kind": "release", "reason": "instance_termination"}
    world.report(owner, "released")
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.state(job) is JobState.CANCELLED
    assert world.job(job).is_settled


def test_a_cancel_may_come_twice_or_too_late(world: World) -> None:
    """A second cancel, or one of a job that is over, changes nothing and is no error."""
    job, attempt = world.running()
    world.steer("cancel", job.job_id, "ann")
    revision = world.job(job).revision
    assert world.steer("cancel", job.job_id, "bob").revision == revision
    done, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    assert world.steer("cancel", done.job_id, "ann").state is JobState.DONE


def test_a_cancel_whose_effects_were_lost_is_healed_by_its_repeat(world: World) -> None:
    """Saved, not sent: the second cancel sends what is owed."""
    job, attempt = world.launched()
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.steer("cancel", job.job_id, "ann")
    world.steer("cancel", job.job_id, "ann")
    assert world.queue.waiting == [DestroyInstance(job.job_id, attempt.cedana_id, attempt.allocated_id)]


def test_a_job_on_hold_is_retried_on_its_machine(world: World) -> None:
    """The same machine tries again; no new attempt is made."""
    job, attempt = world.set_up()
    world.report(attempt, "setup_failed", exit_code=1)
    assert world.steer("retry", job.job_id, "ann").state is JobState.SETTING_UP
    assert world.job(job).epoch == 1
    assert world.job(job).deadline is None


@pytest.mark.parametrize("exit_code", [0, 3])
def test_a_job_that_is_over_is_retried_as_a_new_one(world: World, exit_code: int) -> None:
    """The new job names its parent, has the same job file and work directory, and gets a machine."""
    job, attempt = world.running(name="count")
    world.report(attempt, "task_exited", exit_code=exit_code)
    world.queue.take()
    again = world.steer("retry", job.job_id, "bob")
    assert again.job_id != job.job_id
    assert (again.parent_job_id, again.owner, again.spec) == (job.job_id, "bob", job.spec)
    assert world.queue.waiting == [PlaceJob(again.job_id)]
    assert world.job(job).state.is_final


def test_a_job_under_way_cannot_be_retried(world: World) -> None:
    """The refusal says where the job is."""
    job, _ = world.running()
    with pytest.raises(NotPossibleNow, match="RUNNING"):
        world.steer("retry", job.job_id, "ann")


@pytest.mark.parametrize("order", ["cancel", "checkpoint", "retry", "restore"])
def test_a_job_that_does_not_exist_takes_no_order(world: World, order: str) -> None:
    """An unknown id is said to be unknown."""
    with pytest.raises(NotFound, match="j-none"):
        world.steer(order, "j-none", "ann")


def test_an_order_that_does_not_exist_is_refused(world: World) -> None:
    """The job is left as it is."""
    job, _ = world.running()
    with pytest.raises(NotFound, match="explode"):
        world.steer("explode", job.job_id, "ann")


def test_a_machine_whose_task_runs_is_checkpointed_before_it_ends(world: World) -> None:
    """Who ended it is in the record; its agent saves the work first, and the job goes on elsewhere."""
    job, attempt = world.running()
    assert world.steer.end_machine(attempt.cedana_id, "ann").end_reason == "ann asked for its end"
    world.steer.end_machine(attempt.cedana_id, "bob")
    assert world.beat(attempt)["directive"]["kind"] == "release"
    world.checkpoint(attempt)
    world.report(attempt, "released", reason="instance_termination")
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.attempt(job, 0).end_reason == "ann asked for its end"
    assert world.attempt(job, 0).is_gone
    assert world.job(job).owner_id == world.attempt(job, 1).cedana_id
    assert world.job(job).checkpoint == 1
    assert world.job(job).interruptions == 0
    assert world.steer.end_machine(attempt.cedana_id, "ann").is_gone


def test_a_machine_without_a_task_ends_at_once(world: World) -> None:
    """There is nothing to save on a machine that was only just asked for."""
    job, attempt = world.launched()
    assert world.steer.end_machine(attempt.cedana_id, "ann").ending
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.attempt(job, 0).is_gone


def test_a_retry_needs_the_work_directory(world: World) -> None:
    """A job whose upload has expired cannot be repeated, and says what to do."""
    upload = Upload(sha256=SHA, size_bytes=len(ARCHIVE))
    world.objects.put(upload_key(SHA), ARCHIVE)
    job = world.submitted(upload=upload).job
    world.steer("cancel", job.job_id, "ann")
    del world.objects.stored[upload_key(SHA)]
    with pytest.raises(NotPossibleNow, match="submit it again"):
        world.steer("retry", job.job_id, "ann")


def test_a_machine_that_does_not_exist_cannot_be_ended(world: World) -> None:
    """An unknown id is said to be unknown."""
    with pytest.raises(NotFound, match="i-none"):
        world.steer.end_machine("i-none", "ann")
