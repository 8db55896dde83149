"""A machine's agent says hello and gets its plan."""

from collections.abc import Mapping
from dataclasses import dataclass

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Order
from spotferry.domain.view import View
from spotferry.ports.cloud import COMMANDS, CommandStore, SecretStore
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


_MOST_FACTS = 16
_LONGEST_FACT = 4096


@dataclass(frozen=True, slots=True)
class GreetAgent:
    """Records that the machine is up, and hands out all that it needs to run the job."""

    change: ChangeJob
    say: SayWord
    secrets: SecretStore
    defaults: CommandStore

    def __call__(self, attempt: Attempt, machine: object = None) -> Json:
        """The answer to a hello; a repeat gets the same plan with fresh addresses.

        Args:
            attempt: who says hello.
            machine: what it says of its machine, as it came; what is no fact is left out.

        Raises:
            StaleAttempt: the attempt no longer takes part, or the job is over.
            Misconfigured: a secret that the job names is not there, or the deployment's own lines are not what they
                should be; the job is on hold until somebody mends that and asks for a retry, while the agent repeats
                its hello.
        """
        self.change.store.touch_attempt(attempt.cedana_id, self.change.clock())
        arrived = e.AgentArrived(attempt.cedana_id, facts_of(machine))
        try:
            view = self.change(attempt.job_id, arrived, attempt.cedana_id)
        except IllegalTransition as error:
            raise StaleAttempt(str(error)) from error
        job = view.job
        if job.state.is_final:
            raise StaleAttempt(f"job {job.job_id} is {job.state}")
        word = self.say(view, attempt.cedana_id)
        leaves = word["directive"]["kind"] in _LEAVING
        lines, secrets = ({}, {}) if leaves else self._settings(job, attempt)
        return {
            **word,
            "job_id": job.job_id,
            "epoch": attempt.epoch,
            "grace_seconds": self.say.pace.grace.total_seconds(),
            "log_offset": 0,
            "plan": self._plan(view) | {"commands": lines, "secrets": secrets},
        }

    def _settings(self, job: Job, attempt: Attempt) -> tuple[dict[str, list[str]], dict[str, str]]:
        """The lines around the task's life, the deployment's before the job's, and the job's secrets."""
        try:
            first = self.defaults.commands()
            lines = {name: [*first.get(name, ()), *getattr(job.spec, name).run] for name in COMMANDS}
            secrets = dict(self.secrets.resolve(job.spec.secrets)) if job.spec.secrets else {}
        except Misconfigured as error:
            self.change(job.job_id, e.StartupFailed(attempt.cedana_id, str(error)), attempt.cedana_id)
            raise
        return {name: run for name, run in lines.items() if run}, secrets

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
            "checkpoint": {
                "engine": spec.checkpoint.engine,
                "paths": list(spec.checkpoint.paths),
                "signal": spec.checkpoint.signal,
                "grace_seconds": self.say.pace.grace.total_seconds(),
            },
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


def facts_of(machine: object) -> dict[str, str]:
    """What an agent says of its machine, as names and short texts."""
    if not isinstance(machine, Mapping):
        return {}
    said = [(str(name), str(value)) for name, value in machine.items() if isinstance(value, str | int | float)]
    return {name: value for name, value in said[:_MOST_FACTS] if len(name) + len(value) <= _LONGEST_FACT}


def _name(work_dir: str) -> str:
    """The directory's name on the machine: its last part, or "work_dir" where that says nothing."""
    last = work_dir.rstrip("/").rpartition("/")[2]
    return "work_dir" if last in {"", ".", ".."} else last
