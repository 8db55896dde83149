"""An object of the bucket as it comes: read once, fetched on where the connection broke, verified at its end."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import queue
import threading
import urllib.request
from typing import Optional, Union

from spotferry.agent.clock import Check, Clock, patiently
from spotferry.agent.codec import Bytes
from spotferry.agent.errors import TransferFailed
from spotferry.agent.plan import Part
from spotferry.agent.transfer import TRIES, open_url, read_block

_PARTIAL = 206
_BLOCKS_AHEAD = 8
_LOOK_SECONDS = 0.2
_LEAVE_SECONDS = 1.0


class Incoming:
    """Reads one object, some blocks ahead of whoever uses it; a context manager.

    Args:
        part: the object.
        clock: to wait on.
        check: called for every block, from another thread; may raise to give up.
    """

    def __init__(self, part: Part, clock: Clock, check: Check) -> None:
        self._part = part
        self._clock = clock
        self._check = check
        self._digest = hashlib.sha256()
        self._count = 0
        self._block = memoryview(b"")
        self._answer: Optional[http.client.HTTPResponse] = None
        self._ahead: queue.Queue[Union[bytes, BaseException]] = queue.Queue(_BLOCKS_AHEAD)
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read_ahead, name="incoming", daemon=True)
        self._ended = False

    def __enter__(self) -> Incoming:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._reader.join(_LEAVE_SECONDS)  # one that waits for the network ends by itself

    def read(self, size: int = -1) -> Bytes:
        """At most so many bytes, as many as have come; empty at the end. What was read is not verified yet.

        Raises:
            AddressExpired: the address is no longer good.
            TransferFailed: no byte came in TRIES tries, or more came than were promised.
        """
        if not self._block:
            self._block = memoryview(self._taken())
        given = self._block if size < 0 else self._block[:size]
        self._block = self._block[len(given) :]
        return given

    def verify(self) -> None:
        """Read what nobody has read yet; only then is it known that all was as promised.

        Raises:
            AddressExpired, TransferFailed: as `read`, and where it was not.
        """
        while self._taken():
            pass
        if self._count != self._part.size_bytes or self._digest.hexdigest() != self._part.sha256:
            promised = f"the {self._part.size_bytes} bytes with the digest promised"
            raise TransferFailed(f"{self._part.name}: {self._count} bytes came; they are not {promised}")

    def _taken(self) -> bytes:
        """The next block that the reader has; empty at the end."""
        if self._ended:
            return b""
        block = self._ahead.get()
        if isinstance(block, BaseException):
            self._ended = True
            raise block
        self._ended = not block
        return block

    def _read_ahead(self) -> None:
        """The reader: blocks, then an empty one, or what came in the way."""
        try:
            while not self._over.is_set():
                block = self._next()
                self._hand_over(block)
                if not block:
                    return
        except BaseException as error:  # noqa: BLE001  (whatever it is, it is raised where the object is used)
            self._hand_over(error)
        finally:
            self._disconnect()

    def _hand_over(self, block: Union[bytes, BaseException]) -> None:
        while not self._over.is_set():
            try:
                self._ahead.put(block, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def _next(self) -> bytes:
        """The next block, counted and digested; empty at the end."""
        if self._count == self._part.size_bytes:
            return b""
        self._check()
        block = patiently(self._fetch, again_on=(TransferFailed,), clock=self._clock, check=self._check, tries=TRIES)
        if self._count + len(block) > self._part.size_bytes:
            raise TransferFailed(f"{self._part.name}: more came than the {self._part.size_bytes} bytes promised")
        self._digest.update(block)
        self._count += len(block)
        return block

    def _fetch(self) -> bytes:
        """One try; the connection is made anew where it broke."""
        try:
            block = read_block(self._answer or self._connect())
        except BaseException:
            self._disconnect()
            raise
        if not block:
            self._disconnect()
            raise TransferFailed(f"{self._part.name}: {self._count} of {self._part.size_bytes} bytes came")
        return block

    def _connect(self) -> http.client.HTTPResponse:
        onward = {"Range": f"bytes={self._count}-"} if self._count else {}
        answer = open_url(urllib.request.Request(self._part.url, headers=onward))  # noqa: S310  (the broker's word)
        self._answer = answer
        left = 0 if answer.status == _PARTIAL else self._count
        while left > 0:
            self._check()
            skipped = len(read_block(answer, left))
            if not skipped:
                raise TransferFailed(f"{self._part.name} is shorter than it was")
            left -= skipped
        return answer

    def _disconnect(self) -> None:
        if self._answer is not None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._answer.close()
            self._answer = None
