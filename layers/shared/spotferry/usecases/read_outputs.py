"""What a job left behind, for download."""

from dataclasses import dataclass
from datetime import timedelta

from spotferry.ports.cloud import ObjectStore
from spotferry.ports.store import JobStore
from spotferry.types.base import Json
from spotferry.types.errors import NotFound
from spotferry.types.job import Job, Manifest

_EXPIRES = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class ReadOutputs:
    """Hands out the address of a job's outputs and the digests to check them by."""

    store: JobStore
    objects: ObjectStore

    def __call__(self, job_id: str) -> Json:
        """Address, digest and files of the outputs, whether those are all files (`files_complete`), and the patterns
        that named nothing (`missed`).

        Raises:
            NotFound: there is no such job, or it has no outputs (yet); the message says which.
        """
        job = self.store.get_job(job_id)
        if not job.outputs_key:
            raise NotFound(f"there are no outputs: job {job_id} ({job.state}) {_why_not(job)}")
        manifest = Manifest.model_validate_json(self.objects.get(job.outputs_key))
        part = manifest.parts[0]
        return {
            "url": self.objects.url_to_get(part.key, _EXPIRES),
            "sha256": part.sha256,
            "size_bytes": part.size_bytes,
            "files": [file.model_dump(mode="json") for file in manifest.files],
            "files_complete": manifest.files_complete,
            "missed": list(manifest.missed),
        }


def _why_not(job: Job) -> str:
    if not job.spec.outputs:
        return "names no outputs in its job file"
    return f"sent none before it ended: {job.reason}" if job.state.is_final else "has sent none yet"
