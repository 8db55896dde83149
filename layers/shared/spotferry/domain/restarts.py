"""What becomes of a task that fails by itself: started again on its machine, if the job file says so."""

from datetime import datetime, timedelta

from spotferry.domain.handover import Moved, attempt_of, changed
from spotferry.domain.reason_words import status_words
from spotferry.domain.view import View
from spotferry.types.job import Job, JobState

FIRST_PAUSE = timedelta(seconds=1)
"""Before the first restart; each one after it waits twice as long as the one before."""

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
    taken, pause = job.state is JobState.INTERRUPTED, _pause(job, now)
    when = "on the next machine" if taken else f"in {pause.total_seconds():.0f} s"
    number = f"restart {job.restarts + 1} of {job.spec.retry.max_restarts}"
    why = f"{number} {when}: the task ended with {status_words(exit_code)}"
    view = changed(view, instance_id, restarting=True).with_job(restarts=job.restarts + 1)
    if not taken:
        seconds = int(pause.total_seconds())
        view = view.with_job(state=JobState.SETTING_UP, reason=why, deadline=None, restart_pause_seconds=seconds)
    return Moved(view, why, {"exit_code": exit_code, "restart": job.restarts + 1})


def _pause(job: Job, now: datetime) -> timedelta:
    """How long the next restart waits: a task that fails at once is not to use up its restarts within minutes."""
    ran_long = job.run_began_at is not None and now - job.run_began_at >= LONG_RUN
    if ran_long or not job.restart_pause_seconds:
        return FIRST_PAUSE
    return min(2 * timedelta(seconds=job.restart_pause_seconds), LONGEST_PAUSE)
