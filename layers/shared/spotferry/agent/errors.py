"""What can go wrong for the agent, named for what it does next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Union

Data = Dict[str, Union[str, int, float, bool, None]]
"""The data of a report."""

_SHOWN_PATH = 200
"""The end of a path tells more than its beginning."""


class AgentError(Exception):
    """The root of the agent's errors."""


class BrokerGone(AgentError):
    """The broker wants nothing more of this attempt (401, 410): stop the task and shut down."""


class BrokerRefused(AgentError):
    """The call is wrong (another 4xx): repeating it will not help."""


class BrokerUnreachable(AgentError):
    """No answer, or one that says "later": repeat within the lease."""


class TransferFailed(AgentError):
    """Bytes could not be fetched or sent, after the agent's own retries."""


class AddressExpired(AgentError):
    """The address is no longer good (4xx): ask the broker for a new one."""


class ArchiveInvalid(AgentError):
    """An archive is damaged, or holds what must not be unpacked."""


class Unreadable(AgentError):
    """Something in the work directory cannot be read: what was to hold it is not made, for it is whole or not at all.

    Args:
        path: of it, below the work directory.
        error: what the system says.
        instead: what else than making it readable would help.
    """

    def __init__(self, path: str, error: OSError, instead: str = "") -> None:
        shown = repr(path if len(path) <= _SHOWN_PATH else f"...{path[-_SHOWN_PATH:]}")
        why = error.strerror or type(error).__name__
        super().__init__(f"{shown} cannot be read ({why}): make it readable or delete it{instead}")
        self.path = path
        self.error = error


class CriuFailed(AgentError):
    """CRIU could not dump or restore a process tree: another engine may."""


class CommandFailed(AgentError):
    """The lines for a point of the job's life failed.

    Attributes:
        command: the point.
        exit_code: of the line.
        line: the line; "" when it is not known.
    """

    def __init__(self, command: str, how: str, exit_code: int, line: str) -> None:
        super().__init__(f"{command} {how}")
        self.command = command
        self.exit_code = exit_code
        self.line = line


class StepFailed(AgentError):
    """A step of the job failed and the machine waits for a retry.

    Attributes:
        event: the report's event.
        data: the report's data.
    """

    def __init__(self, event: str, data: Data) -> None:
        super().__init__(f"{event}: {data}")
        self.event = event
        self.data = data


@dataclass(frozen=True)
class Order:
    """An order that ends the attempt.

    Attributes:
        kind: `release`, `stop` or `shut_down`.
        reason: why, as it goes into the last checkpoint and the report.
        urgent: the cloud takes the machine back: the task has seconds, not its whole grace.
        ends_at: when the machine goes, by the clock; None where nobody says.
    """

    kind: str
    reason: str
    urgent: bool = False
    ends_at: Optional[float] = None

    @property
    def rank(self) -> int:
        """A higher one overtakes what is done for a lower one."""
        return RANKS[self.kind]


RANKS = {"release": 1, "stop": 2, "shut_down": 3}


class Ended(AgentError):
    """What is being done is overtaken by an order.

    Attributes:
        order: the order.
    """

    def __init__(self, order: Order) -> None:
        super().__init__(f"{order.kind}: {order.reason}")
        self.order = order


def reason_of(error: BaseException) -> str:
    """The words of an error for people; never empty."""
    return str(error) or type(error).__name__
