"""A job that is over becomes a new job: from the beginning, or from one of its checkpoints."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from spotferry.domain.owed import accept, owed
from spotferry.domain.view import View
from spotferry.ports.cloud import ObjectStore
from spotferry.types.base import Value
from spotferry.types.errors import Conflict, IdempotencyConflict, NotFound, NotPossibleNow
from spotferry.types.job import Checkpoint, Job, JobState
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.job_ids import new_job_id
from spotferry.usecases.keys import upload_key
from spotferry.usecases.word import OFFERED


class Wish(Value):
    """What goes with an order.

    Attributes:
        checkpoint: number of the one to go on from; None: the newest.
    """

    checkpoint: int | None = Field(default=None, ge=1, strict=True)


@dataclass(frozen=True, slots=True)
class BeginAgain:
    """Makes the new job, which names its parent.

    A restored job has the parent's checkpoints in its own list, from the one it goes on from downwards, under their
    numbers; the objects stay where they are, below the parent's key, and are the parent's: whoever removes objects of a
    job removes only those below its own key.
    """

    deployment: str
    change: ChangeJob
    objects: ObjectStore

    def retry(self, job: Job, by: str, key: str) -> Job:
        """The same again, from the beginning; the same key is the same new job.

        Raises:
            NotPossibleNow: its work directory has expired.
            IdempotencyConflict: the key was used for something else.
        """
        new_id, said = new_job_id(self.deployment, by, key), _digest("retry", job.job_id)
        return self._before(new_id, key, said) or self._begin(job, by, new_id, said, ())

    def restore(self, job: Job, by: str, key: str, number: int | None) -> Job:
        """The same again, from a checkpoint; the same key is the same new job.

        A checkpoint of a task that had ended well only has its outputs sent; one that had failed runs again on what it
        left.

        Raises:
            NotFound: there is no such checkpoint.
            NotPossibleNow: the job is not over, has no checkpoint, or what it needs has expired.
            IdempotencyConflict: the key was used for something else.
        """
        new_id, said = new_job_id(self.deployment, by, key), _digest("restore", job.job_id, str(number or ""))
        if before := self._before(new_id, key, said):
            return before
        if not job.state.is_final:
            raise NotPossibleNow(
                f"job {job.job_id} is {job.state}: it goes on by itself; only a job that is over can be restored"
            )
        return self._begin(job, by, new_id, said, self._points(job, number))

    def _points(self, job: Job, number: int | None) -> Sequence[Checkpoint]:
        """The checkpoint to go on from, whose bytes are there, and those before it that a restore may fall back to."""
        known = self.change.store.checkpoints(job.job_id)
        kept = [point for point in known if point.pruned_at is None]
        if not kept:
            raise NotPossibleNow(f"job {job.job_id} has no checkpoint to go on from: retry runs it from the beginning")
        wanted = kept[0].number if number is None else number
        points = [point for point in kept if point.number <= wanted][:OFFERED]
        if not points or points[0].number != wanted:
            has = ", ".join(str(point.number) for point in reversed(kept))
            if any(point.number == wanted for point in known):
                raise NotPossibleNow(f"checkpoint {wanted} of job {job.job_id} was not kept; it has {has}")
            raise NotFound(f"job {job.job_id} has no checkpoint {wanted}; it has {has}")
        if any(self.objects.head(part.key) is None for part in points[0].manifest.parts):
            raise NotPossibleNow(f"checkpoint {wanted} of job {job.job_id} has expired: its bytes have left the bucket")
        return points

    def _begin(self, job: Job, by: str, new_id: str, said: str, points: Sequence[Checkpoint]) -> Job:
        if job.upload and self.objects.head(upload_key(job.upload.sha256)) is None:
            raise NotPossibleNow(f"the work directory of job {job.job_id} has expired: submit it again")
        now = self.change.clock()
        new = Job(
            job_id=new_id,
            job_file_path=job.job_file_path,
            bucket=job.bucket,
            owner=by,
            body_sha256=said,
            spec=job.spec,
            upload=job.upload,
            parent_job_id=job.job_id,
        ).model_copy(update=_from(points))
        decision = accept(new, now)
        assert decision.entry is not None
        try:
            self.change.store.create_job(decision.view.job, decision.entry, [_taken_over(p, new_id) for p in points])
        except Conflict:
            return self._known(new_id, said)
        self.change.queue.send(decision.effects, now)
        return decision.view.job

    def _before(self, new_id: str, key: str, said: str) -> Job | None:
        """The job that the same key made before; its machine is asked for again, in case that was lost."""
        try:
            return self._known(new_id, said) if key else None
        except NotFound:
            return None

    def _known(self, new_id: str, said: str) -> Job:
        job = self.change.store.get_job(new_id)
        if job.body_sha256 != said:
            raise IdempotencyConflict(
                f"the Idempotency-Key was used before for something else (job {new_id}): use a new key for a new job"
            )
        if job.state is JobState.PENDING:
            self.change.queue.send(owed(View(job)), self.change.clock())
        return job


def _digest(*said: str) -> str:
    return hashlib.sha256("\n".join(said).encode()).hexdigest()


def _from(points: Sequence[Checkpoint]) -> Mapping[str, object]:
    """What a job begins with that goes on from a checkpoint."""
    if not points:
        return {}
    point = points[0]
    done = point.manifest.task_over and point.manifest.exit_code == 0
    return {
        "restored_from": point.number,
        "checkpoint": point.number,
        "checkpointed": True,
        "last_checkpointed_at": point.committed_at,
        "last_checkpoint_seconds": point.manifest.seconds,
        "last_checkpoint_paused_seconds": point.manifest.paused_seconds,
        **({"exit_code": 0, "final_checkpoint": True} if done else {}),
    }


def _taken_over(point: Checkpoint, job_id: str) -> Checkpoint:
    return point.model_copy(update={"job_id": job_id})
