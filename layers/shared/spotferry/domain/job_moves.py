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
    wants_machine,
)
from spotferry.domain.view import View
from spotferry.types.instance import AttemptPhase
from spotferry.types.job import JobState


def placement_deferred(view: View, event: e.PlacementDeferred, now: datetime) -> Moved | None:
    """Nothing is free: the next try is later."""
    if not wants_machine(view):
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
    owner = view.owner
    if owner is None:
        return Moved(finish(view, JobState.CANCELLED, f"cancelled by {event.by}"), f"cancelled by {event.by}")
    successor = view.job.successor_id
    view = view.with_job(
        state=JobState.CANCELLING,
        reason=f"cancelled by {event.by}; its task is being stopped",
        deadline=now + view.policy.cancel,
        successor_id=None,
    )
    if successor:
        view = end(view, successor, "the job is cancelled")
    if owner.arrived_at is None:
        view = end_all(view, "the job is cancelled")
    return Moved(view, f"cancelled by {event.by}; stopping the task")


def retry_requested(view: View, event: e.RetryRequested, now: datetime) -> Moved | None:
    """The held machine tries again."""
    view = changed(view, str(view.job.owner_id), phase=AttemptPhase.ARRIVED)
    view = view.with_job(state=JobState.SETTING_UP, reason=f"retried by {event.by}", deadline=None)
    return Moved(view, f"retry asked for by {event.by}")


def hold_expired(view: View, event: e.HoldExpired, now: datetime) -> Moved | None:
    """Nobody came."""
    reason = f"{view.job.reason}; nobody asked for a retry in time"
    return Moved(finish(view, JobState.FAILED, reason), reason)
