"""What an agent's report does to its job: arrived, set up, running, checkpointed, over.

A move gets the view, the event and the time, and returns the view after it with a sentence for the timeline; None when
the event repeats what is known and nothing changes. Which pairs of state and event may move at all is `transitions`'.
"""

from datetime import datetime

from spotferry.domain import events as e
from spotferry.domain.handover import (
    Moved,
    Role,
    attempt_of,
    changed,
    finish,
    role_of,
    task_result,
)
from spotferry.domain.view import View
from spotferry.types.instance import AttemptPhase
from spotferry.types.job import JobState


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
    waits = " and waits for the job" if role_of(view, event.instance_id) is Role.SUCCESSOR else ""
    return Moved(view, f"setup done in {event.seconds:.0f} s{waits}", {"seconds": event.seconds})


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
    because = "setup" if state is JobState.SETUP_FAILED else "startup"
    view = changed(view, instance_id, phase=AttemptPhase.HELD, held_because=because, end_reason=why)
    if role_of(view, instance_id) is not Role.OWNER or view.job.state is not JobState.SETTING_UP:
        return Moved(view, why)
    deadline = now + view.policy.hold
    view = view.with_job(state=state, reason=why, deadline=deadline)
    return Moved(view, f"{why}; the machine waits for a retry until {deadline:%H:%M:%S} UTC")


def task_started(view: View, event: e.TaskStarted, now: datetime) -> Moved | None:
    """The task runs."""
    view = changed(view, event.instance_id, phase=AttemptPhase.READY, held_because="", end_reason="")
    view = view.with_job(state=JobState.RUNNING, reason="the task runs", deadline=None)
    if event.restored_from is None:
        message = "the task started from the beginning"
    else:
        message = f"the task goes on from checkpoint {event.restored_from}"
    if event.why_not:
        message += f" ({event.why_not})"
    return Moved(view, message, {"restored_from": event.restored_from})


def checkpoint_committed(view: View, event: e.CheckpointCommitted, now: datetime) -> Moved | None:
    """The pointer moves to the new checkpoint."""
    manifest = event.manifest
    if manifest.number <= view.job.checkpoint:
        return None
    view = view.with_job(
        checkpoint=manifest.number,
        checkpointed=True,
        lost=0,
        last_checkpointed_at=now,
        final_checkpoint=view.job.final_checkpoint or manifest.task_over,
        exit_code=manifest.exit_code if manifest.task_over else view.job.exit_code,
    )
    size = sum(part.size_bytes for part in manifest.parts)
    message = f"checkpoint {manifest.number} committed ({manifest.engine}, {size:,} bytes, for {manifest.reason})"
    return Moved(view, message, {"number": manifest.number, "size_bytes": size, "reason": manifest.reason})


def checkpoint_failed(view: View, event: e.CheckpointFailed, now: datetime) -> Moved | None:
    """The checkpoint before stays in force."""
    kept = f"checkpoint {view.job.checkpoint} stays in force" if view.job.checkpoint else "there is none to go back to"
    return Moved(view, f"a checkpoint failed: {event.reason}; {kept}")


def task_exited(view: View, event: e.TaskExited, now: datetime) -> Moved | None:
    """The task is over, and never runs again."""
    view = view.with_job(exit_code=event.exit_code, deadline=None)
    state, reason = task_result(event.exit_code)
    if not event.outputs:
        return Moved(finish(view, state, reason), reason, {"exit_code": event.exit_code})
    view = view.with_job(state=JobState.FINALIZING, reason=f"{reason}; its outputs are on their way")
    return Moved(view, f"{reason}; sending its outputs", {"exit_code": event.exit_code})


def outputs_committed(view: View, event: e.OutputsCommitted, now: datetime) -> Moved | None:
    """The job has all it was to give."""
    state, reason = task_result(view.job.exit_code or 0)
    view = view.with_job(outputs_key=event.manifest_key)
    message = f"outputs sent: {event.files} files, {event.size_bytes:,} bytes"
    return Moved(finish(view, state, reason), message, {"files": event.files, "size_bytes": event.size_bytes})


def outputs_failed(view: View, event: e.OutputsFailed, now: datetime) -> Moved | None:
    """The task's work could not be handed over."""
    reason = f"the task ended with status {view.job.exit_code}, but its outputs could not be sent: {event.reason}"
    return Moved(finish(view, JobState.FAILED, reason), reason)
