"""All use cases over the fakes, and the steps that a job goes through, as people, agents and clouds take them."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from spotferry.domain.view import CheckLaunch, Decision, DestroyInstance, PlaceJob, Policy, View
from spotferry.providers.registry import parse_notice
from spotferry.store.memory import MemoryStore
from spotferry.types import Attempt, Job, JobFile, JobState, Upload
from spotferry.usecases.agents import Authenticate
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.check_launch import CheckLaunch as SettleLaunch
from spotferry.usecases.create_instance import AgentBundle, CreateInstance
from spotferry.usecases.destroy_instance import DestroyInstance as EndInstance
from spotferry.usecases.greet_agent import GreetAgent
from spotferry.usecases.handle_interruption import HandleInterruption
from spotferry.usecases.hear_agent import HearAgent, LogChunk
from spotferry.usecases.launch import AskCloud
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.poll_status import PollStatus
from spotferry.usecases.read_jobs import ReadJobs
from spotferry.usecases.read_logs import ReadLogs
from spotferry.usecases.read_outputs import ReadOutputs
from spotferry.usecases.request_upload import RequestUpload
from spotferry.usecases.steer_job import SteerJob
from spotferry.usecases.submit_job import Submission, SubmitJob, Submitted
from spotferry.usecases.take_archive import Addresses, Commit, TakeArchive
from spotferry.usecases.word import Pace, SayWord
from tests.fake_cloud import FakeCloud, FakeClouds
from tests.fakes import (
    FakeCatalogue,
    FakeClock,
    FakeObjects,
    FakeQueue,
    FakeRegions,
    FakeSecrets,
)

Json = dict[str, Any]  # Any, here and below: JSON as the protocol and the job file have it
SHA = "ab" * 32
BUNDLE = AgentBundle(sha256="cd" * 32, body=b"the agent")
ARCHIVE = b"a packed work directory"


class CountingStore(MemoryStore):
    """The store in memory, that counts what is asked of it."""

    def __init__(self, policy: Policy | None = None) -> None:
        super().__init__(policy)
        self.loads = 0
        self.saves = 0
        self.touches = 0

    def load(self, job_id: str, instance_id: str | None = None) -> View:
        """Counts."""
        self.loads += 1
        return super().load(job_id, instance_id)

    def save(self, before: View, decision: Decision) -> None:
        """Counts what is written."""
        self.saves += decision.entry is not None
        super().save(before, decision)

    def touch_attempt(self, instance_id: str, seen: datetime) -> None:
        """Counts."""
        self.touches += 1
        super().touch_attempt(instance_id, seen)


class World:
    """One deployment; every use case is a property."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.clock = FakeClock()
        self.store = CountingStore(policy)
        self.queue = FakeQueue()
        self.objects = FakeObjects()
        self.cloud = FakeCloud()
        self.clouds = FakeClouds({"aws": self.cloud})
        self.regions = FakeRegions()
        self.catalogue = FakeCatalogue()
        self.secrets = FakeSecrets()
        self.change = ChangeJob(self.store, self.queue, self.clock)
        self.ask = AskCloud(self.change, self.clouds, self.store, self.clock)
        self.say = SayWord(self.store, self.objects, Pace(), self.clock)
        self.hear = HearAgent(self.change, self.say, self.objects, self.ask)

    @property
    def plan_job(self) -> PlanJob:
        """Plans."""
        return PlanJob(self.catalogue, self.regions, self.store, self.clock)

    @property
    def submit_job(self) -> SubmitJob:
        """Submissions."""
        return SubmitJob("test", "bucket", self.store, self.objects, self.queue, self.plan_job, self.clock)

    @property
    def create_instance(self) -> CreateInstance:
        """Placements."""
        return CreateInstance(
            "test",
            "https://broker",
            BUNDLE,
            self.change,
            self.plan_job,
            self.ask,
            self.clouds,
            self.regions,
            self.objects,
        )

    @cached_property
    def settle_launch(self) -> SettleLaunch:
        """Launches without an answer."""
        return SettleLaunch(self.ask, self.clouds)

    @cached_property
    def end_instance(self) -> EndInstance:
        """Machines that are to end."""
        return EndInstance(self.ask, self.clouds)

    @cached_property
    def interruption(self) -> HandleInterruption:
        """Notices."""
        return HandleInterruption(self.ask, parse_notice)

    @cached_property
    def poll(self) -> PollStatus:
        """Sweeps."""
        return PollStatus(self.ask, self.clouds)

    @cached_property
    def authenticate(self) -> Authenticate:
        """Agents' calls."""
        return Authenticate(self.store, token_of)

    @cached_property
    def greet(self) -> GreetAgent:
        """Hellos."""
        return GreetAgent(self.change, self.say, self.secrets)

    @cached_property
    def archive(self) -> TakeArchive:
        """Checkpoints and outputs."""
        return TakeArchive(self.change, self.say, self.hear, self.objects)

    @cached_property
    def read_jobs(self) -> ReadJobs:
        """Jobs."""
        return ReadJobs(self.store, self.clock)

    @cached_property
    def read_logs(self) -> ReadLogs:
        """Logs."""
        return ReadLogs(self.store, self.objects, self.clock)

    @cached_property
    def read_outputs(self) -> ReadOutputs:
        """Outputs."""
        return ReadOutputs(self.store, self.objects)

    @cached_property
    def request_upload(self) -> RequestUpload:
        """Upload addresses."""
        return RequestUpload(self.objects)

    @cached_property
    def steer(self) -> SteerJob:
        """People's orders."""
        return SteerJob(self.change)

    # ---- the steps of a job

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
                        self.settle_launch(effect.job_id, effect.instance_id)
                    case DestroyInstance():
                        self.end_instance(effect.job_id, effect.instance_id)

    def _keep(self, effect: PlaceJob | CheckLaunch | DestroyInstance) -> bool:
        later = isinstance(effect, PlaceJob) and effect.not_before is not None and effect.not_before > self.clock()
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


def token_of(instance_id: str, epoch: int) -> str:
    """A token that differs from attempt to attempt."""
    return hashlib.sha256(f"{instance_id} {epoch}".encode()).hexdigest()


def key_of(attempt: Attempt) -> str:
    """The key that the attempt's agent made up."""
    return hashlib.sha256(f"key of {attempt.cedana_id}".encode()).hexdigest()


def bearer(attempt: Attempt, *, token: str = "", key: str = "") -> str:
    """The agent's authorization header."""
    token = token or token_of(attempt.cedana_id, attempt.epoch)
    return f"Bearer {attempt.cedana_id}.{token}.{key or key_of(attempt)}"


def warning(attempt: Attempt, allocated_id: str = "") -> Json:
    """EC2's warning that it takes the machine back."""
    return _event(
        "EC2 Spot Instance Interruption Warning",
        attempt.region,
        {"instance-id": allocated_id or attempt.allocated_id, "instance-action": "terminate"},
    )


def state_change(attempt: Attempt, state: str) -> Json:
    """EC2's word that the machine's state changed."""
    return _event(
        "EC2 Instance State-change Notification",
        attempt.region,
        {"instance-id": attempt.allocated_id, "state": state},
    )


def _event(kind: str, region: str, detail: Json) -> Json:
    return {
        "version": "0",
        "id": "e-1",
        "detail-type": kind,
        "source": "aws.ec2",
        "account": "123456789012",
        "time": "2026-05-04T12:00:00Z",
        "region": region,
        "resources": [],
        "detail": detail,
    }


MINUTE = timedelta(minutes=1)
