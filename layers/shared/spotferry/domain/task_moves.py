"""What an agent's report does to its job: arrived, set up, running, checkpointed, over.

A move gets the view, the event and the time, and returns the view after it with a sentence for the timeline; None when
the event repeats what is known and nothing changes. Which pairs of state and event may move at all is `transitions`'.
"""

from collections.abc import Sequence
from datetime import datetime

from spotferry.domain import events as e
from spotferry.domain.handover import (
    Moved,
    Role,
    attempt_of,
    changed,
    finish,
    hand_over,
    role_of,
    stay,
    task_result,
)
from spotferry.domain.reason_words import checkpoint_words, ends_task
from spotferry.domain.restarts import restart, will_restart
from spotferry.domain.view import View
from spotferry.types.events import CheckpointReason
from spotferry.types.instance import Attempt, AttemptPhase
from spotferry.types.job import Job, JobState, Manifest
from spotferry.types.words import counted, cut

_TOLD_PATTERNS = 10


def agent_arrived(view: View, event: e.AgentArrived, now: datetime) -> Moved | None:
    """The machine is up."""
    attempt = attempt_of(view, event.instance_id)
    if attempt.arrived_at is not None:
        return None
    view = changed(
        view,
        event.instance_id,
        phase=AttemptPhase.ARRIVED,
        arrived_at=now,
        state="running",
        launched_at=attempt.launched_at or now,
        facts=dict(event.facts),
    )
    view = view.with_job(startup_failures=0)
    if role_of(view, event.instance_id) is Role.OWNER and view.job.state is JobState.PROVISIONING:
        view = view.with_job(state=JobState.SETTING_UP, reason="the machine is being set up")
    seconds = (now - attempt.requested_at).total_seconds()
    return Moved(view, f"the machine is up, {seconds:.0f} s after it was asked for", {"seconds": seconds})


def setup_finished(view: View, event: e.SetupFinished, now: datetime) -> Moved | None:
    """The machine is ready for the task."""
    attempt = attempt_of(view, event.instance_id)
    if attempt.phase is AttemptPhase.READY:
        return None
    view = changed(view, event.instance_id, phase=AttemptPhase.READY, held_because="")
    done, data = f"setup done in {event.seconds:.0f} s", {"seconds": event.seconds}
    if role_of(view, event.instance_id) is not Role.SUCCESSOR:
        return Moved(view, done, data)
    if view.job.state is JobState.RUNNING:
        return Moved(hand_over(view, now), f"{done}; the job moves there, after a last checkpoint", data)
    return Moved(view, f"{done} and waits for the job", data)


def setup_failed(view: View, event: e.SetupFailed, now: datetime) -> Moved | None:
    """The job's setup is at fault."""
    at = f" at `{event.line}`" if event.line else ""
    why = f"setup failed with status {event.exit_code}{at}"
    return _hold(view, event.instance_id, JobState.SETUP_FAILED, why, now)


def startup_failed(view: View, event: e.StartupFailed, now: datetime) -> Moved | None:
    """The machine could not start the task."""
    why = f"the task could not be started: {event.reason}"
    return _hold(view, event.instance_id, JobState.STARTUP_FAILED, why, now)


def _hold(view: View, instance_id: str, state: JobState, why: str, now: datetime) -> Moved | None:
    if attempt_of(view, instance_id).phase is AttemptPhase.HELD:
        return None
    role = role_of(view, instance_id)
    if view.job.state is JobState.RUNNING:
        return (
            Moved(stay(view, instance_id, why), f"{why}; the task stays where it is")
            if role is Role.SUCCESSOR
            else None
        )
    because = "setup" if state is JobState.SETUP_FAILED else "startup"
    view = changed(view, instance_id, phase=AttemptPhase.HELD, held_because=because, end_reason=why, restarting=False)
    if role is not Role.OWNER or view.job.state is not JobState.SETTING_UP:
        return Moved(view, why)
    if view.job.successor_id:
        view = stay(view, view.job.successor_id, "the job is on hold where it is")
    deadline = now + view.policy.hold
    view = view.with_job(state=state, reason=why, deadline=deadline)
    return Moved(view, f"{why}; the machine waits for a retry until {deadline:%H:%M:%S} UTC")


def task_started(view: View, event: e.TaskStarted, now: datetime) -> Moved | None:
    """The task runs."""
    attempt = attempt_of(view, event.instance_id)
    view = changed(
        view,
        event.instance_id,
        phase=AttemptPhase.READY,
        held_because="",
        end_reason="",
        restarting=False,
        started_at=attempt.started_at or now,
    )
    view = view.with_job(
        state=JobState.RUNNING,
        reason="the task runs",
        deadline=None,
        started_at=view.job.started_at or now,
        run_began_at=now,
    )
    if attempt.restarting:
        message = "the task was started again"
    elif event.restored_from is None:
        message = "the task started from the beginning"
    else:
        message = f"the task goes on from checkpoint {event.restored_from}"
    if why_not := event.why_not or _passed_over(view, attempt, event):
        message += f" ({why_not})"
    return Moved(view, message, {"restored_from": event.restored_from})


def _passed_over(view: View, attempt: Attempt, event: e.TaskStarted) -> str:
    """Why it did not go on from the newest checkpoint, where the agent was not offered that."""
    newest = view.job.checkpoint
    if attempt.restarting or not newest or event.restored_from == newest:
        return ""
    return f"checkpoint {newest} cannot be restored on this machine"


def command_ended(view: View, event: e.CommandEnded, now: datetime) -> Moved | None:
    """Lines around the task's life ran; what a failure means is said by the report that follows it."""
    outcome = "ran" if event.exit_code == 0 else f"failed with status {event.exit_code}"
    data = {"command": event.command, "exit_code": event.exit_code, "seconds": event.seconds}
    return Moved(view, f"{event.command} {outcome} in {event.seconds:.1f} s", data)


def checkpoint_committed(view: View, event: e.CheckpointCommitted, now: datetime) -> Moved | None:
    """The pointer moves to the new checkpoint."""
    manifest = event.manifest
    if manifest.number <= view.job.checkpoint:
        return None
    asked_for = was_asked_for(view.job, manifest)
    over = manifest.task_over and not will_restart(view.job, manifest.exit_code or 0)
    view = view.with_job(
        checkpoint=manifest.number,
        checkpointed=True,
        lost=0,
        last_checkpointed_at=now,
        last_checkpoint_seconds=manifest.seconds,
        last_checkpoint_paused_seconds=manifest.paused_seconds,
        final_checkpoint=view.job.final_checkpoint or over,
        exit_code=manifest.exit_code if over else view.job.exit_code,
    )
    size = sum(part.size_bytes for part in manifest.parts)
    data = {"number": manifest.number, "size_bytes": size, "reason": manifest.reason, "seconds": manifest.seconds}
    return Moved(view, f"checkpoint {manifest.number} committed ({_how(manifest, size, asked_for)})", data)


def was_asked_for(job: Job, manifest: Manifest) -> bool:
    """Whether this checkpoint, which its agent calls a periodic one, is what the job was asked for."""
    return job.wants_checkpoint and manifest.reason is CheckpointReason.HEARTBEAT


def _how(manifest: Manifest, size_bytes: int, asked_for: bool) -> str:  # noqa: FBT001
    """How a checkpoint was made, in words."""
    why = manifest.why.removeprefix(f"{manifest.engine}: ")
    words = [f"{manifest.engine}: {why}" if why else manifest.engine, f"{size_bytes:,} bytes"]
    if reason := checkpoint_words(manifest.reason, asked_for=asked_for):
        words.append(reason)
    if manifest.seconds is not None:
        words.append(f"in {manifest.seconds:.1f} s")
    if manifest.paused_seconds is not None and not (manifest.task_over or ends_task(manifest.reason)):
        words.append(f"the task stood still for {manifest.paused_seconds:.1f} s")
    return ", ".join(words)


def checkpoint_failed(view: View, event: e.CheckpointFailed, now: datetime) -> Moved | None:
    """The checkpoint before stays in force."""
    kept = f"checkpoint {view.job.checkpoint} stays in force" if view.job.checkpoint else "there is none to go back to"
    return Moved(view.with_job(checkpoint_wanted=0), f"a checkpoint failed: {event.reason}; {kept}")


def task_exited(view: View, event: e.TaskExited, now: datetime) -> Moved | None:
    """The task is over, and never runs again, unless it failed and the job file has it started again."""
    if attempt_of(view, event.instance_id).restarting or will_restart(view.job, event.exit_code):
        return restart(view, event.instance_id, event.exit_code, now)
    view = view.with_job(exit_code=event.exit_code, deadline=None)
    state, reason = task_result(view.job, event.exit_code)
    if not event.outputs:
        return Moved(finish(view, state, reason), reason, {"exit_code": event.exit_code})
    view = view.with_job(state=JobState.FINALIZING, reason=f"{reason}; its outputs are on their way")
    return Moved(view, f"{reason}; sending its outputs", {"exit_code": event.exit_code})


def outputs_committed(view: View, event: e.OutputsCommitted, now: datetime) -> Moved | None:
    """The job has all it was to give."""
    state, reason = task_result(view.job, view.job.exit_code or 0)
    view = view.with_job(outputs_key=event.manifest_key)
    message = f"outputs sent: {counted(event.files, 'file')}, {event.size_bytes:,} bytes{_missed(event.missed)}"
    return Moved(finish(view, state, reason), message, {"files": event.files, "size_bytes": event.size_bytes})


def _missed(patterns: Sequence[str]) -> str:
    more = len(patterns) - _TOLD_PATTERNS
    told = ", ".join(map(cut, patterns[:_TOLD_PATTERNS])) + (f" and {more} more" if more > 0 else "")
    return f"; nothing matched: {told}" if told else ""


def outputs_failed(view: View, event: e.OutputsFailed, now: datetime) -> Moved | None:
    """The task's work could not be handed over."""
    _, ended = task_result(view.job, view.job.exit_code or 0)
    reason = f"{ended}, but its outputs could not be sent: {event.reason}"
    return Moved(finish(view, JobState.FAILED, reason), reason)
