"""The only module that names concrete adapters: it puts the use cases of one function together, on demand."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial

from spotferry.catalog.source import CatalogueFile
from spotferry.domain.boot import agent_token, user_data
from spotferry.ports.cloud import CloudProvider
from spotferry.providers import registry
from spotferry.runtime.agent_bundle import agent_bundle
from spotferry.runtime.aws_clients import Client, client
from spotferry.runtime.bucket import Bucket
from spotferry.runtime.parameters import Parameters
from spotferry.runtime.queues import NoticeQueue, Queues
from spotferry.runtime.settings import Settings
from spotferry.store.dynamo import DynamoStore
from spotferry.store.models import TableNames
from spotferry.types.errors import Misconfigured
from spotferry.types.instance import Attempt
from spotferry.usecases.agents import Authenticate
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.check_launch import CheckLaunch
from spotferry.usecases.create_instance import AgentBundle, CreateInstance
from spotferry.usecases.destroy_instance import DestroyInstance
from spotferry.usecases.greet_agent import GreetAgent
from spotferry.usecases.handle_interruption import HandleInterruption
from spotferry.usecases.hear_agent import HearAgent
from spotferry.usecases.launch import AskCloud
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.poll_status import PollStatus
from spotferry.usecases.read_jobs import ReadJobs
from spotferry.usecases.read_logs import ReadLogs
from spotferry.usecases.read_outputs import ReadOutputs
from spotferry.usecases.request_upload import RequestUpload
from spotferry.usecases.steer_job import SteerJob
from spotferry.usecases.submit_job import SubmitJob
from spotferry.usecases.take_archive import TakeArchive
from spotferry.usecases.word import SayWord


def utc_now() -> datetime:
    """The clock that everything is given."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class LoadedClouds:
    """The clouds of this deployment; each is loaded when it is first asked for, and kept."""

    make: Callable[[str], CloudProvider]

    def provider(self, name: str) -> CloudProvider:
        """The cloud of this name.

        Raises:
            Misconfigured: there is no such cloud here.
        """
        return self.make(name)


class Wiring:
    """All use cases over the adapters that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def _client(self, service: str) -> Callable[[], Client]:
        return partial(client, service, self.settings.region)

    @cached_property
    def store(self) -> DynamoStore:
        """Jobs, machines and bans."""
        names = TableNames(
            jobs=self.settings.jobs_table,
            instances=self.settings.instances_table,
            checkpoints=self.settings.checkpoints_table,
            timeline=self.settings.timeline_table,
            bans=self.settings.bans_table,
        )
        return DynamoStore(names, self.settings.policy, region=self.settings.region)

    @cached_property
    def objects(self) -> Bucket:
        """The bucket."""
        return Bucket(self.settings.need("bucket"), self._client("s3"))

    @cached_property
    def queue(self) -> Queues:
        """The queues of effects."""
        need = self.settings.need
        return Queues(need("placement_queue_url"), need("destroy_queue_url"), self._client("sqs"))

    @cached_property
    def notices(self) -> NoticeQueue:
        """The queue of events about machines that nobody knows yet."""
        return NoticeQueue(self.settings.need("notice_queue_url"), self._client("sqs"))

    @cached_property
    def parameters(self) -> Parameters:
        """Launch regions and secrets."""
        return Parameters(self.settings.parameter_prefix, self._client("ssm"), utc_now)

    @cached_property
    def catalogue(self) -> CatalogueFile:
        """Today's offers."""
        return CatalogueFile.in_bucket(self.objects, utc_now)

    @cached_property
    def token_secret(self) -> bytes:
        """What agents' tokens are made of.

        Raises:
            Misconfigured: it is empty.
        """
        answer = self._client("secretsmanager")().get_secret_value(SecretId=self.settings.need("token_secret_arn"))
        secret = str(answer.get("SecretString", ""))
        if not secret:
            raise Misconfigured("the secret that agents' tokens are made of is empty: set it and deploy again")
        return secret.encode()

    def token_of(self, instance_id: str, epoch: int) -> str:
        """The token of an attempt's agent."""
        return agent_token(self.token_secret, instance_id, epoch)

    def user_data_of(self, attempt: Attempt) -> str:
        """The user data of an attempt's machine: the same bytes whenever it is asked."""
        assert attempt.launch is not None
        return user_data(
            broker_url=attempt.launch.broker_url,
            agent_sha256=attempt.launch.agent_sha256,
            instance_id=attempt.cedana_id,
            epoch=attempt.epoch,
            token=self.token_of(attempt.cedana_id, attempt.epoch),
            provider=attempt.provider,
        )

    @cached_property
    def clouds(self) -> LoadedClouds:
        """The clouds."""
        context = registry.ProviderContext(
            deployment=self.settings.deployment, user_data=self.user_data_of, clock=utc_now
        )
        return LoadedClouds(lru_cache(maxsize=None)(lambda name: registry.load(name)(context)))

    @cached_property
    def change(self) -> ChangeJob:
        """Load, decide, save, perform."""
        return ChangeJob(self.store, self.queue, utc_now)

    @cached_property
    def ask_cloud(self) -> AskCloud:
        """Launches whose intent is saved."""
        return AskCloud(self.change, self.clouds, self.store, utc_now)

    @cached_property
    def plan_job(self) -> PlanJob:
        """Plans without jobs."""
        return PlanJob(self.catalogue, self.parameters, self.store, utc_now)

    @cached_property
    def submit_job(self) -> SubmitJob:
        """Submissions."""
        return SubmitJob(
            deployment=self.settings.deployment,
            bucket=self.settings.need("bucket"),
            store=self.store,
            objects=self.objects,
            queue=self.queue,
            plan_job=self.plan_job,
            clock=utc_now,
        )

    @cached_property
    def create_instance(self) -> CreateInstance:
        """Placements."""
        bundle = agent_bundle()
        return CreateInstance(
            deployment=self.settings.deployment,
            broker_url=self.settings.need("broker_url"),
            agent=AgentBundle(bundle.sha256, bundle.content),
            change=self.change,
            plan_job=self.plan_job,
            ask=self.ask_cloud,
            clouds=self.clouds,
            regions=self.parameters,
            objects=self.objects,
        )

    @cached_property
    def check_launch(self) -> CheckLaunch:
        """Launches without an answer."""
        return CheckLaunch(self.ask_cloud, self.clouds)

    @cached_property
    def destroy_instance(self) -> DestroyInstance:
        """Machines that are to end."""
        return DestroyInstance(self.ask_cloud, self.clouds)

    @cached_property
    def handle_interruption(self) -> HandleInterruption:
        """What clouds announce."""
        return HandleInterruption(self.ask_cloud, registry.parse_notice)

    @cached_property
    def poll_status(self) -> PollStatus:
        """The sweep."""
        return PollStatus(self.ask_cloud, self.clouds)

    @cached_property
    def authenticate(self) -> Authenticate:
        """Agents' calls."""
        return Authenticate(self.store, self.token_of)

    @cached_property
    def say_word(self) -> SayWord:
        """The word to an agent."""
        return SayWord(self.store, self.objects, self.settings.pace, utc_now)

    @cached_property
    def greet_agent(self) -> GreetAgent:
        """Hellos."""
        return GreetAgent(self.change, self.say_word, self.parameters)

    @cached_property
    def hear_agent(self) -> HearAgent:
        """Heartbeats and reports."""
        return HearAgent(self.change, self.say_word, self.objects, self.ask_cloud)

    @cached_property
    def take_archive(self) -> TakeArchive:
        """Checkpoints and outputs."""
        return TakeArchive(self.change, self.say_word, self.hear_agent, self.objects)

    @cached_property
    def request_upload(self) -> RequestUpload:
        """Work directories."""
        return RequestUpload(self.objects)

    @cached_property
    def read_jobs(self) -> ReadJobs:
        """Jobs as people see them."""
        return ReadJobs(self.store, utc_now)

    @cached_property
    def read_logs(self) -> ReadLogs:
        """Logs."""
        return ReadLogs(self.store, self.objects, utc_now)

    @cached_property
    def read_outputs(self) -> ReadOutputs:
        """Outputs."""
        return ReadOutputs(self.store, self.objects)

    @cached_property
    def steer_job(self) -> SteerJob:
        """People's orders."""
        return SteerJob(self.change)


@lru_cache(maxsize=1)
def wiring() -> Wiring:
    """The function's own wiring, made at its first call from its environment.

    Raises:
        Misconfigured: the environment is not as the template sets it.
    """
    return Wiring(Settings.from_environment(os.environ))
