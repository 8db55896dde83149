"""Bytes to and from the bucket, by addresses that the broker signed."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import BinaryIO

import httpx

from cli.errors import Failed, Unreachable, UsageProblem
from cli.progress import Progress
from cli.settings import Settings
from spotferry.types.words import MOST_TOLD, cut

CHUNK_BYTES = 1024 * 1024
TRIES = 4
TIMEOUT = httpx.Timeout(60.0, connect=10.0)


def upload(file: BinaryIO, size_bytes: int, url: str, headers: Mapping[str, str], settings: Settings) -> None:
    """PUT a file, from its start; again when the network fails.

    Raises:
        Failed: the bucket does not take it.
        Unreachable: it does not answer.
    """
    sent = {**headers, "Content-Length": str(size_bytes)}
    with httpx.Client(transport=settings.transport, timeout=TIMEOUT) as client:
        for tries_left in reversed(range(TRIES)):
            file.seek(0)
            progress = Progress("uploading", size_bytes)
            try:
                answer = client.put(url, content=_chunks(file, progress), headers=sent)
            except httpx.TransportError as error:
                if tries_left == 0:
                    raise Unreachable(f"the upload broke off ({error}); submit again") from error
            else:
                if answer.is_success:
                    return
                if not answer.is_server_error or tries_left == 0:
                    raise Failed(f"the bucket refused the upload ({answer.status_code}): {cut(answer.text, MOST_TOLD)}")
            settings.sleep(float(2 ** (TRIES - tries_left - 1)))


def fetch(url: str, into: BinaryIO, size_bytes: int, sha256: str, settings: Settings) -> None:
    """GET a file and check that every byte came; again when the network fails.

    Raises:
        UsageProblem: it is not in the bucket any longer.
        Failed: what came is not what the broker wrote down, or the bucket refuses.
        Unreachable: it does not answer.
    """
    with httpx.Client(transport=settings.transport, timeout=TIMEOUT, follow_redirects=True) as client:
        for tries_left in reversed(range(TRIES)):
            into.seek(0)
            into.truncate()
            try:
                found = _fetch_once(client, url, into, size_bytes)
            except httpx.TransportError as error:
                if tries_left == 0:
                    raise Unreachable(f"the download broke off ({error}); try again") from error
                settings.sleep(float(2 ** (TRIES - tries_left - 1)))
                continue
            if found != sha256:
                raise Failed(f"the download is damaged: its digest is {found}, not {sha256}; try again")
            into.seek(0)
            return


def _fetch_once(client: httpx.Client, url: str, into: BinaryIO, size_bytes: int) -> str:
    digest = hashlib.sha256()
    progress = Progress("downloading", size_bytes)
    with client.stream("GET", url) as answer:
        if answer.status_code == httpx.codes.NOT_FOUND:
            raise UsageProblem("the outputs are not in the bucket any longer")
        if answer.is_server_error:
            raise httpx.ReadError(f"the bucket answered {answer.status_code}")
        if not answer.is_success:
            raise Failed(f"the bucket refused the download ({answer.status_code}); try again, addresses expire")
        for chunk in answer.iter_raw(CHUNK_BYTES):
            digest.update(chunk)
            into.write(chunk)
            progress.add(len(chunk))
    return digest.hexdigest()


def _chunks(file: BinaryIO, progress: Progress) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk
        progress.add(len(chunk))
