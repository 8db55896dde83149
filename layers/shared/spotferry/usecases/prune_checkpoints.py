"""Checkpoints that a job no longer keeps leave the bucket, and uploads that nobody will finish are given up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spotferry.ports.cloud import Clock, ObjectStore
from spotferry.ports.store import JobStore
from spotferry.types.job import Checkpoint, Job
from spotferry.usecases.keys import job_prefix


@dataclass(frozen=True, slots=True)
class PruneCheckpoints:
    """Runs after each commit."""

    store: JobStore
    objects: ObjectStore
    clock: Clock

    def __call__(self, job: Job, kind: str) -> None:
        """Delete what only checkpoints hold that are too old, then note them as pruned; abort the job's open uploads.

        An agent sends one archive at a time, so once one is committed every other upload of the job is a leftover, of
        an attempt that lost the job or of a try that failed. A crash in the middle is mended by the next commit: what
        is not noted yet is deleted again. Objects that another job made are that job's to delete.

        Args:
            job: as it was saved with the commit.
            kind: of the archive: `checkpoint` or `outputs`.
        """
        prefix = job_prefix(kind, job.job_id)
        if kind == "checkpoint":
            held = [c for c in self.store.checkpoints(job.job_id) if c.pruned_at is None]
            keep = job.spec.checkpoint.keep
            kept, dropped = held[:keep], held[keep:]
            self._delete(prefix, kept, dropped)
            for checkpoint in dropped:
                self.store.note_pruned(job.job_id, checkpoint.number, self.clock())
        for key, upload_id in self.objects.open_uploads(prefix):
            self.objects.abort_multipart(key, upload_id)

    def _delete(self, prefix: str, kept: Sequence[Checkpoint], dropped: Sequence[Checkpoint]) -> None:
        gone = _keys(dropped) - _keys(kept)
        self.objects.delete(sorted(key for key in gone if key.startswith(prefix)))


def _keys(checkpoints: Iterable[Checkpoint]) -> set[str]:
    """The parts that checkpoints consist of; their manifests stay, as history does."""
    return {part.key for checkpoint in checkpoints for part in checkpoint.manifest.parts}
