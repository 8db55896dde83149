"""Bytes to and from addresses that need no credentials."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from typing import Callable, Iterator, List, Optional, TypeVar, cast

from spotferry.agent.chunks import Chunk
from spotferry.agent.clock import Check, Clock, patiently
from spotferry.agent.errors import AddressExpired, TransferFailed

T = TypeVar("T")

READ_BYTES = 1024 * 1024
"""Read at once where the line is fast."""

_READ_SECONDS = 0.2
"""Where it is slow, what came meanwhile is a block."""

_ASK_BYTES = 256 * 1024
"""Asked of the system at once, which makes room for all of it and mostly has less."""

TRIES = 8
STALL_SECONDS = 30.0
_REFUSALS = range(300, 500)
"""The address is wrong for us; of the redirects only those come here that are not followed."""
_LATER = (408, 429)


def put_chunk(url: str, chunk: Chunk, clock: Clock, check: Check) -> str:
    """PUT one chunk, as often as it takes; its ETag.

    Raises:
        AddressExpired: the address is no longer good.
        TransferFailed: it could not be sent in TRIES tries.
    """
    headers = {"Content-Length": str(chunk.size_bytes), "Content-Type": "application/octet-stream"}

    def once() -> str:
        request = urllib.request.Request(url, data=_checked(chunk, check), method="PUT", headers=headers)  # noqa: S310  (the broker's word)
        with open_url(request) as answer:
            etag = str(answer.headers.get("ETag") or "")
            answer.read()
        if not etag:
            raise TransferFailed(f"the bucket gave no ETag for chunk {chunk.number}")
        return etag

    return _tried(once, clock, check)


def _checked(chunk: Chunk, check: Check) -> Iterator[bytes]:
    """The blocks of a chunk, each as soon as nobody objects."""
    for block in chunk.blocks():
        check()
        yield cast("bytes", block)  # a view of some does as well


def _tried(once: Callable[[], T], clock: Clock, check: Check) -> T:
    return patiently(once, again_on=(TransferFailed,), clock=clock, check=check, tries=TRIES)


def open_url(
    request: urllib.request.Request, opener: Optional[urllib.request.OpenerDirector] = None
) -> http.client.HTTPResponse:
    """Open an address; the opener is urllib's usual one unless another is given.

    Raises:
        AddressExpired, TransferFailed: by what the status means.
    """
    try:
        opened = opener.open if opener else urllib.request.urlopen
        answer = opened(request, timeout=STALL_SECONDS)
    except urllib.error.HTTPError as error:
        with error:
            text = f"HTTP {error.code} {error.reason}"
        if error.code in _REFUSALS and error.code not in _LATER:
            raise AddressExpired(text) from None
        raise TransferFailed(text) from None
    except (OSError, http.client.HTTPException) as error:
        raise TransferFailed(str(error) or type(error).__name__) from None
    assert isinstance(answer, http.client.HTTPResponse)
    return answer


def read_block(answer: http.client.HTTPResponse, size: int = READ_BYTES) -> bytes:
    """The next block, at most so long: what comes within a fraction of a second, or the first that comes after it.
    Empty at the end. What came before the line broke is a block; the next call tells that it broke.

    Raises:
        TransferFailed: nothing came.
    """
    pieces: List[bytes] = []
    left, ends_at = min(size, READ_BYTES), time.monotonic() + _READ_SECONDS
    try:
        while left > 0 and (piece := _some(answer, min(left, _ASK_BYTES))):
            pieces.append(piece)
            left -= len(piece)
            if time.monotonic() >= ends_at:
                break
    except (OSError, http.client.HTTPException) as error:
        if not pieces:
            raise TransferFailed(str(error) or type(error).__name__) from None
    return b"".join(pieces)


def _some(answer: http.client.HTTPResponse, size: int) -> bytes:
    """What is there of the next bytes, at most so many; waits for the first."""
    left = answer.length
    piece = answer.read1(size)
    if left is not None and answer.length == left:  # some Pythons do not count what they read so
        answer.length = left - len(piece)
    return piece
