"""Calls whose answer was lost between save and effect: the repeat performs what is still owed, and nothing else."""

from collections.abc import Callable, Mapping

import pytest

from spotferry.domain.owed import owed
from spotferry.types import JobState, StaleAttempt
from spotferry.usecases.archive_calls import Commit
from tests.fakes import QueueAwayError
from tests.unit.usecases.world import World

Repeated = Callable[[World], tuple[str, Callable[[], object]]]
"""Brings a job about, and the call on it that is made twice."""


def _released(world: World) -> tuple[str, Callable[[], object]]:
    job, attempt = world.running()
    return job.job_id, lambda: world.report(attempt, "released", reason="instance_termination")


def _exited(world: World) -> tuple[str, Callable[[], object]]:
    job, attempt = world.running()
    return job.job_id, lambda: world.report(attempt, "task_exited", exit_code=0)


def _noticed(world: World) -> tuple[str, Callable[[], object]]:
    job, attempt = world.running()
    return job.job_id, lambda: world.report(attempt, "notice", kind="take_back", code="terminate")


def _sent(world: World) -> tuple[str, Callable[[], object]]:
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    commit = world.send_bytes(attempt, "outputs")
    return job.job_id, lambda: world.commit(attempt, commit)


def _cancelled(world: World) -> tuple[str, Callable[[], object]]:
    job, _ = world.launched()
    return job.job_id, lambda: world.steer("cancel", job.job_id, "ann")


def _ended(world: World) -> tuple[str, Callable[[], object]]:
    job, attempt = world.running()
    return job.job_id, lambda: world.steer.end_machine(attempt.cedana_id, "ann")


def _ended_early(world: World) -> tuple[str, Callable[[], object]]:
    job, attempt = world.launched()
    return job.job_id, lambda: world.steer.end_machine(attempt.cedana_id, "ann")


CALLS: Mapping[str, Repeated] = {
    "released": _released,
    "task_exited": _exited,
    "notice": _noticed,
    "outputs": _sent,
    "cancel": _cancelled,
    "end of a machine at work": _ended,
    "end of a machine that starts": _ended_early,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_repeat_sends_what_the_first_call_saved_and_did_not_send(world: World, call: Repeated) -> None:
    """The caller repeats within seconds: nobody has to wait for the next poll."""
    job_id, act = call(world)
    world.queue.take()
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        act()
    revision = world.store.get_job(job_id).revision
    still_owed = owed(world.store.load(job_id))
    assert still_owed
    act()
    assert world.store.get_job(job_id).revision == revision
    assert set(world.queue.take()) == set(still_owed)


def test_a_machine_whose_end_is_asked_for_twice_still_leaves_a_checkpoint(world: World) -> None:
    """The second call does not pull the machine from under the checkpoint that the first one asked for."""
    job, attempt = world.running()
    world.steer.end_machine(attempt.cedana_id, "ann")
    world.steer.end_machine(attempt.cedana_id, "ann")
    world.perform()
    assert world.state(job) is JobState.INTERRUPTED
    assert world.cloud.destroyed == []
    assert not world.attempt(job, 0).ending


def test_a_commit_that_counts_keeps_its_bytes_when_its_repeat_is_refused(world: World) -> None:
    """The repeat was let in before its machine was known to be gone: the job goes on from this very checkpoint."""
    job, attempt = world.running()
    commit = Commit.model_validate(world.send_bytes(attempt))
    let_in = world.attempt(job)
    world.archive.commit(let_in, commit)
    world.cloud.terminate(attempt.cedana_id)
    world.later(minutes=1)
    with pytest.raises(StaleAttempt):
        world.archive.commit(let_in, commit)
    (checkpoint,) = world.store.checkpoints(job.job_id)
    assert all(world.objects.head(part.key) for part in checkpoint.manifest.parts)
