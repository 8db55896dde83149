"""What an event about a machine does to its job: launched, refused, taken back, given back, gone.

A move gets the view, the event and the time, and returns the view after it with a sentence for the timeline; None when
the event repeats what is known and nothing changes. Which pairs of state and event may move at all is `transitions`'.
"""

from datetime import datetime

from spotferry.domain import events as e
from spotferry.domain.asking import may_ask_again
from spotferry.domain.handover import (
    Moved,
    Role,
    attempt_of,
    changed,
    close,
    end,
    finish,
    interrupt,
    lose,
    reopen,
    role_of,
    want_checkpoint,
)
from spotferry.domain.offer_words import place_text
from spotferry.domain.owed import wants_machine
from spotferry.domain.reason_words import release_words
from spotferry.domain.view import View
from spotferry.types.instance import Attempt, AttemptPhase, EndedBy
from spotferry.types.job import HOLD_STATES, Job, JobState

TAKEN_BACK = "instance_termination"
"""The reason of a release that follows a take-back."""


def launch_chosen(view: View, event: e.LaunchChosen, now: datetime) -> Moved | None:
    """The intent of an attempt."""
    attempt = event.attempt
    if not wants_machine(view) or attempt.epoch != view.job.epoch + 1:
        return None
    job = view.job.append_instance(attempt.cedana_id)
    first = job.state is JobState.PENDING
    job = job.model_copy(
        update={
            "epoch": attempt.epoch,
            "open_attempts": (*job.open_attempts, attempt.cedana_id),
            "next_try_at": None,
            "tries": 0,
            **({"state": JobState.PROVISIONING, "owner_id": attempt.cedana_id} if first else {}),
            **({"reason": f"starting {_machine(attempt)}"} if first else {"successor_id": attempt.cedana_id}),
        }
    )
    view = View(job, view.attempts, view.policy).with_attempt(attempt)
    data = {"price_usd_hour": float(attempt.price), "market": attempt.market, "epoch": attempt.epoch}
    role = "" if first else " as its successor"
    return Moved(view, f"chose {_machine(attempt)}{role}: {event.why}", data)


def _machine(attempt: Attempt) -> str:
    where = place_text(attempt.region, attempt.availability_zone)
    market = "spot" if attempt.market == "spot" else "on-demand"
    price = f"${attempt.price + attempt.disk_usd_hour:.4f}/h with its disk"
    return f"{attempt.provider} {attempt.instance_type} in {where} ({market}, {price})"


def launch_repeated(view: View, event: e.LaunchRepeated, now: datetime) -> Moved | None:
    """Whoever saves this asks, and nobody else while that may take."""
    attempt = attempt_of(view, event.instance_id)
    if not may_ask_again(attempt, now):
        return None
    view = changed(view, event.instance_id, asked_again_at=now)
    return Moved(view, f"asking again for {_machine(attempt)}, since no answer is known")


def machine_created(view: View, event: e.MachineCreated, now: datetime) -> Moved | None:
    """The cloud made the machine; one that the job gave up meanwhile is to end."""
    attempt = attempt_of(view, event.instance_id)
    if attempt.allocated_id or event.asked_again_at != attempt.asked_again_at:
        return None
    phase = AttemptPhase.CREATED if attempt.phase is AttemptPhase.REQUESTED else attempt.phase
    view = changed(
        view,
        event.instance_id,
        allocated_id=event.allocated_id,
        state=event.state,
        availability_zone=event.zone or attempt.availability_zone,
        ip_address=event.ip_address,
        phase=phase,
        launched_at=event.launched_at or attempt.launched_at or now,
        price=attempt.price if event.price_usd_hour is None else event.price_usd_hour,
        gone_at=None,
    )
    if event.instance_id not in view.job.open_attempts:
        view = reopen(view, attempt, now)
    if role_of(view, event.instance_id) is Role.OTHER or view.job.state.is_final:
        view = end(view, event.instance_id, "the job no longer needs it")
    moved = event.price_usd_hour not in {None, attempt.price}
    dearer = f", which alone costs ${event.price_usd_hour:f}/h, not ${attempt.price:f}/h as listed" if moved else ""
    message = f"{attempt.provider} made machine {event.allocated_id}{dearer}"
    data = {"price_usd_hour": float(event.price_usd_hour)} if moved and event.price_usd_hour is not None else {}
    return Moved(view, message, {"allocated_id": event.allocated_id, **data})


def launch_failed(view: View, event: e.LaunchFailed, now: datetime) -> Moved | None:
    """The cloud refused: the attempt is closed.

    A refusal of a repeat does not unmake the machine that the first request made; only the end of an accepted launch
    does.
    """
    attempt = attempt_of(view, event.instance_id)
    made = bool(attempt.allocated_id) and not event.accepted
    if attempt.is_gone or made or attempt.arrived_at or event.asked_again_at != attempt.asked_again_at:
        return None
    view = changed(view, event.instance_id, failure_code=event.code, phase=AttemptPhase.RELEASED)
    view = close(view, event.instance_id, now, event.reason)
    where = place_text(attempt.region, attempt.availability_zone)
    view = lose(view, event.instance_id, f"{attempt.instance_type} in {where} was refused ({event.code})", now)
    return Moved(
        view, f"{attempt.provider} refused {_machine(attempt)}: {event.code}: {event.reason}", {"code": event.code}
    )


def released(view: View, event: e.Released, now: datetime) -> Moved | None:
    """The agent is done with the job; its machine ends."""
    attempt = attempt_of(view, event.instance_id)
    if attempt.released_at is not None:
        return None
    if event.reason == TAKEN_BACK and not attempt.noticed and role_of(view, event.instance_id) is Role.OWNER:
        view = view.with_job(interruptions=view.job.interruptions + 1)
    view = changed(view, event.instance_id, phase=AttemptPhase.RELEASED, released_at=now)
    view = end(view, event.instance_id, event.reason or "it gave the job back")
    why = release_words(event.reason)
    view = lose(view, event.instance_id, f"the machine gave the job back{why}", now)
    if attempt.started_at is None:
        return Moved(view, f"the machine gave the job back before a task had started there{why}")
    return Moved(view, f"the machine stopped the task and gave the job back{why}")


def notice_received(view: View, event: e.NoticeReceived, now: datetime) -> Moved | None:
    """A machine is about to end; if the cloud takes it back, that is an interruption."""
    attempt = attempt_of(view, event.instance_id)
    role = role_of(view, event.instance_id)
    known = attempt.taken_back or (attempt.noticed and not event.by_cloud)
    if known or attempt.ending or attempt.is_gone or role is Role.OTHER:
        return None
    view = changed(
        view,
        event.instance_id,
        notice_at=attempt.notice_at or now,
        notice_deadline=_sooner(attempt.notice_deadline, event.deadline),
        taken_back=event.by_cloud,
        end_reason=attempt.end_reason if event.by_cloud else attempt.end_reason or event.code,
    )
    until = f" by {event.deadline:%H:%M:%S} UTC" if event.deadline else ""
    who = f"{attempt.provider} takes the machine back" if event.by_cloud else "the machine is to end"
    message = f"{who}{until} ({event.code})"
    if role is Role.SUCCESSOR:
        view = end(view.with_job(successor_id=None), event.instance_id, message)
        return Moved(view, f"{message} before the job came to it")
    view = view.with_job(interruptions=view.job.interruptions + event.by_cloud)
    return Moved(interrupt(view, message), message, {"code": event.code})


def _sooner(one: datetime | None, other: datetime | None) -> datetime | None:
    return min(one, other) if one and other else one or other


def rebalance_advised(view: View, event: e.RebalanceAdvised, now: datetime) -> Moved | None:
    """The cloud may take the machine back: a job that asks for it is saved, and moves once another one is ready."""
    attempt = attempt_of(view, event.instance_id)
    past = attempt.advised_at or attempt.noticed or attempt.ending or attempt.is_gone
    if past or not view.job.spec.checkpoint.on_rebalance or role_of(view, event.instance_id) is Role.OTHER:
        return None
    view = changed(view, event.instance_id, advised_at=now)
    told = f"{attempt.provider} may take the machine back soon ({event.code})"
    if view.job.state is not JobState.RUNNING or role_of(view, event.instance_id) is not Role.OWNER:
        return Moved(view, told)
    return Moved(want_checkpoint(view), f"{told}: a checkpoint is made, and the job moves once another one is ready")


def machine_condemned(view: View, event: e.MachineCondemned, now: datetime) -> Moved | None:
    """The machine is to end, and the job goes on elsewhere if it can."""
    attempt = attempt_of(view, event.instance_id)
    role = role_of(view, event.instance_id)
    if attempt.ending or attempt.is_gone:
        return None
    view = end(view, event.instance_id, event.reason)
    if role is Role.SUCCESSOR:
        view = view.with_job(successor_id=None)
    elif role is Role.OWNER and view.job.state in HOLD_STATES:
        view = finish(view, JobState.FAILED, f"{view.job.reason}; {event.reason}")
    elif role is Role.OWNER:
        silent = bool(attempt.allocated_id) and attempt.arrived_at is None
        view = view.with_job(startup_failures=view.job.startup_failures + 1) if silent else view
        view = interrupt(view, event.reason)
    return Moved(view, f"ending machine {attempt.allocated_id or attempt.cedana_id}: {event.reason}")


def machine_gone(view: View, event: e.MachineGone, now: datetime) -> Moved | None:
    """The machine has ended; if the cloud took it, that is an interruption."""
    attempt = attempt_of(view, event.instance_id)
    if attempt.is_gone:
        return None
    owned = role_of(view, event.instance_id) is Role.OWNER and not view.job.state.is_final
    if owned:
        view = _counted(view, attempt, event)
    ended_by = event.ended_by or _ended_by_us(attempt)
    view = changed(view, event.instance_id, billed_until=event.billed_until, ended_by=ended_by)
    reason = event.reason or attempt.end_reason or "the cloud ended it"
    view = close(view, event.instance_id, now, reason)
    gone = f"machine {attempt.allocated_id or attempt.cedana_id} is gone"
    view = lose(view, event.instance_id, f"{gone} ({reason})", now)
    return Moved(view, f"{gone}: {reason}{_lost_work(view.job, attempt, now) if owned else ''}")


def _lost_work(job: Job, attempt: Attempt, now: datetime) -> str:
    """What the job goes back to, when its task ran on a machine that did not give it back; "" where nothing is lost."""
    if attempt.started_at is None or attempt.released_at or job.exit_code is not None:
        return ""
    if at := job.last_checkpointed_at:
        day = "" if at.date() == now.date() else f"{at:%Y-%m-%d} "
        point = f"checkpoint {job.checkpoint} of {day}{at:%H:%M:%S} UTC"
        return f"; it made no checkpoint after {point}: what the task did since is lost"
    lost = "what the task did is lost" if job.state.is_final else "the task starts from the beginning"
    return f"; no checkpoint was ever made: {lost}"


def _ended_by_us(attempt: Attempt) -> EndedBy:
    """Where the cloud did not tell: a machine that gave the job back, or that we ended, was not taken back."""
    ours = attempt.ending or attempt.released_at is not None
    return "us" if ours and attempt.launched_at and not attempt.taken_back else ""


def _counted(view: View, attempt: Attempt, event: e.MachineGone) -> View:
    """What an owner's end counts as: an interruption, a machine that never reported, or one that ended by itself."""
    job = view.job
    if attempt.ending or attempt.released_at or attempt.taken_back or event.ended_by == "launch":
        return view
    if event.ended_by == "cloud":
        return view.with_job(interruptions=job.interruptions + 1)
    if attempt.arrived_at is None:
        return view.with_job(startup_failures=job.startup_failures + 1)
    unexplained = event.ended_by == "" and not attempt.noticed
    return view.with_job(lost=job.lost + 1, interruptions=job.interruptions + unexplained)
