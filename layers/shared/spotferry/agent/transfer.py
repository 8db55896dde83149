"""Bytes to and from addresses that need no credentials."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from typing import Callable, Iterator, Optional, TypeVar, cast

from spotferry.agent.chunks import Chunk
from spotferry.agent.clock import Check, Clock, patiently
from spotferry.agent.errors import AddressExpired, TransferFailed

T = TypeVar("T")

BLOCK_BYTES = 1024 * 1024
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


def read_block(answer: http.client.HTTPResponse, size: int = BLOCK_BYTES) -> bytes:
    """The next block, at most so long; empty at the end.

    Raises:
        TransferFailed: it did not come.
    """
    try:
        return answer.read(min(size, BLOCK_BYTES))
    except (OSError, http.client.HTTPException) as error:
        raise TransferFailed(str(error) or type(error).__name__) from None
