"""The tables as PynamoDB models.

A record's own fields travel in `body`, one JSON text of the record's own version. Beside it stands what DynamoDB has to
see (keys, index keys, the revision that a save is conditional on) and what plain updates write without touching the
body (`watched_until`, `last_seen`, `heartbeats`, `agent_key_sha256`). The classes here name no table: `bind` makes
subclasses of them for one set of tables, which share one connection and nothing else, so that two stores never meet.
"""

from dataclasses import dataclass
from typing import TypeVar, cast

from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UnicodeSetAttribute
from pynamodb.connection import Connection
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, KeysOnlyProjection
from pynamodb.models import Model

# The four `no-untyped-call` below: PynamoDB's hook for subclasses of an index has no annotations.

CONNECT_TIMEOUT_SECONDS = 2.0
READ_TIMEOUT_SECONDS = 5.0
RETRIES = 2
"""Of throttled and failed calls, with growing pauses: a call ends within half a minute, whatever the service does."""


@dataclass(frozen=True, slots=True)
class TableNames:
    """Names of the deployment's tables."""

    jobs: str
    instances: str
    checkpoints: str
    timeline: str
    bans: str


class UnsettledIndex(GlobalSecondaryIndex["JobItem"]):  # type: ignore[no-untyped-call]
    """Jobs that are not settled; a settled one has no shard and so is not in it."""

    class Meta:
        """Settings of the index."""

        index_name = "unsettled"
        projection = KeysOnlyProjection()

    unsettled_shard = UnicodeAttribute(hash_key=True)
    state_at = UnicodeAttribute(range_key=True)


class ByOwnerIndex(GlobalSecondaryIndex["JobItem"]):  # type: ignore[no-untyped-call]
    """Jobs by owner and time."""

    class Meta:
        """Settings of the index."""

        index_name = "by_owner"
        projection = AllProjection()

    owner = UnicodeAttribute(hash_key=True)
    created_at = UnicodeAttribute(range_key=True)


class JobItem(Model):
    """One job."""

    job_id = UnicodeAttribute(hash_key=True)
    revision = NumberAttribute()
    unsettled_shard = UnicodeAttribute(null=True)
    state_at = UnicodeAttribute()
    owner = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()
    watched_until = UnicodeAttribute(null=True)
    body = UnicodeAttribute()

    unsettled = UnsettledIndex()
    by_owner = ByOwnerIndex()


class ByJobIndex(GlobalSecondaryIndex["InstanceItem"]):  # type: ignore[no-untyped-call]
    """Attempts by job, for people who look into the tables; the broker reads a job's attempts by their ids."""

    class Meta:
        """Settings of the index."""

        index_name = "by_job"
        projection = AllProjection()

    job_id = UnicodeAttribute(hash_key=True)
    epoch = NumberAttribute(range_key=True)


class LivingIndex(GlobalSecondaryIndex["InstanceItem"]):  # type: ignore[no-untyped-call]
    """Attempts whose machine is not known to be gone, by provider and region."""

    class Meta:
        """Settings of the index."""

        index_name = "living"
        projection = KeysOnlyProjection()

    living = UnicodeAttribute(hash_key=True)
    cedana_id = UnicodeAttribute(range_key=True)


class InstanceItem(Model):
    """One attempt; or a signpost from the cloud's id to ours; or the register of regions. The last two have no job.

    Attributes:
        points_to: of a signpost: the attempt's id.
        regions: of the register: the keys of the living index that were ever used.
        price: exact, because the body has it as a JSON number.
        tag: not in the body, as in the seed.
    """

    cedana_id = UnicodeAttribute(hash_key=True)
    job_id = UnicodeAttribute(null=True)
    epoch = NumberAttribute(null=True)
    living = UnicodeAttribute(null=True)
    price = UnicodeAttribute(null=True)
    tag = UnicodeAttribute(null=True)
    last_seen = UnicodeAttribute(null=True)
    heartbeats = NumberAttribute(null=True)
    agent_key_sha256 = UnicodeAttribute(null=True)
    body = UnicodeAttribute(null=True)
    points_to = UnicodeAttribute(null=True)
    regions = UnicodeSetAttribute()

    by_job = ByJobIndex()
    living_index = LivingIndex()


class CheckpointItem(Model):
    """One committed checkpoint."""

    job_id = UnicodeAttribute(hash_key=True)
    number = NumberAttribute(range_key=True)
    body = UnicodeAttribute()


class TimelineItem(Model):
    """One change of a job."""

    job_id = UnicodeAttribute(hash_key=True)
    revision = NumberAttribute(range_key=True)
    body = UnicodeAttribute()


class BanItem(Model):
    """One pool that is left alone, or one machine that was seen without an owner (`keys.sightings_key`).

    The table's TTL sweeps it up some time after its end.

    Attributes:
        since: of a machine: when it was first seen so.
    """

    market = UnicodeAttribute(hash_key=True)
    pool = UnicodeAttribute(range_key=True)
    until = UnicodeAttribute()
    since = UnicodeAttribute(null=True)
    reason = UnicodeAttribute()
    expires_at_epoch = NumberAttribute()


@dataclass(frozen=True, slots=True)
class Tables:
    """The models of one store, over one connection."""

    connection: Connection
    jobs: type[JobItem]
    instances: type[InstanceItem]
    checkpoints: type[CheckpointItem]
    timeline: type[TimelineItem]
    bans: type[BanItem]


_Item = TypeVar("_Item", bound=Model)


def bind(names: TableNames, region: str, host: str | None) -> Tables:
    """The models bound to these tables; connects when first used.

    Args:
        names: the tables.
        region: where they are.
        host: the service's address; None: as the environment says (AWS_ENDPOINT_URL_DYNAMODB, AWS_ENDPOINT_URL), else
            AWS itself.
    """
    connection = Connection(
        region=region,
        host=host,
        connect_timeout_seconds=CONNECT_TIMEOUT_SECONDS,
        read_timeout_seconds=READ_TIMEOUT_SECONDS,
        max_retry_attempts=RETRIES,
    )
    return Tables(
        connection,
        _bound(JobItem, names.jobs, connection),
        _bound(InstanceItem, names.instances, connection),
        _bound(CheckpointItem, names.checkpoints, connection),
        _bound(TimelineItem, names.timeline, connection),
        _bound(BanItem, names.bans, connection),
    )


def _bound(model: type[_Item], table_name: str, connection: Connection) -> type[_Item]:
    meta = type("Meta", (), {"table_name": table_name, "region": connection.region, "host": connection.host})
    bound = cast("type[_Item]", type(model.__name__, (model,), {"Meta": meta, "__module__": model.__module__}))
    # Each model would make a client of its own, a tenth of a second each: all of a store share one instead.
    table = bound._get_connection()  # noqa: SLF001
    connection.add_meta_table(table.get_meta_table())
    table.connection = connection
    return bound
