"""How calls of a cloud are repeated: time, chance, and the pause before the next try."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

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
