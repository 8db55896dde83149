"""How a job's ownership begins, passes and ends: the steps that the moves of the state machine are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

from spotferry.domain.costs import attempt_cost
from spotferry.domain.reason_words import status_words
from spotferry.domain.view import View
from spotferry.types.instance import Attempt, AttemptPhase
from spotferry.types.job import HOLD_STATES, Job, JobState

_NANO_USD = Decimal("0.000000001")


@dataclass(frozen=True, slots=True)
class Moved:
    """The outcome of one event.

    Attributes:
        view: the view after it.
        message: the change in words.
        data: figures for programs.
    """

    view: View
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON, by event


class Role(Enum):
    """What an attempt is to its job."""

    OWNER = "owner"
    SUCCESSOR = "successor"
    OTHER = "other"


def role_of(view: View, instance_id: str) -> Role:
    """What the attempt is to the job now."""
    if instance_id == view.job.owner_id:
        return Role.OWNER
    return Role.SUCCESSOR if instance_id == view.job.successor_id else Role.OTHER


def attempt_of(view: View, instance_id: str) -> Attempt:
    """The attempt that an event is about; the caller loaded it with the view."""
    return view.attempts[instance_id]


def changed(view: View, instance_id: str, **changes: object) -> View:
    """The view with fields of one attempt changed."""
    return view.with_attempt(attempt_of(view, instance_id).model_copy(update=changes))


def end(view: View, instance_id: str, reason: str) -> View:
    """Order the machine's end; the first reason stands."""
    attempt = attempt_of(view, instance_id)
    if attempt.ending or attempt.is_gone:
        return view
    return changed(view, instance_id, ending=True, end_reason=attempt.end_reason or reason)


def end_all(view: View, reason: str) -> View:
    """Order the end of every machine of the job."""
    for attempt in view.open_attempts():
        view = end(view, attempt.cedana_id, reason)
    return view


def finish(view: View, state: JobState, reason: str) -> View:
    """The job reaches its final state; all its machines are to end."""
    view = view.with_job(
        state=state, reason=reason, deadline=None, next_try_at=None, successor_id=None, checkpoint_wanted=0
    )
    return end_all(view, f"the job is {state}")


def task_result(job: Job, exit_code: int) -> tuple[JobState, str]:
    """Final state and reason for the task's exit status."""
    if exit_code == 0:
        return JobState.DONE, "the task ended with status 0"
    again = f" after {job.restarts} of {job.spec.retry.max_restarts} restarts" if job.restarts else ""
    return JobState.FAILED, f"the task ended with {status_words(exit_code)}{again}"


def pass_on(view: View, reason: str, now: datetime) -> View:
    """The owner has lost the job: its successor takes over where that stands, else the job waits for a machine."""
    successor = view.successor
    view = view.with_job(successor_id=None, deadline=None, next_try_at=None, tries=0)
    if successor is None:
        return view.with_job(owner_id=None, state=JobState.PENDING, reason=f"{reason}; it waits for another machine")
    state, why = _state_at(successor)
    deadline = now + view.policy.hold if state in HOLD_STATES else None
    return view.with_job(owner_id=successor.cedana_id, state=state, reason=f"{reason}; {why}", deadline=deadline)


def _state_at(attempt: Attempt) -> tuple[JobState, str]:
    """The state of a job that is granted to an attempt which has come this far."""
    if attempt.phase in {AttemptPhase.REQUESTED, AttemptPhase.CREATED}:
        return JobState.PROVISIONING, "its successor is starting"
    if attempt.phase is AttemptPhase.HELD and attempt.held_because == "setup":
        return JobState.SETUP_FAILED, "the setup failed on its successor"
    if attempt.phase is AttemptPhase.HELD:
        return JobState.STARTUP_FAILED, "its successor could not start the task"
    return JobState.SETTING_UP, "its successor takes over"


def close(view: View, instance_id: str, now: datetime, reason: str) -> View:
    """The attempt's machine is known to be gone, or never was."""
    attempt = attempt_of(view, instance_id)
    view = changed(view, instance_id, gone_at=now, state="terminated", end_reason=attempt.end_reason or reason)
    left = tuple(i for i in view.job.open_attempts if i != instance_id)
    cost = attempt_cost(attempt_of(view, instance_id), now).usd
    return view.with_job(open_attempts=left, spent_usd=(view.job.spent_usd + cost).quantize(_NANO_USD))


def reopen(view: View, closed: Attempt, now: datetime) -> View:
    """The machine of an attempt that was closed is there after all: what it costs is counted when it is gone."""
    cost = attempt_cost(closed, now).usd if closed.gone_at else Decimal(0)
    job = view.job
    return view.with_job(
        open_attempts=(*job.open_attempts, closed.cedana_id),
        spent_usd=max((job.spent_usd - cost).quantize(_NANO_USD), Decimal(0)),
    )


def lose_owner(view: View, reason: str, now: datetime) -> View:
    """The job's owner is gone or gave it back: what that means in the state the job is in."""
    state = view.job.state
    if state.is_final:
        return view
    if state is JobState.CANCELLING:
        kept = f"; checkpoint {view.job.checkpoint} can be restored" if view.job.checkpoint else ""
        if view.job.limit:
            return finish(view, JobState.FAILED, f"{view.job.limit}; its task is stopped{kept}")
        return finish(view, JobState.CANCELLED, f"cancelled, and its task is stopped{kept}")
    if state in HOLD_STATES:
        return finish(view, JobState.FAILED, f"{view.job.reason}; nobody asked for a retry before the machine ended")
    hopeless = _hopeless(view, reason)
    return finish(view, JobState.FAILED, hopeless) if hopeless else pass_on(view, reason, now)


def _hopeless(view: View, reason: str) -> str:
    """Why no other machine would help; "" when one would."""
    job, policy = view.job, view.policy
    if job.state is JobState.FINALIZING and not job.final_checkpoint:
        return f"{task_result(job, job.exit_code or 0)[1]}, but {reason} before its outputs were sent"
    if job.startup_failures >= policy.boot_attempts:
        return f"{job.startup_failures} machines in a row never reported: {reason}"
    if job.lost >= policy.lost_attempts:
        return f"{job.lost} machines in a row ended by themselves under the job: {reason}"
    return ""


def lose(view: View, instance_id: str, reason: str, now: datetime) -> View:
    """One attempt is out: if it owned the job or waited for it, somebody else must."""
    role = role_of(view, instance_id)
    if role is Role.SUCCESSOR:
        return view.with_job(successor_id=None)
    return lose_owner(view, reason, now) if role is Role.OWNER else view


def leave_by(view: View, now: datetime) -> datetime:
    """When an agent that was told to stop must have left: a last checkpoint gets the time that the one before took."""
    return now + view.policy.cancel + timedelta(seconds=view.job.last_checkpoint_seconds or 0)


def hand_over(view: View, now: datetime) -> View:
    """The successor stands ready: the owner, which the cloud may take back, saves its work and leaves."""
    owner = view.owner
    assert owner is not None
    view = changed(
        view,
        owner.cedana_id,
        notice_at=now,
        notice_deadline=leave_by(view, now),
        end_reason=owner.end_reason or "the job left it before the cloud would take it back",
    )
    return interrupt(view, "it moves to its successor")


def stay(view: View, successor_id: str, why: str) -> View:
    """The move ahead of a take-back is given up: the job stays where it is, and its successor ends."""
    view = end(view.with_job(successor_id=None), successor_id, why)
    return changed(view, str(view.job.owner_id), advised_at=None)


def want_checkpoint(view: View) -> View:
    """The running task's agent is to make a checkpoint; one that is wanted already is that one."""
    job = view.job
    return view if job.wants_checkpoint else view.with_job(checkpoint_wanted=job.checkpoint + 1)


def interrupt(view: View, reason: str) -> View:
    """The owner is being lost: the job will go on elsewhere."""
    if view.job.state in {JobState.PROVISIONING, JobState.SETTING_UP, JobState.RUNNING}:
        return view.with_job(state=JobState.INTERRUPTED, reason=reason)
    return view
