"""What becomes of a task that fails by itself: started again on its machine, if the job file says so."""

from datetime import datetime, timedelta

from spotferry.domain.handover import Moved, attempt_of, changed
from spotferry.domain.reason_words import status_words
from spotferry.domain.view import View
from spotferry.types.job import Job, JobState

FIRST_PAUSE = timedelta(seconds=10)
"""Before the first restart, as in Kubernetes; each one after it waits twice as long as the one before. Five restarts
span five minutes: a network or a service that is away for so long does not use them up."""

LONGEST_PAUSE = timedelta(minutes=5)
"""The pause grows no further."""

LONG_RUN = timedelta(minutes=10)
"""A task that failed after so long did work: its pauses begin anew."""


def will_restart(job: Job, exit_code: int) -> bool:
    """Whether a task that ended with this status is started again.

    Machines that were lost count for nothing here, and neither does a task whose end is known already.
    """
    retry = job.spec.retry
    wanted = exit_code != 0 and (not retry.on_exit_codes or exit_code in retry.on_exit_codes)
    return wanted and job.exit_code is None and job.restarts < retry.max_restarts


def restart(view: View, instance_id: str, exit_code: int, now: datetime) -> Moved | None:
    """The task is started again where it failed, in the work directory as it left it, after a pause; None for a report
    that repeats.

    A machine that is being lost meanwhile takes the restart with it: the next one goes on from the last checkpoint.
    """
    if attempt_of(view, instance_id).restarting:
        return None
    job = view.job
    again = f"restart {job.restarts + 1} of {job.spec.retry.max_restarts}"
    view = changed(view, instance_id, restarting=True).with_job(restarts=job.restarts + 1)
    if job.state is JobState.INTERRUPTED:
        why = f"{again} on the next machine: the task ended with {status_words(exit_code)}"
    else:
        seconds = _pause_seconds(job, now)
        why = f"{again} in {seconds} s: the task ended with {status_words(exit_code)}"
        view = view.with_job(state=JobState.SETTING_UP, reason=why, deadline=None, restart_pause_seconds=seconds)
    return Moved(view, why, {"exit_code": exit_code, "restart": job.restarts + 1})


def _pause_seconds(job: Job, now: datetime) -> int:
    """How long the next restart waits: what makes a task fail at once may take minutes to pass."""
    ran_long = job.run_began_at is not None and now - job.run_began_at >= LONG_RUN
    last = timedelta() if ran_long else timedelta(seconds=job.restart_pause_seconds)
    return int(min(max(2 * last, FIRST_PAUSE), LONGEST_PAUSE).total_seconds())
