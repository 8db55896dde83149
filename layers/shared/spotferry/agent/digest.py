"""SHA-256 of a stream on a thread of its own, since hashing lets go of the interpreter's lock."""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Deque

from spotferry.agent.members import Bytes

_BEHIND = 8
"""Pieces that wait to be hashed, at most."""


class Digest:
    """Takes the pieces of a stream in order; used by one thread. To be closed, or asked for its result."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._pool = ThreadPoolExecutor(1, "digest")
        self._waiting: Deque[Future[None]] = deque()

    def update(self, piece: Bytes) -> None:
        """The next piece, which nobody may change any more."""
        self._waiting.append(self._pool.submit(self._digest.update, piece))
        while len(self._waiting) > _BEHIND:
            self._waiting.popleft().result()

    def hexdigest(self) -> str:
        """Of all pieces; there is no further one."""
        self.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Wait for what was handed in."""
        self._pool.shutdown()
