"""A job file becomes a job."""

from dataclasses import dataclass

from spotferry.domain.owed import accept, owed
from spotferry.domain.placement import Plan
from spotferry.domain.view import View
from spotferry.ports.cloud import Clock, EffectQueue, ObjectStore
from spotferry.ports.store import JobStore
from spotferry.types.errors import Conflict, IdempotencyConflict, InvalidInput, NotFound, Problem
from spotferry.types.job import Job, JobState, Upload
from spotferry.types.job_file import JobFile
from spotferry.usecases.inputs import CheckInputs
from spotferry.usecases.job_ids import new_job_id
from spotferry.usecases.keys import upload_key
from spotferry.usecases.plan_job import PlanJob


@dataclass(frozen=True, slots=True)
class Submission:
    """What a person hands in.

    Attributes:
        owner: who.
        spec: the job file, read and found well.
        job_file_path: where it came from, for people.
        upload: the packed work directory, sent before; None without one.
        body_sha256: digest of all that was said, to tell a repeat from a conflict.
        idempotency_key: the same key and body is the same job; "" for none.
        parent_job_id: the job that this one repeats, "" for none.
    """

    owner: str
    spec: JobFile
    job_file_path: str
    upload: Upload | None
    body_sha256: str
    idempotency_key: str = ""
    parent_job_id: str = ""


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job, what it would get now, and whether it is new."""

    job: Job
    plan: Plan
    is_new: bool


@dataclass(frozen=True, slots=True)
class SubmitJob:
    """Checks that the job can run and its bytes are there, then writes it and asks for a machine."""

    deployment: str
    bucket: str
    store: JobStore
    objects: ObjectStore
    queue: EffectQueue
    plan_job: PlanJob
    clock: Clock
    check_inputs: CheckInputs

    def __call__(self, submission: Submission) -> Submitted:
        """Make the job, or find the one that the same key and body made before.

        Raises:
            InvalidInput: the upload is not in the bucket, or is missing though the job file has a work directory; or an
                input is known not to be there.
            ImpossibleSpecs: no offer can ever fit.
            IdempotencyConflict: the key was used for another body.
        """
        job_id = new_job_id(self.deployment, submission.owner, submission.idempotency_key)
        if submission.idempotency_key and (before := self._before(job_id, submission)):
            return self._repeated(before, self.plan_job.plan(submission.spec))
        plan = self.plan_job(submission.spec)
        self._check_upload(submission)
        self.check_inputs(submission.spec)
        job = Job(
            job_id=job_id,
            job_file_path=submission.job_file_path,
            bucket=self.bucket,
            owner=submission.owner,
            body_sha256=submission.body_sha256,
            spec=submission.spec,
            upload=submission.upload,
            parent_job_id=submission.parent_job_id,
        )
        now = self.clock()
        decision = accept(job, now)
        assert decision.entry is not None
        try:
            self.store.create_job(decision.view.job, decision.entry)
        except Conflict:
            before = self._before(job_id, submission)
            assert before is not None
            return self._repeated(before, plan)
        self.queue.send(decision.effects, now)
        return Submitted(decision.view.job, plan, is_new=True)

    def _repeated(self, job: Job, plan: Plan) -> Submitted:
        """The job of a submission before, which may have come to its end before it asked for a machine."""
        if job.state is JobState.PENDING:
            self.queue.send(owed(View(job)), self.clock())
        return Submitted(job, plan, is_new=False)

    def _before(self, job_id: str, submission: Submission) -> Job | None:
        try:
            job = self.store.get_job(job_id)
        except NotFound:
            return None
        if job.body_sha256 != submission.body_sha256:
            raise IdempotencyConflict(
                f"the Idempotency-Key was used before for another body (job {job_id}): use a new key for a new job"
            )
        return job

    def _check_upload(self, submission: Submission) -> None:
        upload = submission.upload
        if upload is None:
            if submission.spec.work_dir:
                raise InvalidInput([Problem("upload", "is missing, but the job file names a work_dir: send its bytes")])
            return
        size = self.objects.head(upload_key(upload.sha256))
        if size is None:
            raise InvalidInput(
                [Problem("upload.sha256", f"{upload.sha256} is not in the bucket: send its bytes first")]
            )
        if size != upload.size_bytes:
            raise InvalidInput([Problem("upload.size_bytes", f"says {upload.size_bytes}, but {size} bytes arrived")])
