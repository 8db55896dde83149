"""One deployment, and the steps that a job goes through, as people, agents and clouds take them."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from spotferry.domain.asking import LAUNCH_LEASE
from spotferry.domain.view import CheckLaunch, DestroyInstance, PlaceJob
from spotferry.types import Attempt, Job, JobFile, JobState, Upload
from spotferry.usecases.archive_calls import Addresses, Commit
from spotferry.usecases.hear_agent import LogChunk
from spotferry.usecases.submit_job import Submission, Submitted
from tests.unit.usecases.use_cases import ARCHIVE, BUNDLE, SHA, UseCases
from tests.unit.usecases.wire import bearer, key_of, state_change, token_of, warning

__all__ = ["ARCHIVE", "BUNDLE", "SHA", "World", "bearer", "key_of", "state_change", "token_of", "warning"]

Json = dict[str, Any]  # Any, here and below: JSON as the protocol and the job file have it


class World(UseCases):
    """One deployment with its jobs, machines and agents."""

    def submit(self, key: str = "", **spec: Any) -> Job:
        """A job that is accepted."""
        return self.submitted(key, **spec).job

    def submitted(self, key: str = "", *, upload: Upload | None = None, body: str = "", **spec: Any) -> Submitted:
        """The answer to a submission."""
        job_file = JobFile.model_validate({"task": {"run": ["./run"]}, **spec})
        return self.submit_job(Submission("ann", job_file, "job.yml", upload, body or SHA, key))

    def perform(self) -> None:
        """Perform what waits in the queue, as the functions do, until nothing more is due."""
        while due := [effect for effect in self.queue.take() if not self._keep(effect)]:
            for effect in due:
                match effect:
                    case PlaceJob():
                        self.create_instance(effect.job_id)
                    case CheckLaunch():
                        if not (effect.asked_again_at or self.store.get_attempt(effect.instance_id).allocated_id):
                            self.let_answers_come()
                        self.check_launch(effect.job_id, effect.instance_id)
                    case DestroyInstance():
                        self.destroy_instance(effect.job_id, effect.instance_id)

    def let_answers_come(self) -> None:
        """So long a launch is left to whoever asked, and its check comes no sooner."""
        self.clock.move(seconds=LAUNCH_LEASE.total_seconds())

    def _keep(self, effect: PlaceJob | CheckLaunch | DestroyInstance) -> bool:
        match effect:
            case PlaceJob(not_before=datetime() as due):
                later = due > self.clock()
            case CheckLaunch(asked_again_at=datetime() as asked_at):
                later = asked_at + LAUNCH_LEASE > self.clock()
            case _:
                later = False
        if later:
            self.queue.waiting.append(effect)
        return later

    def job(self, job: Job) -> Job:
        """The job as it is stored."""
        return self.store.get_job(job.job_id)

    def state(self, job: Job) -> JobState:
        """The job's state as it is stored."""
        return self.job(job).state

    def attempt(self, job: Job, number: int = -1) -> Attempt:
        """One of its attempts, the newest unless told otherwise."""
        return self.store.attempts_of(job.job_id)[number]

    def messages(self, job: Job) -> list[str]:
        """What its timeline says."""
        return [entry.message for entry in self.store.timeline(job.job_id)]

    def hello(self, attempt: Attempt) -> Json:
        """The agent says hello."""
        return self.greet(self.authenticate(bearer(attempt), hello=True))

    def report(self, attempt: Attempt, event: str, log: LogChunk | None = None, **data: Any) -> Json:
        """The agent reports."""
        return self.hear.report(self.authenticate(bearer(attempt)), event, data, log)

    def beat(self, attempt: Attempt, phase: str = "running", log: LogChunk | None = None) -> Json:
        """The agent's heartbeat."""
        return self.hear.heartbeat(self.authenticate(bearer(attempt)), phase, log)

    def launched(self, **spec: Any) -> tuple[Job, Attempt]:
        """A job whose machine was made."""
        job = self.submit(**spec)
        self.perform()
        return self.job(job), self.attempt(job)

    def set_up(self, **spec: Any) -> tuple[Job, Attempt]:
        """A job whose agent has said hello."""
        job, attempt = self.launched(**spec)
        self.hello(attempt)
        return self.job(job), self.attempt(job)

    def running(self, **spec: Any) -> tuple[Job, Attempt]:
        """A job whose task runs."""
        job, attempt = self.set_up(**spec)
        self.report(attempt, "setup_finished", seconds=3)
        self.report(attempt, "task_started", restored_from=None)
        return self.job(job), self.attempt(job)

    def interrupted(self, **spec: Any) -> tuple[Job, Attempt, Attempt]:
        """A job whose machine is being taken back, with its successor launched: owner and successor."""
        job, owner = self.running(**spec)
        self.interruption(warning(owner))
        self.perform()
        return self.job(job), self.attempt(job, 0), self.attempt(job, 1)

    def send_bytes(self, attempt: Attempt, kind: str = "checkpoint", body: bytes = ARCHIVE) -> Json:
        """The agent sends an archive of one part; the beginning of its commit."""
        name = "workdir.tar.gz" if kind == "checkpoint" else "outputs.tar.gz"
        part = {"name": name, "size_bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        wanted = Addresses.model_validate({"kind": kind, "parts": [part]})
        where = self.archive.addresses(self.authenticate(bearer(attempt)), wanted)
        etags = [self.objects.put_chunk(url, body) for url in where["parts"][0]["urls"]]
        sent = {**part, "upload_id": where["parts"][0]["upload_id"], "etags": etags}
        return {"kind": kind, "nonce": where["nonce"], "parts": [sent], "engine": "workdir", "reason": "heartbeat"}

    def commit(self, attempt: Attempt, commit: Mapping[str, object]) -> Json:
        """The agent commits."""
        return self.archive.commit(self.authenticate(bearer(attempt)), Commit.model_validate(commit))

    def checkpoint(self, attempt: Attempt, body: bytes = ARCHIVE, **more: object) -> Json:
        """The agent makes a checkpoint."""
        return self.commit(attempt, {**self.send_bytes(attempt, body=body), **more})

    def outputs(self, attempt: Attempt, files: Sequence[Mapping[str, object]] = ()) -> Json:
        """The agent sends its outputs."""
        return self.commit(attempt, {**self.send_bytes(attempt, "outputs"), "files": files})

    def later(self, **by: float) -> None:
        """Time goes on, and a poll looks."""
        self.clock.move(**by)
        self.poll()
