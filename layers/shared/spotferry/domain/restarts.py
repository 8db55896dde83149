"""What becomes of a task that fails by itself: started again on its machine, if the job file says so."""

from spotferry.domain.handover import Moved, attempt_of, changed
from spotferry.domain.view import View
from spotferry.types.job import Job, JobState


def will_restart(job: Job, exit_code: int) -> bool:
    """Whether a task that ended with this status is started again.

    Machines that were lost count for nothing here, and neither does a task whose end is known already.
    """
    retry = job.spec.retry
    wanted = exit_code != 0 and (not retry.on_exit_codes or exit_code in retry.on_exit_codes)
    return wanted and job.exit_code is None and job.restarts < retry.max_restarts


def restart(view: View, instance_id: str, exit_code: int) -> Moved | None:
    """The task is started again where it failed, in the work directory as it left it; None for a report that repeats.

    A machine that is being lost meanwhile takes the restart with it: the next one goes on from the last checkpoint.
    """
    if attempt_of(view, instance_id).restarting:
        return None
    job = view.job
    number = f"restart {job.restarts + 1} of {job.spec.retry.max_restarts}"
    why = f"the task ended with status {exit_code}; {number}"
    view = changed(view, instance_id, restarting=True).with_job(restarts=job.restarts + 1)
    if job.state is not JobState.INTERRUPTED:
        view = view.with_job(state=JobState.SETTING_UP, reason=why, deadline=None)
    return Moved(view, why, {"exit_code": exit_code, "restart": job.restarts + 1})
