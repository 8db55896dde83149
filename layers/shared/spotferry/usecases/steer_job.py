"""What people may do to a job or a machine that exists: cancel, checkpoint, retry, restore, end a machine."""

from dataclasses import dataclass

from spotferry.domain import events as e
from spotferry.domain.handover import leave_by
from spotferry.domain.view import View
from spotferry.types.errors import NotFound, NotPossibleNow
from spotferry.types.instance import Attempt
from spotferry.types.job import FINAL_STATES, HOLD_STATES, Job, JobState
from spotferry.types.words import cut
from spotferry.usecases.begin_again import BeginAgain, Wish
from spotferry.usecases.change import ChangeJob

_NO_TASK = "its task does not run yet, so there is nothing to checkpoint"
_OVER = "its task is over"
_WHY_NO_CHECKPOINT = {
    **dict.fromkeys(JobState, _NO_TASK),
    **dict.fromkeys((JobState.FINALIZING, *FINAL_STATES), _OVER),
    **dict.fromkeys((JobState.INTERRUPTED, JobState.CANCELLING), "its task is being stopped, with a last checkpoint"),
}
_WITH_A_TASK = frozenset({JobState.RUNNING, JobState.FINALIZING})


@dataclass(frozen=True, slots=True)
class SteerJob:
    """A person's orders."""

    change: ChangeJob
    again: BeginAgain

    def __call__(self, order: str, job_id: str, by: str, key: str = "", wish: Wish | None = None) -> Job:
        """An order by its name: "cancel", "checkpoint", "retry" or "restore".

        Args:
            order: the name.
            job_id: the job.
            by: who asks.
            key: the Idempotency-Key of an order that may make a new job; "" for none.
            wish: what goes with a restore.

        Raises:
            NotFound: there is no such order, job or checkpoint.
            NotPossibleNow: the job's state does not allow it.
            IdempotencyConflict: the key was used for something else.
        """
        match order:
            case "cancel":
                return self.cancel(job_id, by)
            case "checkpoint":
                return self.checkpoint(job_id, by)
            case "retry":
                return self.retry(job_id, by, key)
            case "restore":
                job = self.change.store.get_job(job_id)
                return self.again.restore(job, by, key, (wish or Wish()).checkpoint)
        raise NotFound(f"a job does not take the order {cut(order)}")

    def cancel(self, job_id: str, by: str) -> Job:
        """End the job; one that is over or being cancelled stays as it is.

        Raises:
            NotFound: there is no such job.
        """
        return self.change(job_id, e.CancelRequested(by)).job

    def checkpoint(self, job_id: str, by: str) -> Job:
        """Have the running task checkpointed soon: the job's `checkpoint_wanted` says as which number.

        Raises:
            NotFound: there is no such job.
            NotPossibleNow: its task does not run.
        """

        def event(view: View) -> e.Event:
            if view.job.state is not JobState.RUNNING:
                raise NotPossibleNow(f"job {job_id} is {view.job.state}: {_WHY_NO_CHECKPOINT[view.job.state]}")
            return e.CheckpointRequested(by)

        return self.change(job_id, event).job

    def retry(self, job_id: str, by: str, key: str = "") -> Job:
        """Try again: a job on hold on the machine it has, a job that is over as a new job that names its parent.

        Raises:
            NotFound: there is no such job.
            NotPossibleNow: the job is still under way, or its work directory has expired.
        """
        job = self.change.store.get_job(job_id)
        if job.state in HOLD_STATES:
            return self.change(job_id, e.RetryRequested(by)).job
        if not job.state.is_final:
            raise NotPossibleNow(
                f"job {job_id} is {job.state}: only a job that failed, ended or is on hold can be retried"
            )
        return self.again.retry(job, by, key)

    def end_machine(self, instance_id: str, by: str) -> Attempt:
        """End one machine; its job goes on elsewhere if it was running there. Safe to repeat.

        Raises:
            NotFound: there is no such instance.
        """
        attempt = self.change.store.get_attempt(instance_id)
        reason = f"{by} asked for its end"

        def event(view: View) -> e.Event:
            """A task that runs is checkpointed first, however often this is asked; any other machine ends at once."""
            leaving = view.job.state is JobState.INTERRUPTED and view.attempts[instance_id].noticed
            if view.job.owner_id == instance_id and (view.job.state in _WITH_A_TASK or leaving):
                deadline = leave_by(view, self.change.clock())
                return e.NoticeReceived(instance_id, reason, deadline, by_cloud=False)
            return e.MachineCondemned(instance_id, reason)

        view = self.change(attempt.job_id, event, instance_id)
        return view.attempts[instance_id]
