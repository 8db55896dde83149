"""What can happen to a job: the inputs of its state machine, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

from spotferry.domain.asking import Answered, LaunchRepeated
from spotferry.domain.reported import Reported
from spotferry.types.instance import Attempt, EndedBy
from spotferry.types.job import Manifest


@dataclass(frozen=True, slots=True)
class LaunchChosen:
    """Placement chose a candidate: the intent, before the cloud is asked.

    Attributes:
        attempt: the new attempt; its epoch is the job's next.
        why: the choice in words.
    """

    attempt: Attempt
    why: str


@dataclass(frozen=True, slots=True)
class PlacementDeferred:
    """Nothing that fits is free now."""

    reason: str
    retry_at: datetime


@dataclass(frozen=True, slots=True)
class PlacementImpossible:
    """Nothing that is offered can ever fit."""

    reason: str


@dataclass(frozen=True, slots=True)
class MachineCreated(Answered):
    """The cloud answered a launch, or the machine of a launch whose answer was lost was found.

    Attributes:
        launched_at: by the cloud's clock; None when it did not say.
        price_usd_hour: what the cloud asks for it since then; None when that could not be read.
    """

    instance_id: str
    allocated_id: str
    state: str
    zone: str = ""
    ip_address: str = ""
    launched_at: datetime | None = None
    price_usd_hour: Decimal | None = None


@dataclass(frozen=True, slots=True)
class LaunchFailed(Answered):
    """The cloud refused a launch: there is no machine.

    Attributes:
        accepted: the cloud had accepted it, and named the machine that it then failed to make.
    """

    instance_id: str
    code: str
    reason: str
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class AgentArrived:
    """The machine's agent said hello.

    Attributes:
        facts: what it says of the machine.
    """

    instance_id: str
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class SetupFinished(Reported):
    """The agent ran the job's setup."""

    instance_id: str
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class SetupFailed(Reported):
    """A line of the job's setup failed."""

    instance_id: str
    exit_code: int
    line: str = ""


@dataclass(frozen=True, slots=True)
class StartupFailed(Reported):
    """The agent could not get the task going: work directory, every checkpoint, or the start itself."""

    instance_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class TaskStarted(Reported):
    """The task runs.

    Attributes:
        restored_from: number of the checkpoint it went on from; None for a start from nothing.
        why_not: why newer checkpoints were passed over, "" if none was.
    """

    instance_id: str
    restored_from: int | None = None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class CommandEnded(Reported):
    """The agent ran the lines of a point of the job's life (`command`: `post_setup`, `pre_checkpoint`, ...)."""

    instance_id: str
    command: str
    exit_code: int
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class CheckpointCommitted:
    """The bytes of a checkpoint are in the bucket and its manifest is written."""

    instance_id: str
    manifest: Manifest
    manifest_key: str


@dataclass(frozen=True, slots=True)
class CheckpointFailed(Reported):
    """A checkpoint came to nothing; the one before stays in force."""

    instance_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class TaskExited(Reported):
    """The task ended by itself; whether there are `outputs` to send."""

    instance_id: str
    exit_code: int
    outputs: bool = False


@dataclass(frozen=True, slots=True)
class OutputsCommitted:
    """The outputs are in the bucket and their manifest is written; patterns that were `missed` name nothing."""

    instance_id: str
    manifest_key: str
    files: int
    size_bytes: int
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputsFailed(Reported):
    """The agent could not send the outputs."""

    instance_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Released(Reported):
    """The agent stopped the task and gives the job back: its last word."""

    instance_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NoticeReceived:
    """The machine is about to end: the work is to be saved by the deadline.

    Attributes:
        code: the cloud's own word, or the reason in words.
        deadline: when, if it is known.
        by_cloud: the cloud takes it back; an end for a reason of its own, or of ours, is no interruption.
    """

    instance_id: str
    code: str
    deadline: datetime | None = None
    by_cloud: bool = True


@dataclass(frozen=True, slots=True)
class RebalanceAdvised:
    """The cloud forecasts, in its own word, that it may take the machine back; often it does not."""

    instance_id: str
    code: str


@dataclass(frozen=True, slots=True)
class MachineCondemned:
    """The broker, or a person, decides that the machine is to end."""

    instance_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class MachineGone:
    """The cloud confirms that the machine ended, or that there never was one.

    Attributes:
        billed_until: when it stopped billing; None when it did not say.
        ended_by: who ended it, where it told.
    """

    instance_id: str
    reason: str = ""
    billed_until: datetime | None = None
    ended_by: EndedBy = ""


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """A person wants a checkpoint of the running task."""

    by: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The job has used up what its file allows; `limit` says which limit and how much was used, in words."""

    limit: str


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """A person wants the job to end."""

    by: str


@dataclass(frozen=True, slots=True)
class RetryRequested:
    """A person wants a held machine to try again."""

    by: str


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """Nobody asked for a retry in time."""


Event = (
    LaunchChosen
    | PlacementDeferred
    | PlacementImpossible
    | LaunchRepeated
    | MachineCreated
    | LaunchFailed
    | AgentArrived
    | SetupFinished
    | SetupFailed
    | StartupFailed
    | TaskStarted
    | CommandEnded
    | CheckpointCommitted
    | CheckpointFailed
    | TaskExited
    | OutputsCommitted
    | OutputsFailed
    | Released
    | NoticeReceived
    | RebalanceAdvised
    | MachineCondemned
    | MachineGone
    | CheckpointRequested
    | LimitReached
    | CancelRequested
    | RetryRequested
    | HoldExpired
)
