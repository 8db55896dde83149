"""Where the chunks of one part go: addresses that the broker hands out a few at a time, and renews."""

from __future__ import annotations

import threading
from typing import Callable, Dict, List, Tuple

from spotferry.agent.broker import Json
from spotferry.agent.clock import Clock

Ask = Callable[[str, Json], Json]
"""Calls the broker: path, body; the answer."""

_USABLE = 0.5
"""An address is used for this share of its life only: a long chunk has to end before it."""


_BEHIND = 16
"""Chunks are sent a few at a time: the address of one that is so far behind the next is no longer needed."""


class Addresses:
    """The addresses of one part of an upload; safe to use from several threads.

    Args:
        ask: calls the broker.
        whose: what names the part in a call: kind, nonce, name, upload_id.
        answer: the broker's answer for the part: `chunks` or `chunk_bytes`, `first_chunk`, `urls`.
        expires_seconds: how long these work.
        clock: to measure that with.

    Raises:
        KeyError, TypeError, ValueError: the answer is not as the protocol says.
    """

    def __init__(self, ask: Ask, whose: Json, answer: Json, expires_seconds: float, clock: Clock) -> None:
        self._ask = ask
        self._whose = whose
        self._clock = clock
        self._asking = threading.Lock()
        self._urls: Dict[int, str] = {}
        self._stale_at = 0.0
        self._ladder: List[Tuple[int, int]] = [(int(s["count"]), int(s["bytes"])) for s in answer["chunks"]]
        self._keep(answer, expires_seconds)

    def chunk_bytes(self, number: int) -> int:
        """How long a chunk is, unless it is the last.

        Raises:
            ValueError: a part has not so many.
        """
        left = number
        for count, size in self._ladder:
            if left < count:
                return size
            left -= count
        raise ValueError(f"{self._whose['name']} is too large: it takes more than {number} chunks")

    def url(self, number: int) -> str:
        """Where a chunk goes; asks the broker when that is not known, or getting old."""
        with self._asking:
            if self._clock.monotonic() >= self._stale_at:
                self._urls.clear()
            if number not in self._urls:
                self._urls = {known: url for known, url in self._urls.items() if known > number - _BEHIND}
                answer = self._ask("uploads/addresses", {**self._whose, "from_chunk": number})
                self._keep(answer, float(answer["expires_seconds"]))
            return self._urls[number]

    def refused(self, url: str) -> None:
        """An address did not work: none that came with it is used again."""
        with self._asking:
            if url in self._urls.values():
                self._urls.clear()

    def _keep(self, answer: Json, expires_seconds: float) -> None:
        first = int(answer["first_chunk"])
        self._urls.update((first + n, str(url)) for n, url in enumerate(answer["urls"]))
        self._stale_at = self._clock.monotonic() + expires_seconds * _USABLE
