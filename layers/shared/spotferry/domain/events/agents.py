"""What can happen to a job on its machine, as the machine's agent tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from spotferry.domain.reported import Reported
from spotferry.types.job import Manifest


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
    """The task ended by itself.

    Attributes:
        outputs: there are outputs to send.
    """

    instance_id: str
    exit_code: int
    outputs: bool = False


@dataclass(frozen=True, slots=True)
class OutputsCommitted:
    """The outputs are in the bucket and their manifest is written.

    Attributes:
        missed: patterns that named nothing.
    """

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
