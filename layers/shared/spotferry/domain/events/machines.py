"""What can happen to a job from placement and the clouds: its machines are chosen, made, taken back, gone."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from spotferry.types.instance import Attempt, EndedBy


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
class LaunchRepeated:
    """The cloud is about to be asked again for the machine of an attempt, since its answer is not known."""

    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a cloud said of a launch.

    Attributes:
        asked_again_at: the attempt's, as it was when the cloud was asked: of a call that came later this says nothing.
    """

    asked_again_at: datetime | None


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
