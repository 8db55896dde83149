"""What people may do to a job or a machine that exists: cancel, retry, end a machine."""

import secrets
from dataclasses import dataclass

from spotferry.domain import events as e
from spotferry.domain.owed import accept
from spotferry.domain.view import View
from spotferry.ports.cloud import ObjectStore
from spotferry.types.errors import NotFound, NotPossibleNow
from spotferry.types.instance import Attempt
from spotferry.types.job import HOLD_STATES, Job, JobState
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.keys import upload_key

_WITH_A_TASK = frozenset({JobState.RUNNING, JobState.FINALIZING})


@dataclass(frozen=True, slots=True)
class SteerJob:
    """A person's orders."""

    change: ChangeJob
    objects: ObjectStore

    def __call__(self, order: str, job_id: str, by: str) -> Job:
        """An order by its name: "cancel" or "retry".

        Raises:
            NotFound: there is no such order or job.
            NotPossibleNow: the job's state does not allow it.
        """
        match order:
            case "cancel":
                return self.cancel(job_id, by)
            case "retry":
                return self.retry(job_id, by)
        raise NotFound(f"a job does not take the order {order}")

    def cancel(self, job_id: str, by: str) -> Job:
        """End the job; one that is over or being cancelled stays as it is.

        Raises:
            NotFound: there is no such job.
        """
        return self.change(job_id, e.CancelRequested(by)).job

    def retry(self, job_id: str, by: str) -> Job:
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
        return self._again(job, by)

    def _again(self, job: Job, by: str) -> Job:
        if job.upload and self.objects.head(upload_key(job.upload.sha256)) is None:
            raise NotPossibleNow(f"the work directory of job {job.job_id} has expired: submit it again")
        now = self.change.clock()
        new = Job(
            job_id=f"j-{secrets.token_hex(8)}",
            job_file_path=job.job_file_path,
            bucket=job.bucket,
            owner=by,
            body_sha256=job.body_sha256,
            spec=job.spec,
            upload=job.upload,
            parent_job_id=job.job_id,
        )
        decision = accept(new, now)
        assert decision.entry is not None
        self.change.store.create_job(decision.view.job, decision.entry)
        self.change.queue.send(decision.effects, now)
        return decision.view.job

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
                deadline = self.change.clock() + view.policy.cancel
                return e.NoticeReceived(instance_id, reason, deadline, by_cloud=False)
            return e.MachineCondemned(instance_id, reason)

        view = self.change(attempt.job_id, event, instance_id)
        return view.attempts[instance_id]
