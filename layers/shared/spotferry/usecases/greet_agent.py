"""A machine's agent says hello and gets its plan."""

from dataclasses import dataclass

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Order
from spotferry.domain.view import View
from spotferry.ports.cloud import SecretStore
from spotferry.types.base import Json
from spotferry.types.errors import IllegalTransition, Misconfigured, StaleAttempt
from spotferry.types.instance import Attempt
from spotferry.types.job import Job
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.inputs import inputs_json
from spotferry.usecases.keys import upload_key
from spotferry.usecases.word import SayWord

_LEAVING = frozenset({Order.STOP, Order.RELEASE, Order.SHUT_DOWN})
"""Orders after which an agent runs nothing of the job any more, so it needs no secrets."""


@dataclass(frozen=True, slots=True)
class GreetAgent:
    """Records that the machine is up, and hands out all that it needs to run the job."""

    change: ChangeJob
    say: SayWord
    secrets: SecretStore

    def __call__(self, attempt: Attempt) -> Json:
        """The answer to a hello; a repeat gets the same plan with fresh addresses.

        Raises:
            StaleAttempt: the attempt no longer takes part, or the job is over.
            Misconfigured: a secret that the job names is not there; the job is on hold until somebody puts it there
                and asks for a retry, while the agent repeats its hello.
        """
        self.change.store.touch_attempt(attempt.cedana_id, self.change.clock())
        try:
            view = self.change(attempt.job_id, e.AgentArrived(attempt.cedana_id), attempt.cedana_id)
        except IllegalTransition as error:
            raise StaleAttempt(str(error)) from error
        job = view.job
        if job.state.is_final:
            raise StaleAttempt(f"job {job.job_id} is {job.state}")
        word = self.say(view, attempt.cedana_id)
        secrets = {} if word["directive"]["kind"] in _LEAVING else self._secrets(job, attempt)
        return {
            **word,
            "job_id": job.job_id,
            "epoch": attempt.epoch,
            "grace_seconds": self.say.pace.grace.total_seconds(),
            "log_offset": 0,
            "plan": self._plan(view) | {"secrets": secrets},
        }

    def _secrets(self, job: Job, attempt: Attempt) -> dict[str, str]:
        if not job.spec.secrets:
            return {}
        try:
            return dict(self.secrets.resolve(job.spec.secrets))
        except Misconfigured as error:
            self.change(job.job_id, e.StartupFailed(attempt.cedana_id, str(error)), attempt.cedana_id)
            raise

    def _plan(self, view: View) -> Json:
        spec = view.job.spec
        return {
            **self.say.start(view),
            "work_dir": self._work_dir(view.job),
            "setup": list(spec.setup.run),
            "task": list(spec.task.run),
            "restored_task": list(spec.restored_task.run),
            "env": dict(spec.env),
            "outputs": list(spec.outputs),
            "inputs": inputs_json(spec, view.job.bucket, self.say.objects, self.say.pace),
        }

    def _work_dir(self, job: Job) -> Json | None:
        if job.upload is None:
            return None
        return {
            "name": _name(job.spec.work_dir),
            "url": self.say.objects.url_to_get(upload_key(job.upload.sha256), self.say.pace.address_expiry),
            "sha256": job.upload.sha256,
            "size_bytes": job.upload.size_bytes,
        }


def _name(work_dir: str) -> str:
    """The directory's name on the machine: its last part, or "work_dir" where that says nothing."""
    last = work_dir.rstrip("/").rpartition("/")[2]
    return "work_dir" if last in {"", ".", ".."} else last
