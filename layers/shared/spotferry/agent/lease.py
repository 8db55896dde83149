"""How long the machine may go on without hearing from the broker."""

from __future__ import annotations

import threading

from spotferry.agent.clock import Clock

FIRST_LEASE_SECONDS = 900.0
"""The lease that a machine is born with, until the broker grants one."""


class Lease:
    """The time until which the task may run; begins at construction. Safe to use from several threads."""

    def __init__(self, clock: Clock, seconds: float = FIRST_LEASE_SECONDS) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._granted_at = clock.monotonic()
        self._ends_at = self._granted_at + seconds

    def renew(self, sent_at: float, seconds: float) -> None:
        """The broker answered a call that was sent at `sent_at`; the answer to the newest call counts."""
        with self._lock:
            if sent_at >= self._granted_at:
                self._granted_at, self._ends_at = sent_at, sent_at + seconds

    def left(self) -> float:
        """Seconds left; 0 or less when it is over."""
        with self._lock:
            return self._ends_at - self._clock.monotonic()
