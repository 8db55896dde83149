"""What the spot market speaks of: pools, launch requests, machines, notices, refusals. Neutral between the clouds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase


class Purchase(StrEnum):
    """How a machine is bought."""

    SPOT = "spot"
    ON_DEMAND = "on_demand"


class MachineState(StrEnum):
    """Where a machine is in its life; the values are the names EC2 uses."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"


# How EC2 bills: by the second, a minute at least, and nothing for a spot machine that it takes back in its first hour.
MINIMUM_BILLED = timedelta(seconds=60)
FREE_IF_TAKEN_BACK_WITHIN = timedelta(hours=1)
_SECOND = timedelta(seconds=1)

LIVE = frozenset({MachineState.PENDING, MachineState.RUNNING})
_STOPS = frozenset({MachineState.STOPPING, MachineState.STOPPED})


@dataclass(frozen=True, slots=True)
class PoolKey:
    """Machines of one type in one zone, sold one way: what has a price and a capacity."""

    provider: str
    region: str
    zone: str
    instance_type: str
    purchase: Purchase


@dataclass(frozen=True, slots=True)
class PoolPattern:
    """Shell-style patterns that together choose pools; the default chooses all."""

    provider: str = "*"
    region: str = "*"
    zone: str = "*"
    instance_type: str = "*"
    purchase: str = "*"

    def matches(self, key: PoolKey) -> bool:
        """Tell whether every part of the key fits its pattern."""
        return (
            fnmatchcase(key.provider, self.provider)
            and fnmatchcase(key.region, self.region)
            and fnmatchcase(key.zone, self.zone)
            and fnmatchcase(key.instance_type, self.instance_type)
            and fnmatchcase(key.purchase, self.purchase)
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of an instance type, and the family its quota is counted in."""

    vcpus: int
    memory_mib: int
    gpus: int
    quota_family: str
    arch: str = "x86_64"


@dataclass(frozen=True, slots=True)
class StateReason:
    """Why a machine is in its state, in the cloud's own code and words."""

    code: str
    message: str


USER_SHUTDOWN = StateReason("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown")
INSTANCE_SHUTDOWN = StateReason(
    "Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
)
SPOT_TERMINATION = StateReason(
    "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination"
)
INTERNAL_ERROR = StateReason("Server.InternalError", "Server.InternalError: Internal error on launch")


class InterruptionCause(StrEnum):
    """Why the cloud took a spot machine back."""

    NO_CAPACITY = "no-capacity"
    BY_PRICE = "by-price"


@dataclass(frozen=True, slots=True)
class Notice:
    """An announced interruption: the action, when it was announced, and when it is due.

    `accept` is for the machine itself: it is ready, and what was announced may happen at once.
    """

    action: str
    noticed_at: datetime
    due_at: datetime
    cause: InterruptionCause
    false_notice: bool = False
    accept: Callable[[], None] = field(default=lambda: None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One machine asked for. `fingerprint` covers everything that must not change under the same client token.

    `allocated_id` is set where the caller names machines; the market makes up an id otherwise. A machine that stops
    when it shuts itself down goes on costing where it `bills_when_stopped`.
    """

    pool: PoolKey
    shape: Shape
    fingerprint: str
    client_token: str | None = None
    max_price_usd_hour: Decimal | None = None
    stop_on_shutdown: bool = False
    bills_when_stopped: bool = False
    user_data: bytes = b""
    tags: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    allocated_id: str | None = None


@dataclass(slots=True)
class Machine:
    """One machine of the market; only the market changes it."""

    allocated_id: str
    serial: int
    request: LaunchRequest
    price_usd_hour: Decimal
    launched_at: datetime
    visible_at: datetime
    state: MachineState = MachineState.PENDING
    reason: StateReason | None = None
    state_since: datetime | None = None
    running_at: datetime | None = None
    billing_ended_at: datetime | None = None
    ended_at: datetime | None = None
    forgotten: bool = False
    notice: Notice | None = None
    noticed_at: datetime | None = None
    rebalance_at: datetime | None = None
    reclaimed_for: InterruptionCause | None = None

    @property
    def pool(self) -> PoolKey:
        """The pool the machine came from."""
        return self.request.pool

    @property
    def live(self) -> bool:
        """Whether it runs, or is about to."""
        return self.state in LIVE

    @property
    def held(self) -> bool:
        """Whether it counts against capacity and quota, and costs."""
        return self.live or (self.request.bills_when_stopped and self.state in _STOPS)

    def cost_usd(self, now: datetime) -> Decimal:
        """What it has cost so far, its disk aside: its price at launch, by the second from running to ending.

        Begun seconds count, and a minute at least; a spot machine taken back within its first hour is free.
        """
        if self.running_at is None:
            return Decimal(0)
        elapsed = (self.billing_ended_at or now) - self.running_at
        if self.taken_back and elapsed < FREE_IF_TAKEN_BACK_WITHIN:
            return Decimal(0)
        billed = max(-(-elapsed // _SECOND) * _SECOND, MINIMUM_BILLED)
        return self.price_usd_hour * Decimal(billed // _SECOND) / 3600

    @property
    def taken_back(self) -> bool:
        """Whether the cloud ended it to have its capacity back."""
        return self.reason is not None and self.reason.code == SPOT_TERMINATION.code


NOTICES: Mapping[str, timedelta] = {
    "aws": timedelta(seconds=120),
    "gcp": timedelta(seconds=30),
    "azure": timedelta(seconds=30),
}
"""How long before the end each cloud announces that it takes a spot machine back; Paperspace sells none."""


@dataclass(frozen=True, slots=True)
class Timings:
    """How long the cloud's own delays last here; `at_speed` divides them by the speed-up."""

    boot: timedelta = timedelta(seconds=0.5)
    shutdown: timedelta = timedelta(seconds=0.3)
    notices: Mapping[str, timedelta] = field(default_factory=lambda: NOTICES)
    terminated_visible: timedelta = timedelta(hours=1)
    price_step: timedelta = timedelta(hours=1)
    hour: timedelta = timedelta(hours=1)

    def at_speed(self, speed_up: float) -> Timings:
        """The same cloud on a faster clock; boot and shutdown are already as short as a laptop's."""
        return Timings(
            boot=self.boot,
            shutdown=self.shutdown,
            notices={provider: notice / speed_up for provider, notice in self.notices.items()},
            terminated_visible=self.terminated_visible / speed_up,
            price_step=self.price_step / speed_up,
            hour=self.hour / speed_up,
        )


class EventKind(StrEnum):
    """What the market tells its listeners."""

    STATE = "state"
    INTERRUPTION = "interruption"
    REBALANCE = "rebalance"


@dataclass(frozen=True, slots=True)
class MarketEvent:
    """One fact about one machine; `value` is the new state or the announced action."""

    kind: EventKind
    allocated_id: str
    provider: str
    region: str
    value: str
    at: datetime


class MarketError(Exception):
    """The market refused; the subclass says why, each face puts it in its cloud's words."""


class NoCapacityError(MarketError):
    """The pool has no machine left. `elsewhere` names zones of the region that have some."""

    def __init__(self, key: PoolKey, elsewhere: tuple[str, ...]) -> None:
        super().__init__(f"no capacity left for {key.instance_type} ({key.purchase}) in {key.zone}")
        self.key = key
        self.elsewhere = elsewhere


class QuotaExceededError(MarketError):
    """The account's vCPU quota for the family, region and purchase would be exceeded."""

    def __init__(self, key: PoolKey, family: str, limit_vcpus: int) -> None:
        super().__init__(f"{key.purchase} quota of {limit_vcpus} vCPUs for {family} in {key.region} would be exceeded")
        self.key = key
        self.family = family
        self.limit_vcpus = limit_vcpus


class PriceTooLowError(MarketError):
    """The most the caller pays is below the pool's price."""

    def __init__(self, offered: Decimal, price: Decimal) -> None:
        super().__init__(f"the maximum price of {offered} USD per hour is below the price of {price} USD per hour")
        self.offered = offered
        self.price = price


class TokenMismatchError(MarketError):
    """The client token was used before with another request."""

    def __init__(self, token: str) -> None:
        super().__init__(f"client token {token} belongs to another request")
        self.token = token


class UnknownMachineError(MarketError):
    """No machine has this id, or it is not visible yet or any more."""

    def __init__(self, allocated_ids: tuple[str, ...]) -> None:
        super().__init__(f"no machine {', '.join(allocated_ids)} is visible")
        self.allocated_ids = allocated_ids


class NotPossibleError(MarketError):
    """A lever was pulled that makes no sense for the machine as it is."""
