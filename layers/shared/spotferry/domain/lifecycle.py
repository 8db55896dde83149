"""The one place where a job changes: `decide`; and what a job's state still owes: `owed`, `overdue`, `directive`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import inf
from typing import get_args

from spotferry.domain import events as e
from spotferry.domain.handover import Role, changed, role_of
from spotferry.domain.limits import reached_limit
from spotferry.domain.machine_moves import TAKEN_BACK
from spotferry.domain.moves import MOVES
from spotferry.domain.owed import owed
from spotferry.domain.reported import Reported
from spotferry.domain.task_moves import was_asked_for
from spotferry.domain.transitions import NO_OPS, TRANSITIONS
from spotferry.domain.view import Decision, View
from spotferry.types.errors import IllegalTransition, StaleAttempt
from spotferry.types.events import CheckpointReason
from spotferry.types.instance import Attempt, AttemptPhase
from spotferry.types.job import HOLD_STATES, Checkpoint, Job, JobState, TimelineEntry

AgentEvent = (
    e.AgentArrived
    | e.SetupFinished
    | e.SetupFailed
    | e.StartupFailed
    | e.TaskStarted
    | e.CommandEnded
    | e.CheckpointCommitted
    | e.CheckpointFailed
    | e.TaskExited
    | e.OutputsCommitted
    | e.OutputsFailed
)
"""What only an attempt that still takes part may say; `Released` is heard from any."""

MOVES_AHEAD = "rebalance"
"""The reason of a release ahead of a take-back that is only a forecast: the task has its whole grace."""

_OWNER_ONLY = (e.TaskStarted, e.CheckpointCommitted, e.TaskExited, e.OutputsCommitted, e.OutputsFailed)


def event_name(event: type[e.Event]) -> str:
    """The event's name as the timeline and the diagram write it: `task_exited`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event.__name__).lower()


def decide(view: View, event: e.Event, *, now: datetime) -> Decision:
    """What the event does to the job: the only function that returns a changed job.

    A move's effects are those that the state after it owes and the one before did not; an event that changes nothing
    returns everything that is still owed, so that a redelivery heals a crash between save and effect.

    Args:
        view: the job as loaded, with the attempt that the event is about.
        event: what happened.
        now: when.

    Raises:
        IllegalTransition: the job's state cannot take this event.
        StaleAttempt: an agent speaks for an attempt that no longer takes part.
    """
    pair = (view.job.state, type(event))
    if pair not in TRANSITIONS and pair not in NO_OPS:
        raise IllegalTransition(view.job.state, event_name(type(event)))
    _refuse_stale(view, event)
    news = pair in TRANSITIONS and not _was_heard(view, event)
    moved = MOVES[type(event)](view, event, now) if news else None
    if moved is None:
        return Decision(view, owed(view))
    if moved.view.job.state not in TRANSITIONS[pair]:
        msg = f"{pair[0]} + {event_name(pair[1])} may not lead to {moved.view.job.state}"
        raise AssertionError(msg)
    after = _noted(moved.view, event).with_job(revision=view.job.revision + 1, updated_at=now)
    entry = TimelineEntry(
        job_id=view.job.job_id,
        revision=after.job.revision,
        at=now,
        event=event_name(type(event)),
        from_state=view.job.state,
        to_state=after.job.state,
        instance_id=_subject(event),
        message=moved.message,
        data=moved.data,
    )
    before = set(owed(view))
    effects = tuple(effect for effect in owed(after) if effect not in before)
    return Decision(after, effects, entry, _checkpoint(view.job, event, now))


def _refuse_stale(view: View, event: e.Event) -> None:
    """Ownership is an epoch: who lost the job, or never had it, changes nothing in it."""
    if not isinstance(event, get_args(AgentEvent)) or view.job.state.is_final:
        return
    role = role_of(view, event.instance_id)
    if role is Role.OTHER or (role is Role.SUCCESSOR and isinstance(event, _OWNER_ONLY)):
        raise StaleAttempt(f"attempt {event.instance_id} does not own job {view.job.job_id}")


def _was_heard(view: View, event: e.Event) -> bool:
    """A report that comes again after later ones were heard says nothing about how things are now."""
    return isinstance(event, Reported) and (event.report or inf) <= view.attempts[event.instance_id].reports


def _noted(view: View, event: e.Event) -> View:
    """The attempt knows how far its agent's reports were heard."""
    if not isinstance(event, Reported) or event.report is None:
        return view
    return changed(view, event.instance_id, reports=event.report)


def _subject(event: e.Event) -> str:
    if isinstance(event, e.LaunchChosen):
        return event.attempt.cedana_id
    return str(getattr(event, "instance_id", ""))


def _checkpoint(job: Job, event: e.Event, now: datetime) -> Checkpoint | None:
    if not isinstance(event, e.CheckpointCommitted):
        return None
    return Checkpoint(
        job_id=event.manifest.job_id,
        number=event.manifest.number,
        manifest_key=event.manifest_key,
        manifest=event.manifest,
        instance_id=event.instance_id,
        committed_at=now,
        asked_for=was_asked_for(job, event.manifest),
    )


def overdue(view: View, now: datetime) -> Iterator[e.Event]:
    """The events that time alone calls for; a poll applies them after what the cloud had to say.

    A silent agent's machine is ended here, but its job passes on only when the cloud confirms that end.
    """
    job = view.job
    if limit := reached_limit(view, now):
        yield e.LimitReached(limit)
    elif job.state in HOLD_STATES and job.deadline and job.deadline <= now:
        yield e.HoldExpired()
    for attempt in view.open_attempts():
        reason = None if attempt.ending else _condemnation(view, attempt, now)
        if reason:
            yield e.MachineCondemned(attempt.cedana_id, reason)


def _condemnation(view: View, attempt: Attempt, now: datetime) -> str | None:
    """Why time is up for a machine; None while it is not."""
    job, policy = view.job, view.policy
    if role_of(view, attempt.cedana_id) is Role.OTHER or job.state.is_final:
        return "the job no longer needs it"
    if attempt.arrived_at is None:
        late = (attempt.launched_at or attempt.requested_at) + policy.boot <= now
        return _never_heard_of(attempt, _words(policy.boot.total_seconds())) if late else None
    if job.state is JobState.CANCELLING and job.deadline and job.deadline <= now:
        return f"its task was not stopped in time after the {'limit' if job.limit else 'cancel'}"
    if attempt.noticed and (attempt.notice_deadline or attempt.notice_at or now) + policy.notice <= now:
        return "it was to be taken back and is still there"
    silent = now - attempt.seen_since()
    return f"its agent has been silent for {_words(silent.total_seconds())}" if silent >= policy.silence else None


def _never_heard_of(attempt: Attempt, patience: str) -> str:
    if not attempt.allocated_id:
        return f"{attempt.provider} gave no verdict on its launch within {patience}, however often it was asked"
    return f"its agent did not report within {patience}"


def _words(seconds: float) -> str:
    minute = 60
    return f"{seconds:.0f} s" if seconds < 2 * minute else f"{seconds / minute:.0f} min"


class Order(StrEnum):
    """What an agent is told; docs/agent-protocol.md says what it does."""

    CONTINUE = "continue"
    WAIT = "wait"
    GO = "go"
    CHECKPOINT = "checkpoint"
    RELEASE = "release"
    STOP = "stop"
    RETRY = "retry"
    SHUT_DOWN = "shut_down"


@dataclass(frozen=True, slots=True)
class Directive:
    """An order to one agent and the reason for it.

    Attributes:
        order: what to do.
        reason: why.
        pause_seconds: how long to wait before it, where the order is to start a failed task again.
    """

    order: Order
    reason: str = ""
    pause_seconds: int = 0


def directive(view: View, instance_id: str, agent_phase: str = "") -> Directive:
    """What the attempt's agent should do now: a function of the state alone, so that no order can be lost.

    Args:
        view: the job, with the attempt.
        instance_id: the attempt.
        agent_phase: what the agent says it is doing ("waiting", "held", ...), "" when it did not say.

    Raises:
        StaleAttempt: the attempt no longer takes part.
    """
    job, attempt = view.job, view.attempts[instance_id]
    role = role_of(view, instance_id)
    if job.state.is_final or attempt.released_at is not None:
        return Directive(Order.SHUT_DOWN, f"the job is {job.state}")
    if role is Role.OTHER or attempt.is_gone:
        raise StaleAttempt(f"attempt {instance_id} does not own job {job.job_id}")
    if role is Role.SUCCESSOR:
        return Directive(Order.WAIT, "the job is still owned by another machine")
    return _owner_directive(view, attempt, agent_phase)


def _owner_directive(view: View, attempt: Attempt, agent_phase: str) -> Directive:
    job = view.job
    if job.state is JobState.CANCELLING:
        return _last_word(job, attempt)
    taken = attempt.noticed or attempt.ending
    if job.state is JobState.INTERRUPTED or (taken and (job.final_checkpoint or job.state is JobState.SETTING_UP)):
        moves = attempt.advised_at is not None and not (attempt.taken_back or attempt.ending)
        return Directive(Order.RELEASE, MOVES_AHEAD if moves else TAKEN_BACK)
    if job.state is JobState.SETTING_UP and (attempt.restarting or agent_phase == "held"):
        return Directive(Order.RETRY, job.reason, job.restart_pause_seconds if attempt.restarting else 0)
    if job.state is JobState.RUNNING and job.wants_checkpoint:
        return Directive(Order.CHECKPOINT, CheckpointReason.HEARTBEAT)
    waiting = agent_phase == "waiting" or attempt.phase is AttemptPhase.READY
    if job.state is JobState.SETTING_UP and waiting:
        return Directive(Order.GO, job.reason)
    return Directive(Order.CONTINUE)


def _last_word(job: Job, attempt: Attempt) -> Directive:
    """A task that had started is kept in a last checkpoint, so that the job can be restored."""
    if attempt.started_at is None:
        return Directive(Order.STOP, job.reason)
    return Directive(Order.RELEASE, TAKEN_BACK if attempt.taken_back else CheckpointReason.JOB_TERMINATION)


def wants_attention(view: View, instance_id: str) -> bool:
    """Whether something is going on that the agent should hear of at once, rather than in its next quiet heartbeat."""
    job = view.job
    runs = job.state is JobState.RUNNING and not job.wants_checkpoint and not job.successor_id
    pauses = job.state is JobState.SETTING_UP and view.attempts[instance_id].restarting
    quiet = job.state.is_final or runs or pauses
    return not quiet or role_of(view, instance_id) is not Role.OWNER
