"""What a cloud's adapter is given by the deployment."""

from collections.abc import Callable
from dataclasses import dataclass

from spotferry.ports.cloud import Clock
from spotferry.types.instance import Attempt

DEPLOYMENT_TAG = "spotferry:deployment"
"""The tag (label) whose value is the deployment: every machine carries it, and only such a machine is ours."""


@dataclass(frozen=True, slots=True)
class ProviderContext:
    """The deployment, as an adapter sees it.

    Attributes:
        deployment: its name, the value of `DEPLOYMENT_TAG` on its machines.
        user_data: the user data of an attempt's machine; the same text for the same attempt, whenever it is asked.
        clock: tells the time.
    """

    deployment: str
    user_data: Callable[[Attempt], str]
    clock: Clock
