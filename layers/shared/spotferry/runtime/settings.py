"""A function's environment, typed and checked when it starts cold."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spotferry.domain.pace import Pace
from spotferry.domain.view import Policy
from spotferry.types.errors import Misconfigured
from spotferry.types.faults import problems_of

_LEASES_OF_SILENCE = 1.25
"""An agent that has been silent for longer than its lease has ended its machine; a little longer, since clocks
differ."""

_MARGIN = 10.0
"""Seconds: a cancel is heard in the next heartbeat, the task has its grace, and its last words take a moment."""


class Settings(BaseModel):
    """What the template hands to a function; a function that needs a name it was not given says so when it needs it.

    Attributes:
        deployment: name of the deployment.
        region: where the broker itself lives.
        expire_after_days: when archives leave the bucket; 0: not said.
        refresh_function: the function that refreshes prices, for those that may start it.
        price_regions: whose prices are read: of the regions that are open, or of all regions of the clouds that are.
        auth: who may use the user API, "NONE" for anybody.
        gcp_relay_account: the service account that may bring Google Cloud's events; "": nobody.
        azure_events_code_sha256: digest of the code that Event Grid's address carries; "": there is none.
        the *_seconds: the deployment's patience, see `Policy` and `Pace`.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    deployment: str
    region: str = Field(alias="aws_region")
    jobs_table: str
    instances_table: str
    checkpoints_table: str
    timeline_table: str
    bans_table: str = ""
    bucket: str = ""
    placement_queue_url: str = ""
    destroy_queue_url: str = ""
    token_secret_arn: str = ""
    broker_url: str = ""
    parameter_prefix: str
    refresh_function: str = ""
    price_regions: Literal["open", "all"] = "open"
    auth: str = ""
    gcp_relay_account: str = ""
    azure_events_code_sha256: str = ""
    heartbeat_seconds: float = Field(default=60, gt=0)
    attention_seconds: float = Field(default=2, gt=0)
    lease_seconds: float = Field(default=900, gt=0)
    boot_seconds: float = Field(default=600, gt=0)
    hold_seconds: float = Field(default=600, gt=0)
    cancel_seconds: float = Field(default=120, gt=0)
    grace_seconds: float = Field(default=30, gt=0)
    expire_after_days: int = Field(default=0, ge=0)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the function's environment.

        Raises:
            Misconfigured: a variable is missing or not what it should be; all such are named.
        """
        given = {name.lower(): value for name, value in environment.items() if value}
        given.setdefault("aws_region", given.get("aws_default_region", ""))
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            names = "; ".join(f"{p.field.upper()}: {p.message}" for p in problems_of(error))
            raise Misconfigured(f"the function's environment is not as the template sets it: {names}") from error

    def need(self, name: str) -> str:
        """A name that only some functions are given.

        Raises:
            Misconfigured: this one was not.
        """
        value = str(getattr(self, name))
        if not value:
            raise Misconfigured(
                f"this function needs {name.upper()} in its environment, which the template does not set"
            )
        return value

    @property
    def kept_for(self) -> timedelta | None:
        """After how long archives and work directories leave the bucket; None: never, or not known here."""
        return timedelta(days=self.expire_after_days) if self.expire_after_days else None

    @property
    def policy(self) -> Policy:
        """The deployment's patience with machines and agents."""
        return Policy(
            boot=timedelta(seconds=self.boot_seconds),
            silence=timedelta(seconds=self.lease_seconds * _LEASES_OF_SILENCE),
            hold=timedelta(seconds=self.hold_seconds),
            cancel=timedelta(seconds=max(self.cancel_seconds, self.heartbeat_seconds + self.grace_seconds + _MARGIN)),
        )

    @property
    def pace(self) -> Pace:
        """How often agents call."""
        return Pace(
            quiet=timedelta(seconds=self.heartbeat_seconds),
            attention=timedelta(seconds=self.attention_seconds),
            lease=timedelta(seconds=self.lease_seconds),
            grace=timedelta(seconds=self.grace_seconds),
        )
