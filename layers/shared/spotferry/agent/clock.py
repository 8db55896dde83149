"""Time as the agent measures it, and how it waits between tries."""

from __future__ import annotations

import random
import time
from typing import Callable, Iterator, Tuple, Type, TypeVar

from spotferry.agent.errors import AgentError

T = TypeVar("T")

Check = Callable[[], None]
"""Called often by whatever takes long; raises `Ended` when an order overtakes it."""


_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The machine's clock: counts on while the machine is suspended, where the system can."""

    def monotonic(self) -> float:
        """Seconds since some start; never goes back."""
        return time.clock_gettime(_CLOCK)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


def pauses(first: float = 0.5, most: float = 15.0) -> Iterator[float]:
    """Pauses in seconds before each next try: doubling, with jitter of half, never above `most`."""
    limit = first
    while True:
        yield limit * random.uniform(0.5, 1.0)  # noqa: S311  (jitter needs no secrecy)
        limit = min(limit * 2, most)


def patiently(
    call: Callable[[], T],
    *,
    again_on: Tuple[Type[AgentError], ...],
    clock: Clock,
    check: Check,
    tries: int = 0,
) -> T:
    """What `call` returns, tried again after growing pauses while it raises one of `again_on`.

    Args:
        call: may be called many times.
        again_on: errors that another try may mend.
        clock: to wait on.
        check: called every quarter of a second while waiting; whatever it raises ends the tries.
        tries: at most so many; 0 means until `check` ends it.
    """
    for number, pause in enumerate(pauses(), start=1):
        check()
        try:
            return call()
        except again_on:
            if number == tries:
                raise
        wake_at = clock.monotonic() + pause
        while (left := wake_at - clock.monotonic()) > 0:
            check()
            clock.sleep(min(left, 0.25))
    raise AssertionError("pauses() never ends")
