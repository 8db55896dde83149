"""What a cloud's adapter is given by the deployment."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from spotferry.ports.cloud import Clock
from spotferry.types.errors import Misconfigured
from spotferry.types.instance import Attempt

DEPLOYMENT_TAG = "spotferry:deployment"
"""The tag (label) whose value is the deployment: every machine carries it, and only such a machine is ours."""


def no_secret(name: str) -> str:
    """The secrets of a deployment that has none."""
    raise Misconfigured(f"there is no secret {name}: this deployment keeps none")


@dataclass(frozen=True, slots=True)
class ProviderContext:
    """The deployment, as an adapter sees it.

    Attributes:
        deployment: its name, the value of `DEPLOYMENT_TAG` on its machines.
        user_data: the user data of an attempt's machine; the same text for the same attempt, whenever it is asked.
        clock: tells the time.
        secret: the deployment's secret of this name for a cloud that has no federation (`paperspace/api-key`); raises
            Misconfigured when there is none, with what to do.
    """

    deployment: str
    user_data: Callable[[Attempt], str]
    clock: Clock
    secret: Callable[[str], str] = no_secret


def no_note(region: str, oddity: str, subject: str) -> None:
    """Note nothing."""


DEAREST_DISK_USD_GIB_MONTH = Decimal("0.16")


def dearest_disk(_provider: str, _region: str) -> Decimal:
    """More than any region of any cloud asks for a GiB a month, so that an unknown disk never looks cheap."""
    return DEAREST_DISK_USD_GIB_MONTH


@dataclass(frozen=True, slots=True)
class PricingContext:
    """The deployment, as a pricing model sees it.

    Credentials and endpoints come from the environment variables of each cloud's own SDK.

    Attributes:
        clock: tells the time; it is what `Offer.read_at` says.
        note: told of each thing in the cloud's answers that no offer could be made of, or that is odd: the region, what
            is odd (one of the words in `providers.pricing`), and what it is odd about (a machine type, a zone). It is
            called from the threads that read, so it must be safe to share between them.
        disk_usd_gib_month: what a GiB of disk costs a month, by provider and region, where the cloud itself does not
            say.
    """

    clock: Clock
    note: Callable[[str, str, str], None] = no_note
    disk_usd_gib_month: Callable[[str, str], Decimal] = dearest_disk
