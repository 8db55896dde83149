"""How calls of a cloud are repeated: time, chance, the pause before the next try, and the deadline over all of them.

The SDKs' own repeats are switched off: they end by a count, not in time, and each knows only its own errors.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeVar

from spotferry.types.errors import ProviderError, ProviderUnavailable

Answer = TypeVar("Answer")

TOTAL_SECONDS = 19.0
"""How long the calls that belong together may take in all, however often they are repeated."""
_FIRST_SECONDS = 0.5
LONGEST_SECONDS = 4.0
"""The longest pause of calls that have to end together within a function's patience."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Where time, waiting and chance come from."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    # The system's source: copies of one snapshot must not pause in step.
    random: Callable[[], float] = random.SystemRandom().random

    def pause(self, tries: int, longest: float = LONGEST_SECONDS) -> float:
        """Seconds to wait after so many tries: doubling up to the longest, with jitter of half."""
        return min(_FIRST_SECONDS * 2.0 ** (tries - 1), longest) * (0.5 + self.random() / 2)


class AskAgain(Exception):
    """A try had no verdict; the same request may have one.

    Attributes:
        error: to be raised if there is no other try.
        least_pause: before the next try, as some clouds ask for.
        once: the request was stale: a fresh one decides, sent at once and a single time.
    """

    def __init__(self, error: ProviderError, least_pause: timedelta = timedelta(0), *, once: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.least_pause = least_pause
        self.once = once


@dataclass(frozen=True, slots=True)
class Deadline:
    """One deadline over calls that belong together; it runs from now.

    Attributes:
        pace: time and chance.
        total_seconds: how long the calls may take in all.
        one_try_seconds: how long one try may take: none is begun that could end after the deadline.
        tries: the most that a call is tried; infinity: as often as there is time.
        longest_pause: in seconds, between two tries, unless the cloud asks for more.
    """

    pace: Pace
    total_seconds: float
    one_try_seconds: float
    tries: float = 5
    longest_pause: float = LONGEST_SECONDS
    started: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "started", self.pace.monotonic())

    def until_answered(self, ask: Callable[[], Answer], what: str, region: str) -> Answer:
        """Do a call, again while there is no verdict and time is left.

        Args:
            ask: one try; raises `AskAgain` where there was no verdict, anything else is one.
            what: the call, as in "no time was left for ...".
            region: named in that error.

        Raises:
            ProviderUnavailable: no try would have ended before the deadline.
            ProviderError: the last try's.
        """
        if not self._fits(0.0):
            raise ProviderUnavailable("DeadlineExceeded", f"no time was left for {what}", region)
        tries = 0
        while True:
            tries += 1
            try:
                return ask()
            except AskAgain as outcome:
                pause = self._pause(outcome, tries)
                if pause is None:
                    raise outcome.error from outcome.__cause__
            self.pace.sleep(pause)

    def wait(self, seconds: float) -> bool:
        """Pause; False, and no pause, where no call would fit before the deadline after it."""
        if not self._fits(seconds):
            return False
        self.pace.sleep(seconds)
        return True

    def _pause(self, outcome: AskAgain, tries: int) -> float | None:
        """How many seconds to wait before the next try; None: it was the last one."""
        most, pause = self.tries, max(self.pace.pause(tries, self.longest_pause), outcome.least_pause.total_seconds())
        if outcome.once:
            most, pause = 2, 0.0
        return pause if tries < most and self._fits(pause) else None

    def _fits(self, pause: float) -> bool:
        """One more try after that pause would end before the deadline, however long it took."""
        return self.pace.monotonic() - self.started + pause + self.one_try_seconds <= self.total_seconds


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """How long an answer asks to be left alone; None where it names no number of seconds."""
    seconds = (headers.get("Retry-After") or "").strip()
    return timedelta(seconds=int(seconds)) if seconds.isdecimal() else None
