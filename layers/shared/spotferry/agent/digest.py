"""SHA-256 of a stream on a thread of its own, since hashing lets go of the interpreter's lock."""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Deque, List

from spotferry.agent.codec import Bytes

_LOT_BYTES = 512 * 1024
"""Pieces are handed over together when there are so many: handing one over takes as long as hashing 32 KiB."""

_BEHIND = 8
"""Lots that wait to be hashed, at most."""


class Digest:
    """Takes the pieces of a stream in order; used by one thread. To be closed in the end."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._pool = ThreadPoolExecutor(1, "digest")
        self._waiting: Deque[Future[None]] = deque()
        self._lot: List[Bytes] = []
        self._lot_bytes = 0

    def update(self, piece: Bytes) -> None:
        """The next piece, which nobody may change any more."""
        self._lot.append(piece)
        self._lot_bytes += len(piece)
        if self._lot_bytes >= _LOT_BYTES:
            self._hand_over()

    def hexdigest(self) -> str:
        """Of all pieces; there is no further one. Asking twice is fine.

        Raises:
            Exception: a piece could not be hashed: there is no digest, however often it is asked for.
        """
        if self._lot:
            self._hand_over()
        self._wait_until_waiting(0)
        self._pool.shutdown()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Let go of it: what waits is dropped. Twice is fine, and so is after the result."""
        self._lot = []
        self._pool.shutdown(cancel_futures=True)

    def _hand_over(self) -> None:
        self._waiting.append(self._pool.submit(self._hash, self._lot))
        self._lot, self._lot_bytes = [], 0
        self._wait_until_waiting(_BEHIND)

    def _wait_until_waiting(self, most: int) -> None:
        while len(self._waiting) > most:
            self._waiting[0].result()  # one that failed stays, and fails whoever asks next
            self._waiting.popleft()

    def _hash(self, lot: List[Bytes]) -> None:
        for piece in lot:
            self._digest.update(piece)
