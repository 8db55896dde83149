"""How often agents call, and how long they may go on alone."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Pace:
    """How often agents call and how long they may go on alone.

    Attributes:
        quiet: between heartbeats while nothing is going on.
        attention: between heartbeats while something is, or somebody follows the log.
        lease: how long an agent goes on without an answer before it ends its machine.
        grace: how long a task has between SIGTERM and SIGKILL.
        address_expiry: how long an address that is handed out works.
    """

    quiet: timedelta = timedelta(seconds=60)
    attention: timedelta = timedelta(seconds=2)
    lease: timedelta = timedelta(minutes=15)
    grace: timedelta = timedelta(seconds=30)
    address_expiry: timedelta = timedelta(hours=1)
