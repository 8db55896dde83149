"""The four steps of every change: load, decide, save, perform."""

import pytest

from spotferry.domain import events as e
from spotferry.domain.owed import owed
from spotferry.domain.repeats import REPEATS_WITHIN
from spotferry.types import Conflict, IllegalTransition, JobState, NotFound
from tests.fakes import QueueAwayError
from tests.unit.usecases.world import World, warning


def test_nothing_is_sent_that_was_not_saved(world: World) -> None:
    """A save that fails sends nothing."""
    job, _ = world.launched()
    world.store.conflict_saves(6)
    sent = len(world.queue.sent)
    with pytest.raises(Conflict):
        world.change(job.job_id, e.CancelRequested("ann"))
    assert len(world.queue.sent) == sent
    assert world.state(job) is JobState.PROVISIONING


def test_a_conflict_decides_again_on_what_is_there_now(world: World) -> None:
    """The event is applied to the version that was saved in between, not to the one that was loaded first."""
    job, attempt = world.running()
    world.store.conflict_saves(5)
    view = world.change(job.job_id, e.CancelRequested("ann"))
    assert view.job.state is JobState.CANCELLING
    assert world.job(job) == view.job
    assert view.attempts[attempt.cedana_id].cedana_id == attempt.cedana_id


def test_a_view_that_is_not_the_latest_saves_nothing(world: World) -> None:
    """A decision on an old version is refused whole."""
    job, _ = world.running()
    old = world.store.load(job.job_id)
    world.change(job.job_id, e.CancelRequested("ann"))
    revision = world.job(job).revision
    with pytest.raises(Conflict):
        world.change.on(old, e.CancelRequested("bob"))
    assert world.job(job).revision == revision


def test_an_event_may_turn_out_to_be_none(world: World) -> None:
    """A function that finds nothing to say leaves the job alone."""
    job, _ = world.running()
    saves = world.store.saves
    assert world.change(job.job_id, lambda _: None).job == world.job(job)
    assert world.store.saves == saves


def test_an_event_that_turns_out_to_be_none_sends_what_is_owed(world: World) -> None:
    """Somebody may have saved it and crashed."""
    job, _ = world.running()
    world.queue.take()
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.report(world.attempt(job), "task_exited", exit_code=0)
    view = world.change(job.job_id, lambda _: None)
    assert world.queue.take() == list(owed(view)) != []


def test_an_event_made_of_the_view_sees_what_was_loaded(world: World) -> None:
    """The function is asked again after a conflict."""
    job, _ = world.running()
    world.store.conflict_saves(1)
    seen: list[int] = []

    def event(view: object) -> e.Event:
        seen.append(id(view))
        return e.CancelRequested("ann")

    world.change(job.job_id, event)
    assert len(seen) == 2


def test_every_change_has_its_timeline_entry(world: World) -> None:
    """Entry and job are saved together, under the same revision."""
    job, _ = world.running()
    assert world.store.timeline(job.job_id)[-1].revision == world.job(job).revision
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.change(job.job_id, e.NoticeReceived(world.attempt(job).cedana_id, "x"))
    assert world.store.timeline(job.job_id)[-1].event == "notice_received"


def test_what_does_not_exist_or_cannot_be_is_said(world: World) -> None:
    """Unknown jobs and attempts, and events that the state cannot take, are errors of their own."""
    job, _ = world.running()
    with pytest.raises(NotFound):
        world.change("j-none", e.CancelRequested("ann"))
    with pytest.raises(NotFound):
        world.change(job.job_id, e.MachineGone("i-none"), "i-none")
    with pytest.raises(IllegalTransition):
        world.change(job.job_id, e.RetryRequested("ann"))


def test_what_was_owed_before_is_not_sent_again_by_the_next_change(world: World) -> None:
    """While a placement is under way, each further change of the job breeds no second one."""
    _, owner = world.running()
    world.interruption(warning(owner))
    world.queue.take()
    world.checkpoint(owner)
    world.report(owner, "checkpoint_failed", reason="disk full")
    assert world.queue.waiting == []


def test_who_changed_the_job_is_told(world: World) -> None:
    """A decision that was saved has an entry, one that found nothing to do has none."""
    job, _ = world.running()
    assert world.change.decided(job.job_id, e.CancelRequested("ann")).entry is not None
    assert world.change.decided(job.job_id, e.CancelRequested("bob")).entry is None


def test_a_person_who_is_refused_sends_nothing(world: World) -> None:
    """However often the order is given: it was never saved, so nothing is owed because of it."""
    job = world.submit()
    world.queue.take()
    for _ in range(3):
        with pytest.raises(IllegalTransition):
            world.change(job.job_id, e.RetryRequested("ann"))
    assert world.queue.take() == []


def test_a_stale_agent_that_goes_on_reporting_sends_nothing(world: World) -> None:
    """Only a repeat of what was heard, soon after it, may find something that was not sent."""
    job, owner = world.running()
    news = e.TaskStarted(owner.cedana_id, report=3)
    world.change(job.job_id, e.MachineGone(owner.cedana_id, "it failed"), owner.cedana_id)
    world.queue.take()
    with pytest.raises(IllegalTransition):
        world.change(job.job_id, news, owner.cedana_id)
    assert world.queue.take() == []
    repeated = e.TaskStarted(owner.cedana_id)
    with pytest.raises(IllegalTransition):
        world.change(job.job_id, repeated, owner.cedana_id)
    assert world.queue.take() == list(owed(world.store.load(job.job_id))) != []
    world.clock.move(seconds=REPEATS_WITHIN.total_seconds() + 1)
    with pytest.raises(IllegalTransition):
        world.change(job.job_id, repeated, owner.cedana_id)
    assert world.queue.take() == []


def test_a_refusal_is_told_also_where_the_queue_is_away(world: World) -> None:
    """The caller hears what is wrong with the call; what is owed is left to the poll, and the error says so."""
    job, owner = world.running()
    world.change(job.job_id, e.MachineGone(owner.cedana_id, "it failed"), owner.cedana_id)
    world.queue.fail()
    with pytest.raises(IllegalTransition) as caught:
        world.change(job.job_id, e.TaskStarted(owner.cedana_id), owner.cedana_id)
    assert "left to the poll" in caught.value.__notes__[0]
