"""Fetches archives and sends them in chunks, to addresses that need no credentials."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, TypeVar

from spotferry.agent.clock import Check, Clock, patiently
from spotferry.agent.errors import AddressExpired, TransferFailed

T = TypeVar("T")

BLOCK_BYTES = 1024 * 1024
TRIES = 8
STALL_SECONDS = 30.0
_REFUSALS = range(300, 500)
"""The address is wrong for us; of the redirects only those come here that are not followed."""
_LATER = (408, 429)


def fetch(url: str, size_bytes: int, sha256: str, target: Path, clock: Clock, check: Check) -> None:
    """Fetch an object to a file, and verify its size and digest.

    Raises:
        AddressExpired: the address is no longer good.
        TransferFailed: it could not be fetched in TRIES tries, or is not what was promised.
    """

    def once() -> None:
        digest, count = hashlib.sha256(), 0
        with open_url(urllib.request.Request(url)) as answer, target.open("wb") as file:  # noqa: S310  (the broker's word)
            while block := read_block(answer):
                check()
                digest.update(block)
                count += len(block)
                file.write(block)
        if count != size_bytes or digest.hexdigest() != sha256:
            raise TransferFailed(f"{count} bytes came; they are not the {size_bytes} bytes with the digest promised")

    _tried(once, clock, check)


def send_chunks(path: Path, urls: Sequence[str], chunk_bytes: int, clock: Clock, check: Check) -> List[str]:
    """PUT a file in chunks, the n-th to the n-th address; the ETags of the answers.

    Raises:
        AddressExpired: an address is no longer good.
        TransferFailed: a chunk could not be sent in TRIES tries, or there are not as many addresses as chunks.
    """
    size_bytes = path.stat().st_size
    if chunk_bytes < 1 or max(1, -(-size_bytes // chunk_bytes)) != len(urls):
        raise TransferFailed(f"{path.name}: {len(urls)} addresses for {size_bytes} bytes in chunks of {chunk_bytes}")
    etags = []
    for number, url in enumerate(urls):
        start = number * chunk_bytes
        etags.append(_send(path, url, start, min(chunk_bytes, size_bytes - start), clock, check))
    return etags


def _send(path: Path, url: str, start: int, size: int, clock: Clock, check: Check) -> str:
    """PUT one chunk; its ETag."""

    def once() -> str:
        request = urllib.request.Request(  # noqa: S310  (the broker's word)
            url,
            data=_blocks(path, start, size, check),
            method="PUT",
            headers={"Content-Length": str(size), "Content-Type": "application/octet-stream"},
        )
        with open_url(request) as answer:
            etag = answer.headers.get("ETag")
            answer.read()
        if not etag:
            raise TransferFailed(f"{path.name}: the bucket gave no ETag for the bytes from {start}")
        return str(etag)

    return _tried(once, clock, check)


def _tried(once: Callable[[], T], clock: Clock, check: Check) -> T:
    return patiently(once, again_on=(TransferFailed,), clock=clock, check=check, tries=TRIES)


def _blocks(path: Path, start: int, size: int, check: Check) -> Iterator[bytes]:
    """A part of a file, block by block, so that a chunk is never in memory."""
    with path.open("rb") as file:
        file.seek(start)
        while size > 0:
            check()
            block = file.read(min(BLOCK_BYTES, size))
            if not block:
                raise TransferFailed(f"{path.name} became shorter while it was sent")
            size -= len(block)
            yield block


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


def read_block(answer: http.client.HTTPResponse) -> bytes:
    """The next block; empty at the end.

    Raises:
        TransferFailed: it did not come.
    """
    try:
        return answer.read(BLOCK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise TransferFailed(str(error) or type(error).__name__) from None
