"""What the levers of the market take over HTTP: one model each, unknown keys are refused."""

from __future__ import annotations

from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field

from local.ec2_call import PROVIDER
from local.market_model import PoolPattern, Purchase


class Lever(BaseModel):
    """A lever's body."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OneMachine(Lever):
    """A machine by its id."""

    allocated_id: str


class Interrupt(OneMachine):
    """Take a spot machine back; without `notice_seconds` at the cloud's own notice over the speed-up."""

    notice_seconds: float | None = Field(default=None, ge=0)
    false_notice: bool = False


class Kill(OneMachine):
    """End a machine without a notice, with this reason's code when one is given."""

    code: str | None = None
    message: str | None = None


class Pools(Lever):
    """Pools by shell patterns."""

    provider: str = "*"
    region: str = "*"
    zone: str = "*"
    instance_type: str = "*"
    purchase: str = "*"

    def pattern(self) -> PoolPattern:
        """The pattern of the market."""
        return PoolPattern(self.provider, self.region, self.zone, self.instance_type, self.purchase)


class Capacity(Pools):
    """How many machines the pools have in all."""

    machines: int = Field(ge=0)


class InterruptionRate(Pools):
    """How often, per hour of the cloud's time, a machine launched from now on in the pools is taken back."""

    per_hour: float = Field(ge=0)


class Price(Lever):
    """Prices of a type in a zone (name or id). `spot: null`: not sold as spot; what is left out follows the rule.

    With `vcpus` and `memory_gib` also types can be priced that the cloud's data lacks.
    """

    provider: str = PROVIDER
    region: str
    zone: str
    type: str
    spot: Decimal | None = Field(default=None, gt=0)
    on_demand: Decimal | None = Field(default=None, gt=0)
    fixed: bool = False
    vcpus: int | None = Field(default=None, ge=1)
    memory_gib: Decimal | None = Field(default=None, gt=0)
    gpus: int = Field(default=0, ge=0)


class Quota(Lever):
    """How many vCPUs of a family may run at once in a region."""

    provider: str = PROVIDER
    region: str
    family: str = "Standard"
    purchase: Purchase = Purchase.SPOT
    vcpus: int = Field(ge=0)


class Throttle(Lever):
    """Throttle the next calls of an operation; both names may be shell patterns."""

    operation: str = "*"
    region: str = "*"
    times: int = Field(default=1, ge=1)


class Fail(Throttle):
    """Answer the next calls of an operation with an error."""

    code: str
    message: str = "An error that was ordered."
    status: int = Field(default=400, ge=400, le=599)


class LoseAnswers(Lever):
    """Do what the next calls of an operation ask, and drop the connection instead of answering."""

    operation: str = "RunInstances"
    times: int = Field(default=1, ge=1)


class Visibility(Lever):
    """Hide machines launched from now on for so long."""

    seconds: float = Field(ge=0)


class Credentials(Lever):
    """An access key; `*` stands for all."""

    access_key: str = "*"


class Region(Lever):
    """A region, and the code its calls are refused with."""

    region: str
    code: str = "UnauthorizedOperation"


class FailBoots(Lever):
    """Let the next machines end while they are pending."""

    times: int = Field(default=1, ge=1)
    code: str = "Server.InsufficientInstanceCapacity"
    message: str | None = None


class Nothing(Lever):
    """A lever without a choice."""
