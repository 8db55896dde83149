"""When the next checkpoint is due that nobody ordered."""

from __future__ import annotations

from typing import Callable, Optional, Tuple, TypeVar

from spotferry.agent.clock import Clock
from spotferry.agent.orders import Orders

T = TypeVar("T")

HEARTBEAT = "heartbeat"
"""The reason of a checkpoint that is made from time to time."""


class Cadence:
    """Counts from the end of the last checkpoint, or the start of the task, in the broker's latest interval.

    Args:
        orders: where the interval is, and what may come before the next checkpoint is due.
        clock: to measure with.
    """

    def __init__(self, orders: Orders, clock: Clock) -> None:
        self._orders = orders
        self._clock = clock
        self._began_at = clock.monotonic()

    def begin(self) -> None:
        """Count from now on."""
        self._began_at = self._clock.monotonic()

    def is_due(self) -> bool:
        """Whether the interval is over."""
        left = self._left()
        return left is not None and left <= 0

    def wait(self, ready: Callable[[], Optional[T]]) -> T:
        """What `ready` returns as soon as that is not None; it is asked after everything that happens, and when a
        checkpoint is due.

        Raises:
            Ended: an order came first.
        """
        while True:
            interval = self._orders.checkpoint_seconds
            found = self._orders.wait(lambda: self._look(ready, interval), timeout=self._left())  # noqa: B023  (called here)
            if found is not None and found[0] is not None:
                return found[0]

    def _look(self, ready: Callable[[], Optional[T]], interval: Optional[float]) -> Optional[Tuple[Optional[T]]]:
        """What is ready; a reason to wait anew, for another time, where the interval changed; None for neither."""
        answer = ready()
        return (answer,) if answer is not None or self._orders.checkpoint_seconds != interval else None

    def _left(self) -> Optional[float]:
        """Seconds until the next is due; None where none ever is."""
        seconds = self._orders.checkpoint_seconds
        return None if seconds is None else self._began_at + seconds - self._clock.monotonic()
