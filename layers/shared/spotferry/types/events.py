"""What a cloud announces about a machine, and what it means for its job."""

from enum import StrEnum

from pydantic import Field

from spotferry.types.base import Time, Value


class CheckpointReason(StrEnum):
    """Why a checkpoint is made."""

    INSTANCE_TERMINATION = "instance_termination"
    JOB_TERMINATION = "job_termination"
    HEARTBEAT = "heartbeat"


class ProviderEvent(Value):
    """What a cloud said about one machine.

    Attributes:
        instance_id: the id that the cloud allocated.
        fault_code: the cloud's own word for it, as given.
        marked_for_termination: the cloud takes the machine back, or has.
        termination_time: when, in Unix seconds; 0 when the cloud did not say.
    """

    instance_id: str
    fault_code: str
    marked_for_termination: bool = False
    termination_time: int = 0


class MetaState(Value):
    """A notice and the checkpoint it calls for."""

    event: ProviderEvent = Field(alias="provider_event")
    checkpoint_reason: CheckpointReason


class NoticeKind(StrEnum):
    """The kinds of signal that clouds send, whatever their envelope."""

    TAKE_BACK = "take_back"
    REBALANCE = "rebalance"
    STATE_CHANGE = "state_change"
    MAINTENANCE = "maintenance"


class Notice(Value):
    """One signal from a cloud, parsed: plain data that can be stored and compared.

    Attributes:
        kind: what sort of signal.
        provider: the cloud.
        region: where the machine is; "" where the cloud does not tell, and then the machine's name is our own id.
        event: the machine and the cloud's word.
        state: the machine's new state (a name of INSTANCE_STATES) for a state change, else "".
        deadline: when the machine is taken, if the cloud said.
        at: when the cloud sent it.
    """

    kind: NoticeKind
    provider: str
    region: str
    event: ProviderEvent
    state: str = ""
    deadline: Time | None = None
    at: Time | None = None
