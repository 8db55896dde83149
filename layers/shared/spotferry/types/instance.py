"""Machines: what is offered, what was bought, and one attempt to run a job on one."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from spotferry.types.base import RECORD_VERSION, JsonMoney, Money, Record, Time, Value
from spotferry.types.gpu import GpuInfo, parse_gpus

INSTANCE_STATES: Mapping[str, int] = {
    "pending": 0,
    "running": 1,
    "shutting-down": 2,
    "terminated": 3,
    "stopping": 4,
}
"""The states of a machine, with the seed's numbers."""

Market = Literal["spot", "on_demand"]


class Instance(Record):
    """A machine, offered or bought, under the seed's names and JSON keys.

    Attributes:
        cedana_id: our id, the record's key and the cloud's idempotency token; not in the JSON.
        allocated_id: the id that the cloud gave; not to be used as a key.
        price: US dollars an hour, disk apart.
        state: a name of INSTANCE_STATES.
        tag: free text; not in the JSON.
    """

    id: int = Field(default=0, alias="ID")
    created_at: Time | None = Field(default=None, alias="CreatedAt")
    updated_at: Time | None = Field(default=None, alias="UpdatedAt")
    deleted_at: Time | None = Field(default=None, alias="DeletedAt")
    cedana_id: str = Field(default="", exclude=True)
    allocated_id: str = ""
    provider: str = ""
    instance_type: str = Field(default="", alias="InstanceType")
    accelerator_name: str = Field(default="", alias="AcceleratorName")
    accelerator_count: int = Field(default=0, alias="AcceleratorCount")
    vcpus: float = Field(default=0, alias="vCPUs")
    memory_gib: float = Field(default=0, alias="MemoryGiB")
    gpus: str = Field(default="", alias="GPU")
    region: str = Field(default="", alias="Region")
    availability_zone: str = Field(default="", alias="AvailabilityZone")
    price: JsonMoney = Field(default=Decimal(0), alias="Price")
    ip_address: str = Field(default="", alias="ip_addr")
    state: str = ""
    tag: str = Field(default="", exclude=True)

    def get_gpus(self) -> GpuInfo:
        """The GPUs; an empty GpuInfo when there are none or the text is malformed."""
        return parse_gpus(self.gpus)


class Offer(Value):
    """One machine type in one zone at today's prices: what placement chooses from.

    Attributes:
        provider: the cloud.
        region: the region's name.
        zone: the zone's name or id, as the list has it; "" where the cloud places by region.
        instance_type: the cloud's name of the type.
        arch: "x86_64" or "arm64".
        vcpus: virtual CPUs.
        memory_gib: memory in GiB.
        gpu_name: name of the GPU, "" for none; gpu_maker, gpu_count and vram_mib (all GPUs together) go with it.
        spot_usd_hour: spot price; None where there is no spot market.
        on_demand_usd_hour: list price; None when unknown.
        disk_usd_gib_month: price of one GiB of the disk that the machine gets, for a month of 730 hours.
        read_at: when the prices were read.
    """

    provider: str
    region: str
    zone: str
    instance_type: str
    arch: str = "x86_64"
    vcpus: float
    memory_gib: float
    gpu_name: str = ""
    gpu_maker: str = ""
    gpu_count: int = 0
    vram_mib: int = 0
    spot_usd_hour: Money | None = None
    on_demand_usd_hour: Money | None = None
    disk_usd_gib_month: Money = Decimal(0)
    read_at: Time | None = None


class Candidate(Value):
    """An offer in one market, with the disk priced in: what the broker would buy.

    Attributes:
        offer, market: the machine; spot or on_demand.
        price_usd_hour: the machine alone, in that market.
        disk_gb, disk_usd_hour: size of its disk; the disk alone.
    """

    offer: Offer
    market: Market
    price_usd_hour: Money
    disk_gb: int
    disk_usd_hour: Money = Decimal(0)

    @property
    def total_usd_hour(self) -> Decimal:
        """Machine and disk, US dollars an hour: what is compared."""
        return self.price_usd_hour + self.disk_usd_hour

    @property
    def pool(self) -> str:
        """The pool that takes machines back together: `region/zone/type`."""
        return f"{self.offer.region}/{self.offer.zone}/{self.offer.instance_type}"


class LaunchRequest(Value):
    """All that goes into the cloud's launch call, fixed before it is asked, so that a repeat is the same request.

    Attributes:
        version: of this format.
        image_id, disk_gb: what the machine boots, resolved once; size of its root disk.
        network: the cloud's own names for where it is placed (subnet, security group, instance profile).
        tags: what the machine carries, so that it can be found and told apart.
        agent_sha256, broker_url: digest of the agent that the user data fetches; where the machine reports.
        max_price_usd_hour: cap for a spot machine; None: the cloud's default (the on-demand price).
        own_image: the job named its image itself, so what is wrong with it concerns no other job.
    """

    version: int = RECORD_VERSION
    image_id: str
    disk_gb: int
    network: Mapping[str, str] = {}
    tags: Mapping[str, str] = {}
    agent_sha256: str
    broker_url: str
    max_price_usd_hour: Money | None = None
    own_image: bool = False


EndedBy = Literal["", "us", "cloud", "launch"]
"""Nobody knows; the broker or the machine itself; the cloud took it back; it never came to run."""


class AttemptPhase(StrEnum):
    """How far one attempt has come."""

    REQUESTED = "requested"
    """The intent is saved; the cloud's answer is not."""
    CREATED = "created"
    """The cloud made the machine."""
    ARRIVED = "arrived"
    """Its agent said hello."""
    READY = "ready"
    """Its setup is done."""
    HELD = "held"
    """Its setup or start failed; the machine waits for a retry."""
    RELEASED = "released"
    """Its agent stopped the task and gave the job back: nothing more comes from it."""


class Attempt(Instance):
    """One attempt of a job on one machine: the stored record of table Instances.

    Attributes:
        job_id: the job.
        epoch: number of the attempt, from 1; ownership of the job is an epoch.
        phase: how far it has come.
        market: spot or on_demand.
        on_demand_usd_hour: the list price of the same machine at launch; None when it was unknown.
        disk_gb, disk_usd_hour: its disk, and what that costs an hour.
        plan: the proof of the choice, as data (`domain.placement.Plan`).
        launch: the fixed request.
        requested_at, launched_at, arrived_at, released_at, gone_at: when it came so far; the launch by the cloud's own
            clock where it tells.
        asked_again_at: when the cloud was last asked for it again; None: once only, at `requested_at`.
        billed_until: when the cloud stopped billing it, by the cloud's word; None: not ended, or it did not say.
        ended_by: who ended it, where the cloud told: what it bills depends on that.
        heartbeats: its agent's heartbeats so far; a plain update like last_seen.
        reports: number of its agent's last report that changed something.
        notice_deadline: when the cloud takes the machine, once it said so; notice_at when it said it.
        taken_back: the cloud said that it takes it back; a notice may have other causes.
        ending: we ordered its end; owed until it is gone.
        end_reason: why it ended or failed, for people.
        cloud_reason: the cloud's own words for the state it is in.
        failure_code: the cloud's code of a failed launch.
        agent_key_sha256: digest of the key that its first hello brought; "" before.
        last_seen: last word of its agent; a plain update that never conflicts with a decision.
        held_because: what failed, while phase is HELD: "setup" or "startup".
        facts: what its agent said of the machine at hello (arch, kernel, memory), for people.
        interruptions_per_hour: how often its pool takes machines back, as far as was known at launch; None: by class.
        started_at: when the task first started on it: from then on there is something to save.
        restarting: the task failed by itself, and is to be started again on it.
        advised_at: when the cloud forecast that it may take it back, and the job was to leave at that.
    """

    version: int = RECORD_VERSION
    job_id: str
    epoch: int
    phase: AttemptPhase = AttemptPhase.REQUESTED
    market: Market = "spot"
    arch: str = "x86_64"
    on_demand_usd_hour: Money | None = None
    disk_gb: int = 0
    disk_usd_hour: Money = Decimal(0)
    plan: Mapping[str, Any] = {}  # Any: JSON as written, of the plan's own version
    launch: LaunchRequest | None = None
    requested_at: Time
    launched_at: Time | None = None
    arrived_at: Time | None = None
    released_at: Time | None = None
    gone_at: Time | None = None
    asked_again_at: Time | None = None
    billed_until: Time | None = None
    ended_by: EndedBy = ""
    heartbeats: int = 0
    reports: int = 0
    notice_at: Time | None = None
    notice_deadline: Time | None = None
    taken_back: bool = False
    ending: bool = False
    end_reason: str = ""
    cloud_reason: str = ""
    failure_code: str = ""
    agent_key_sha256: str = ""
    last_seen: Time | None = None
    held_because: Literal["", "setup", "startup"] = ""
    facts: Mapping[str, str] = {}
    interruptions_per_hour: Money | None = None
    started_at: Time | None = None
    restarting: bool = False
    advised_at: Time | None = None

    @property
    def is_gone(self) -> bool:
        """The cloud confirmed its end, or it never came to be."""
        return self.gone_at is not None

    @property
    def noticed(self) -> bool:
        """It is said to end soon, by the cloud or by us."""
        return self.notice_at is not None

    def seen_since(self) -> datetime:
        """The last sign of life: its agent's last word, or the last step towards it."""
        return self.last_seen or self.arrived_at or self.launched_at or self.requested_at


class CedanaCluster(Record):
    """A set of instances that serve one multi-node job."""

    id: int = Field(default=0, alias="ID")
    created_at: Time | None = Field(default=None, alias="CreatedAt")
    updated_at: Time | None = Field(default=None, alias="UpdatedAt")
    deleted_at: Time | None = Field(default=None, alias="DeletedAt")
    cluster_id: str = ""
    workers: tuple[Instance, ...] = ()


class SerializedInstance(Value):
    """A reference to an instance, as a job keeps it."""

    instance_id: str
