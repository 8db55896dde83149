"""What a job's state asks of the world, and how a job begins."""

from datetime import datetime

from spotferry.domain.view import CheckLaunch, Decision, DestroyInstance, Effect, PlaceJob, View
from spotferry.types.job import Job, JobState, TimelineEntry


def accept(job: Job, now: datetime) -> Decision:
    """A new job: its first timeline entry, and the machine it needs."""
    message = "accepted"
    if job.restored_from:
        message += f"; it goes on from checkpoint {job.restored_from} of job {job.parent_job_id}"
    elif job.parent_job_id:
        message += f"; it repeats job {job.parent_job_id}"
    job = job.model_copy(
        update={"state": JobState.PENDING, "revision": 1, "created_at": now, "updated_at": now, "reason": message}
    )
    entry = TimelineEntry(
        job_id=job.job_id, revision=1, at=now, event="accepted", from_state="", to_state=job.state, message=message
    )
    view = View(job)
    return Decision(view, owed(view), entry)


def owed(view: View) -> tuple[Effect, ...]:
    """All that the job's state still asks of the world; performing any of it again does no harm."""
    job = view.job
    effects: list[Effect] = []
    if wants_machine(view):
        effects.append(PlaceJob(job.job_id, job.next_try_at))
    for attempt in view.open_attempts():
        if attempt.ending:
            effects.append(DestroyInstance(job.job_id, attempt.cedana_id, attempt.allocated_id))
        elif not attempt.allocated_id:
            effects.append(CheckLaunch(job.job_id, attempt.cedana_id, attempt.asked_again_at))
    return tuple(effects)


def wants_machine(view: View) -> bool:
    """Whether placement should find a machine for the job now."""
    job, owner = view.job, view.owner
    if job.state is JobState.PENDING:
        return True
    if owner is None or not view.policy.overlap or job.successor_id:
        return False
    if job.state is JobState.RUNNING:
        return owner.advised_at is not None
    return job.state in {JobState.INTERRUPTED, JobState.FINALIZING} and (owner.noticed or owner.ending)
