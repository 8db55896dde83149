"""Ends the job and the machine when the lease is over, whatever the rest of the agent is doing."""

from __future__ import annotations

import os
import signal
from typing import Callable

from spotferry.agent.clock import Clock
from spotferry.agent.console import say
from spotferry.agent.lease import Lease
from spotferry.agent.processes import Brood

LEASE_OVER = 75
KILLS = 100
_LOOK_SECONDS = 1.0
_REAP_SECONDS = 30.0


class Guard:
    """Watches the lease from a thread of its own; reaps orphans on the way.

    Args:
        lease: watched.
        brood: killed.
        shut_down: asks the machine to end.
        clock: to wait on.
        leave: ends the agent with a status.
    """

    def __init__(
        self,
        lease: Lease,
        brood: Brood,
        shut_down: Callable[[], None],
        clock: Clock,
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        self._lease = lease
        self._brood = brood
        self._shut_down = shut_down
        self._clock = clock
        self._leave = leave

    def run(self) -> None:
        """Return only when the lease is over and everything is ended."""
        reap_at = self._clock.monotonic() + _REAP_SECONDS
        while (left := self._lease.left()) > 0:
            self._clock.sleep(max(0.01, min(left, _LOOK_SECONDS)))
            if self._clock.monotonic() >= reap_at:
                self._brood.living()
                reap_at = self._clock.monotonic() + _REAP_SECONDS
        say("the lease is over: the broker has not answered; the task is killed and the machine shut down")
        self._kill()
        self._shut_down()
        self._leave(LEASE_OVER)

    def _kill(self) -> None:
        for _ in range(KILLS):
            self._brood.signal(signal.SIGKILL)
            if not self._brood.living():
                return
            self._clock.sleep(0.05)
