"""How calls of a cloud are repeated: time, chance, the pause before the next try, and the deadline over all of them.

The SDKs' own repeats are switched off: they end by a count, not in time, and each knows only its own errors.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Self, TypeVar

from spotferry.domain.asking import LONGEST_CALL
from spotferry.types.errors import ProviderError, ProviderUnavailable

Answer = TypeVar("Answer")

_BESIDE = timedelta(seconds=1)
"""What a launch takes beside its calls: clients may have to be made first, and answers to be read."""
TOTAL_SECONDS = (LONGEST_CALL - _BESIDE).total_seconds()
"""How long the calls that belong together may take in all, however often they are repeated: no longer than whoever
asks for a machine is left alone with it."""
_FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 4.0
"""The longest pause of calls that have to end together within a function's patience."""
_LONGEST_WISH = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Timing:
    """Where time, waiting and chance come from."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    # The system's source: copies of one snapshot must not pause in step.
    random: Callable[[], float] = random.SystemRandom().random

    def pause(self, tries: int, longest: float = LONGEST_PAUSE_SECONDS) -> float:
        """Seconds to wait after so many tries: doubling up to the longest, with jitter of half."""
        return min(_FIRST_PAUSE_SECONDS * 2.0 ** (tries - 1), longest) * (0.5 + self.random() / 2)


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
        timing: time and chance.
        total_seconds: how long the calls may take in all.
        one_try_seconds: how long one try may take: none is begun that could end after the deadline.
        tries: the most that a call is tried; None: as often as there is time.
        longest_pause: in seconds, between two tries, unless the cloud asks for more.
        for_all: it holds for every page and batch as well: `again` gives no other.
    """

    timing: Timing
    total_seconds: float
    one_try_seconds: float
    tries: int | None = 5
    longest_pause: float = LONGEST_PAUSE_SECONDS
    for_all: bool = False
    started: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "started", self.timing.monotonic())

    def again(self) -> "Deadline":
        """Another one, which runs from now; the same where it is one for all."""
        return self if self.for_all else replace(self)

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
            self.timing.sleep(pause)

    def wait(self, seconds: float) -> bool:
        """Pause; False, and no pause, where no call would fit before the deadline after it."""
        if not self._fits(seconds):
            return False
        self.timing.sleep(seconds)
        return True

    def _pause(self, outcome: AskAgain, tries: int) -> float | None:
        """How many seconds to wait before the next try; None: it was the last one."""
        most, pause = self.tries, max(self.timing.pause(tries, self.longest_pause), outcome.least_pause.total_seconds())
        if outcome.once:
            most, pause = 2, 0.0
        is_last = most is not None and tries >= most
        return pause if not is_last and self._fits(pause) else None

    def _fits(self, pause: float) -> bool:
        """One more try after that pause would end before the deadline, however long it took."""
        return self.timing.monotonic() - self.started + pause + self.one_try_seconds <= self.total_seconds


@dataclass(frozen=True, slots=True)
class RegionCalls:
    """Calls about one region; together they end before the deadline."""

    region: str
    deadline: Deadline

    def again(self) -> Self:
        """The same region, with a deadline of its own: for the next page or batch of a long listing."""
        return replace(self, deadline=self.deadline.again())

    def as_one(self) -> Self:
        """The same calls, with one deadline for all that follows, whatever asks for another: they are one launch."""
        return replace(self, deadline=replace(self.deadline, for_all=True))


def retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """How long an answer asks to be left alone, a day at most; None where it names no number of seconds."""
    seconds = (headers.get("Retry-After") or "").strip()
    if not seconds.isdecimal():
        return None
    # A number may have more digits than can be read; nobody waits for so many seconds.
    return min(timedelta(seconds=int(seconds.lstrip("0")[:9] or "0")), _LONGEST_WISH)
