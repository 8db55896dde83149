"""The only module that names concrete adapters; `people`, `agents` and `machines` put use cases over them.

Those that need the SDK or SQLite are loaded when they are first asked for: a cold start is short, and a request that is
refused never waits for them.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING

from spotferry.domain.boot import agent_token, user_data
from spotferry.ports.cloud import CloudProvider
from spotferry.providers import registry
from spotferry.runtime.ahead import load_ahead
from spotferry.runtime.aws_clients import Client, client
from spotferry.runtime.parameters import Parameters
from spotferry.runtime.queues import Queues
from spotferry.runtime.settings import Settings
from spotferry.types.errors import Misconfigured
from spotferry.types.instance import Attempt
from spotferry.usecases.plan_job import PlanJob
from spotferry.usecases.pool_history import ReadHistory
from spotferry.usecases.reap_rounds import Rounds

if TYPE_CHECKING:
    from spotferry.catalog.drafts import BucketCatalogues
    from spotferry.catalog.source import CatalogueFile
    from spotferry.runtime.bucket import Bucket
    from spotferry.store.dynamo import DynamoStore
    from spotferry.store.models import TableNames

load_ahead(os.environ)


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
    """The adapters that the settings name, each made when it is first asked for."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def client(self, service: str) -> Callable[[], Client]:
        """Makes the client of one of the broker's own services, on first use."""
        return partial(client, service, self.settings.region)

    @cached_property
    def store(self) -> "DynamoStore":
        """Jobs, machines and bans."""
        store: type[DynamoStore] = import_module("spotferry.store.dynamo").DynamoStore
        table_names: type[TableNames] = import_module("spotferry.store.models").TableNames
        names = table_names(
            jobs=self.settings.jobs_table,
            instances=self.settings.instances_table,
            checkpoints=self.settings.checkpoints_table,
            timeline=self.settings.timeline_table,
            bans=self.settings.bans_table,
        )
        return store(names, self.settings.policy, region=self.settings.region)

    @cached_property
    def objects(self) -> "Bucket":
        """The bucket."""
        bucket: type[Bucket] = import_module("spotferry.runtime.bucket").Bucket
        return bucket(self.settings.need("bucket"), self.client("s3"))

    @cached_property
    def queue(self) -> Queues:
        """The queues of effects."""
        need = self.settings.need
        return Queues(need("placement_queue_url"), need("destroy_queue_url"), self.client("sqs"))

    @cached_property
    def parameters(self) -> Parameters:
        """Launch regions and secrets."""
        return Parameters(self.settings.parameter_prefix, self.client("ssm"), utc_now)

    @cached_property
    def catalogue(self) -> "CatalogueFile":
        """Today's offers."""
        catalogue: type[CatalogueFile] = import_module("spotferry.catalog.source").CatalogueFile
        return catalogue.in_bucket(self.objects, utc_now)

    @cached_property
    def catalogues(self) -> "BucketCatalogues":
        """The catalogue as a file, and the next one."""
        catalogues: type[BucketCatalogues] = import_module("spotferry.catalog.drafts").BucketCatalogues
        return catalogues(self.objects)

    @cached_property
    def token_secret(self) -> bytes:
        """What agents' tokens are made of.

        Raises:
            Misconfigured: it is empty.
        """
        answer = self.client("secretsmanager")().get_secret_value(SecretId=self.settings.need("token_secret_arn"))
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
            deployment=self.settings.deployment,
            user_data=self.user_data_of,
            clock=utc_now,
            secret=self.parameters.cloud_secret,
        )
        return LoadedClouds(lru_cache(maxsize=None)(lambda name: registry.load(name)(context)))

    @cached_property
    def reaper_rounds(self) -> Rounds:
        """What this process knows of the reaper's rounds."""
        return Rounds()

    @cached_property
    def plan_job(self) -> PlanJob:
        """Plans without jobs."""
        history = ReadHistory(self.store, utc_now)
        launchable = frozenset(registry.names())
        return PlanJob(self.catalogue, self.parameters, self.store, utc_now, history, launchable)


@lru_cache(maxsize=1)
def wiring() -> Wiring:
    """The function's own wiring, made at its first call from its environment.

    Raises:
        Misconfigured: the environment is not as the template sets it.
    """
    return Wiring(Settings.from_environment(os.environ))
