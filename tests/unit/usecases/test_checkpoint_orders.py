"""Checkpoints that people ask for, and jobs that go on from one."""

from collections.abc import Callable

import pytest

from spotferry.domain.view import PlaceJob
from spotferry.types import IdempotencyConflict, Job, NotFound, NotPossibleNow, Upload
from spotferry.usecases.begin_again import Wish
from spotferry.usecases.keys import upload_key
from tests.fakes import QueueAwayError
from tests.unit.usecases.world import ARCHIVE, SHA, World


def cancelled(world: World, checkpoints: int, **spec: object) -> Job:
    """A job that made some checkpoints and was then cancelled."""
    job, attempt = world.running(**spec)
    for number in range(checkpoints):
        world.checkpoint(attempt, body=f"work {number + 1}".encode())
    world.steer("cancel", job.job_id, "ann")
    world.report(attempt, "released", reason="job_termination")
    world.perform()
    world.queue.take()
    return world.job(job)


def restore(world: World, job: Job, number: int | None = None, key: str = "") -> Job:
    """Bob has the job restored."""
    return world.steer("restore", job.job_id, "bob", key, Wish(checkpoint=number))


def refused(world: World, job: Job, order: Callable[[], object], error: type[Exception], words: str) -> None:
    """The order is refused in these words, and nothing is written or sent."""
    before, jobs, waiting = world.job(job), len(world.store.list_jobs("bob", 50).jobs), list(world.queue.waiting)
    with pytest.raises(error, match=words):
        order()
    assert world.job(job) == before
    assert len(world.store.list_jobs("bob", 50).jobs) == jobs
    assert world.queue.waiting == waiting


def test_a_checkpoint_that_was_asked_for(world: World) -> None:
    """The agent is told in its next heartbeat, once; the commit ends the order, and the timeline tells who asked."""
    job, attempt = world.running()
    assert world.steer("checkpoint", job.job_id, "ann").checkpoint_wanted == 1
    revision = world.steer("checkpoint", job.job_id, "bob").revision
    word = world.beat(attempt)
    assert word["directive"] == {"kind": "checkpoint", "reason": "heartbeat"}
    assert word["heartbeat_seconds"] == 2
    assert world.checkpoint(attempt)["directive"]["kind"] == "continue"
    assert world.job(job).revision == revision + 1
    assert "ann asked for checkpoint 1" in world.messages(job)


def test_a_checkpoint_needs_a_running_task(world: World) -> None:
    """Before, while it is being stopped, and after, the request is refused with where the job is."""

    def ask(job: Job, words: str) -> None:
        refused(world, job, lambda: world.steer("checkpoint", job.job_id, "bob"), NotPossibleNow, words)

    ask(world.submit(), "is PENDING: its task does not run yet")
    ask(world.set_up()[0], "is SETTING_UP: its task does not run yet")
    ask(world.interrupted()[0], "is INTERRUPTED: its task is being stopped")
    done, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    world.queue.take()
    ask(done, "is DONE: its task is over")


def test_a_cancelled_job_is_restored(world: World) -> None:
    """The new job names parent and checkpoint, begins with the parent's list, and its own are numbered on."""
    parent = cancelled(world, 3, checkpoint={"keep": 3})
    child = restore(world, parent)
    assert (child.parent_job_id, child.restored_from, child.checkpoint, child.owner) == (parent.job_id, 3, 3, "bob")
    assert world.messages(child) == [f"accepted; it goes on from checkpoint 3 of job {parent.job_id}"]
    assert world.queue.waiting == [PlaceJob(child.job_id)]
    world.perform()
    attempt = world.attempt(child)
    plan = world.hello(attempt)["plan"]
    assert (plan["mode"], [c["number"] for c in plan["checkpoints"]]) == ("restore", [3, 2, 1])
    assert f"checkpoints/{parent.job_id}/" in plan["checkpoints"][0]["parts"][0]["url"]
    world.report(attempt, "setup_finished", seconds=1)
    world.report(attempt, "task_started", restored_from=3)
    assert world.checkpoint(attempt)["number"] == 4
    assert [c.number for c in world.store.checkpoints(child.job_id)] == [4, 3, 2, 1]
    assert [c.number for c in world.store.checkpoints(parent.job_id)] == [3, 2, 1]


def test_an_earlier_checkpoint_can_be_chosen(world: World) -> None:
    """It and those before it come along, the later ones do not."""
    child = restore(world, cancelled(world, 5, checkpoint={"keep": 5}), 4)
    assert [c.number for c in world.store.checkpoints(child.job_id)] == [4, 3, 2]


def test_what_is_not_kept_cannot_be_gone_on_from(world: World) -> None:
    """A checkpoint that was pruned is told apart from one that never was."""
    job = cancelled(world, 3, checkpoint={"keep": 1})
    refused(world, job, lambda: restore(world, job, 2), NotPossibleNow, "checkpoint 2 of job .* was not kept; it has 3")
    assert [c.number for c in world.store.checkpoints(restore(world, job).job_id)] == [3]


def test_a_child_prunes_nothing_of_its_parents(world: World) -> None:
    """Its own new checkpoints push the parent's out of its list; the parent can still be restored from them."""
    parent = cancelled(world, 2)
    child = restore(world, parent)
    world.perform()
    attempt = world.attempt(child)
    world.hello(attempt)
    world.report(attempt, "setup_finished", seconds=1)
    world.report(attempt, "task_started", restored_from=2)
    for _ in range(3):
        world.checkpoint(attempt)
    assert [c.number for c in world.store.checkpoints(child.job_id) if c.pruned_at is None] == [5, 4]
    assert restore(world, parent, 1).restored_from == 1


def test_a_restore_of_a_restore(world: World) -> None:
    """A job that goes on from another one's checkpoint can itself be gone on from, before it made any."""
    child = restore(world, cancelled(world, 1))
    world.steer("cancel", child.job_id, "ann")
    world.queue.take()
    grandchild = restore(world, world.job(child))
    assert (grandchild.parent_job_id, grandchild.checkpoint) == (child.job_id, 1)


def test_a_restore_needs_a_checkpoint(world: World) -> None:
    """None at all, one that is not there, and one whose bytes have left the bucket: each is told apart."""
    nothing = cancelled(world, 0)
    refused(world, nothing, lambda: restore(world, nothing), NotPossibleNow, "has no checkpoint to go on from: retry")
    job = cancelled(world, 2)
    refused(world, job, lambda: restore(world, job, 3), NotFound, "has no checkpoint 3; it has 1, 2")
    for key in [key for key in world.objects.stored if key.startswith("checkpoints/")]:
        del world.objects.stored[key]
    refused(world, job, lambda: restore(world, job), NotPossibleNow, "checkpoint 2 of job .* has expired")


def test_a_restore_needs_a_job_that_is_over(world: World) -> None:
    """A job that runs goes on by itself."""
    job, attempt = world.running()
    world.checkpoint(attempt)
    refused(world, job, lambda: restore(world, job), NotPossibleNow, "is RUNNING: it goes on by itself")


def test_a_restore_needs_the_work_directory(world: World) -> None:
    """Setup runs in the pristine upload: without it the restore is refused."""
    world.objects.put(upload_key(SHA), ARCHIVE)
    job = world.submitted(upload=Upload(sha256=SHA, size_bytes=len(ARCHIVE))).job
    world.perform()
    attempt = world.attempt(job)
    world.hello(attempt)
    world.report(attempt, "setup_finished", seconds=1)
    world.report(attempt, "task_started")
    world.checkpoint(attempt)
    world.report(attempt, "task_exited", exit_code=1)
    world.queue.take()
    del world.objects.stored[upload_key(SHA)]
    refused(world, job, lambda: restore(world, job), NotPossibleNow, "submit it again")


@pytest.mark.parametrize(("exit_code", "mode"), [(0, "finalize"), (3, "restore")])
def test_a_task_that_had_ended_well_never_runs_again(world: World, exit_code: int, mode: str) -> None:
    """From its last checkpoint only the outputs are sent; one that had failed runs again on what it left."""
    job, attempt = world.running(outputs=["out"])
    world.checkpoint(attempt, task_over=True, exit_code=exit_code, reason="job_termination")
    world.report(attempt, "task_exited", exit_code=exit_code, outputs=True)
    world.report(attempt, "outputs_failed", reason="the network")
    world.queue.take()
    child = restore(world, world.job(job))
    world.perform()
    assert world.hello(world.attempt(child))["plan"]["mode"] == mode


@pytest.mark.parametrize("order", ["retry", "restore"])
def test_the_same_key_is_the_same_new_job(world: World, order: str) -> None:
    """Asked twice, made once, also when what the first one owed was lost; the key for something else is refused."""
    job = cancelled(world, 1)
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.steer(order, job.job_id, "bob", "k1")
    again = world.steer(order, job.job_id, "bob", "k1")
    assert world.queue.waiting == [PlaceJob(again.job_id)]
    assert world.steer(order, job.job_id, "bob", "k2").job_id != again.job_id
    other = cancelled(world, 1)
    with pytest.raises(IdempotencyConflict, match=again.job_id):
        world.steer(order, other.job_id, "bob", "k1")
    assert world.steer(order, job.job_id, "bob", "k1").job_id == again.job_id


def test_a_key_of_a_submission_makes_no_other_job(world: World) -> None:
    """One person's keys are one set, whatever they are used for."""
    world.submit(key="k1")
    job = cancelled(world, 1)
    with pytest.raises(IdempotencyConflict):
        world.steer("retry", job.job_id, "ann", "k1")
