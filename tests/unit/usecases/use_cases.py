"""One deployment: all use cases over the fakes."""

from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from spotferry.domain.pace import Pace
from spotferry.domain.view import Decision, Policy, View
from spotferry.providers.registry import parse_notice
from spotferry.store.memory import MemoryStore
from spotferry.usecases.agents import Authenticate
from spotferry.usecases.begin_again import BeginAgain
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.check_launch import CheckLaunch
from spotferry.usecases.create_instance import AgentBundle, CreateInstance
from spotferry.usecases.destroy_instance import DestroyInstance
from spotferry.usecases.greet_agent import GreetAgent
from spotferry.usecases.handle_interruption import HandleInterruption
from spotferry.usecases.hear_agent import HearAgent
from spotferry.usecases.inputs import CheckInputs
from spotferry.usecases.launch import AskCloud
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.poll_status import PollStatus
from spotferry.usecases.pool_history import ReadHistory
from spotferry.usecases.prune_checkpoints import PruneCheckpoints
from spotferry.usecases.read_jobs import ReadJobs
from spotferry.usecases.read_logs import ReadLogs
from spotferry.usecases.read_outputs import ReadOutputs
from spotferry.usecases.reap import Reap
from spotferry.usecases.reap_rounds import Rounds
from spotferry.usecases.request_upload import RequestUpload
from spotferry.usecases.steer_job import SteerJob
from spotferry.usecases.submit_job import SubmitJob
from spotferry.usecases.take_archive import TakeArchive
from spotferry.usecases.word import SayWord
from tests.fake_cloud import FakeCloud, FakeClouds
from tests.fakes import (
    FakeCatalogue,
    FakeClock,
    FakeDefaults,
    FakeObjects,
    FakeProbe,
    FakeQueue,
    FakeRegions,
    FakeSecrets,
)
from tests.unit.usecases.wire import token_of

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


class UseCases:
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
        self.defaults = FakeDefaults()
        self.probe = FakeProbe()
        self.change = ChangeJob(self.store, self.queue, self.clock)
        self.ask = AskCloud(self.change, self.clouds, self.store)
        self.say = SayWord(self.store, self.objects, Pace(), self.clock)
        self.hear = HearAgent(self.change, self.say, self.objects, self.ask)

    @property
    def plan_job(self) -> PlanJob:
        """Plans."""
        history = ReadHistory(self.store, self.clock)
        return PlanJob(self.catalogue, self.regions, self.store, self.clock, history, frozenset({"aws"}))

    @property
    def submit_job(self) -> SubmitJob:
        """Submissions."""
        check_inputs = CheckInputs("bucket", self.objects, self.probe)
        return SubmitJob(
            "test", "bucket", self.store, self.objects, self.queue, self.plan_job, self.clock, check_inputs
        )

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
    def check_launch(self) -> CheckLaunch:
        """Launches without an answer."""
        return CheckLaunch(self.ask, self.clouds)

    @cached_property
    def destroy_instance(self) -> DestroyInstance:
        """Machines that are to end."""
        return DestroyInstance(self.ask, self.clouds)

    @cached_property
    def interruption(self) -> HandleInterruption:
        """Notices."""
        return HandleInterruption(self.ask, parse_notice)

    @cached_property
    def poll(self) -> PollStatus:
        """Sweeps."""
        return PollStatus(self.ask, self.clouds)

    @cached_property
    def reap(self) -> Reap:
        """The end of machines that nobody owns."""
        return Reap(self.store, self.clouds, self.clock, Policy().visibility, Rounds())

    @cached_property
    def authenticate(self) -> Authenticate:
        """Agents' calls."""
        return Authenticate(self.change, token_of)

    @cached_property
    def greet(self) -> GreetAgent:
        """Hellos."""
        return GreetAgent(self.change, self.say, self.secrets, self.defaults)

    @cached_property
    def archive(self) -> TakeArchive:
        """Checkpoints and outputs."""
        prune = PruneCheckpoints(self.store, self.objects, self.clock)
        return TakeArchive(self.change, self.say, self.hear, self.objects, prune)

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
        return RequestUpload(self.objects, self.clock, timedelta(days=90))

    @cached_property
    def steer(self) -> SteerJob:
        """People's orders."""
        return SteerJob(self.change, BeginAgain("test", self.change, self.objects))
