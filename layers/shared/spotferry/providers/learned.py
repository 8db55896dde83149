"""What an adapter learned of images, kept while it is fresh. No SDK."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from spotferry.ports.cloud import Clock

Key = TypeVar("Key")
Value = TypeVar("Value")

FRESH_FOR = timedelta(hours=1)
"""How long the newest image is taken to be the newest, and an image to be there still."""


class Learned(Generic[Key, Value]):
    """What was looked up, by what was asked for; looked up again when it is older than `FRESH_FOR`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[Key, tuple[datetime, Value]] = {}

    def get(self, key: Key, look_up: Callable[[], Value]) -> Value:
        """The value; an error of the look-up is passed on and not kept."""
        known = self._known.get(key)
        if known is None or self._clock() - known[0] >= FRESH_FOR:
            known = (self._clock(), look_up())
            self._known[key] = known
        return known[1]
