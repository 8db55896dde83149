"""What placement, people and time do to a job.

A move gets the view, the event and the time, and returns the view after it with a sentence for the timeline; None when
the event repeats what is known and nothing changes. Which pairs of state and event may move at all is `transitions`'.
"""

from datetime import datetime

from spotferry.domain import events as e
from spotferry.domain.handover import (
    Moved,
    changed,
    end,
    end_all,
    finish,
    leave_by,
    want_checkpoint,
)
from spotferry.domain.owed import wants_machine
from spotferry.domain.view import View
from spotferry.types.instance import AttemptPhase
from spotferry.types.job import JobState


def placement_deferred(view: View, event: e.PlacementDeferred, now: datetime) -> Moved | None:
    """Nothing is free: the next try is later."""
    if not wants_machine(view) or view.job.next_try_at == event.retry_at:
        return None
    view = view.with_job(next_try_at=event.retry_at, tries=view.job.tries + 1)
    if view.job.state is JobState.PENDING:
        view = view.with_job(reason=event.reason)
    return Moved(view, f"no machine now: {event.reason}; next try at {event.retry_at:%H:%M:%S} UTC")


def placement_impossible(view: View, event: e.PlacementImpossible, now: datetime) -> Moved | None:
    """Nothing can ever fit."""
    return Moved(finish(view, JobState.FAILED, event.reason), f"no machine can ever fit: {event.reason}")


def cancel_requested(view: View, event: e.CancelRequested, now: datetime) -> Moved | None:
    """The job ends as soon as its task is stopped."""
    return _wind_down(view, JobState.CANCELLED, f"cancelled by {event.by}", now)


def limit_reached(view: View, event: e.LimitReached, now: datetime) -> Moved | None:
    """As a cancel, but the job has failed."""
    return _wind_down(view.with_job(limit=event.limit), JobState.FAILED, event.limit, now)


def _wind_down(view: View, outcome: JobState, why: str, now: datetime) -> Moved:
    """The task, once it had started, makes a last checkpoint and is stopped; with it the job comes to its outcome."""
    owner = view.owner
    if owner is None:
        return Moved(finish(view, outcome, why), why)
    successor, started = view.job.successor_id, owner.started_at is not None
    view = view.with_job(
        state=JobState.CANCELLING,
        reason=f"{why}; its task is being stopped",
        deadline=leave_by(view, now) if started else now + view.policy.cancel,
        successor_id=None,
        checkpoint_wanted=0,
    )
    ended = "the job is cancelled" if outcome is JobState.CANCELLED else "the job has reached a limit"
    if successor:
        view = end(view, successor, ended)
    if owner.arrived_at is None:
        view = end_all(view, ended)
    return Moved(view, f"{why}; stopping the task" + (" after a last checkpoint" if started else ""))


def checkpoint_requested(view: View, event: e.CheckpointRequested, now: datetime) -> Moved | None:
    """The task's agent is told to make one; a second person asks for the same."""
    if view.job.wants_checkpoint:
        return None
    view = want_checkpoint(view)
    return Moved(view, f"{event.by} asked for checkpoint {view.job.checkpoint_wanted}")


def retry_requested(view: View, event: e.RetryRequested, now: datetime) -> Moved | None:
    """The held machine tries again."""
    view = changed(view, str(view.job.owner_id), phase=AttemptPhase.ARRIVED)
    view = view.with_job(state=JobState.SETTING_UP, reason=f"retried by {event.by}", deadline=None)
    return Moved(view, f"retry asked for by {event.by}")


def hold_expired(view: View, event: e.HoldExpired, now: datetime) -> Moved | None:
    """Nobody came."""
    reason = f"{view.job.reason}; nobody asked for a retry in time"
    return Moved(finish(view, JobState.FAILED, reason), reason)
