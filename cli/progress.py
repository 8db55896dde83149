"""A sign of life for what takes more than two seconds."""

import sys
import time
from collections.abc import Callable

from cli.output import say, size

QUIET_SECONDS = 2.0
SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Counts bytes and says on stderr how far it is: nothing in the first two seconds, then a line now and then.

    Args:
        doing: what is going on ("uploading").
        total_bytes: 0 when unknown.
        clock: a monotonic clock.
    """

    def __init__(self, doing: str, total_bytes: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing = doing
        self._total = total_bytes
        self._clock = clock
        self._done = 0
        self._next = clock() + QUIET_SECONDS

    def add(self, count: int) -> None:
        """So many bytes more are done."""
        self._done += count
        now = self._clock()
        if now < self._next:
            return
        self._next = now + (1.0 if sys.stderr.isatty() else SECONDS_BETWEEN_LINES)
        share = f" of {size(self._total)} ({100 * self._done // self._total} %)" if self._total else ""
        say(f"{self._doing}: {size(self._done)}{share}")
