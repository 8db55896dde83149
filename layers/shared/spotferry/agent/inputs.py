"""Copies a job's inputs to the machine before setup."""

from __future__ import annotations

import os
import stat
import urllib.request
from pathlib import Path
from typing import IO, Callable, Dict, Mapping, Optional, Sequence, Tuple

from spotferry.agent.clock import Check, Clock, patiently
from spotferry.agent.cloud_credentials import CloudCredentials
from spotferry.agent.errors import AddressExpired, StepFailed, TransferFailed, reason_of
from spotferry.agent.plan import Input
from spotferry.agent.transfer import TRIES, open_url, read_block
from spotferry.agent.world import World

_BYTES_PER_GB = 1_000_000_000
_TOLERANCE = 1.1
"""How much larger an input may be than its job file says: transfer and disk were planned by that."""
_SLACK_BYTES = 10_000_000
_PARTIAL = 206
_BROKER = "broker"


class CarefulRedirect(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but takes no credentials elsewhere, and never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Mapping[str, str],  # type: ignore[override]  # what urllib passes is one
        newurl: str,
    ) -> Optional[urllib.request.Request]:
        """The request for the new address; None refuses it."""
        downgrade = req.type == "https" and not newurl.startswith("https:")
        if downgrade or req.has_header("Authorization"):
            return None
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]  # as above


class Inputs:
    """The inputs of one job on this machine.

    Args:
        world: whose files they are to be.
        credentials: for the buckets of the machine's cloud.
        clock: to wait on.
    """

    def __init__(self, world: World, credentials: CloudCredentials, clock: Clock) -> None:
        self._world = world
        self._credentials = credentials
        self._clock = clock
        self._etags: Dict[Path, str] = {}
        self._opener = urllib.request.build_opener(CarefulRedirect)

    def bring(self, inputs: Sequence[Input], check: Check, *, fresh: bool) -> None:
        """Copy all of them; what is there already is kept, what was begun goes on where it stopped.

        Args:
            inputs: of the plan.
            check: called for every block; may raise to give up.
            fresh: the broker's addresses were just made: one that is refused means that there is no such object.

        Raises:
            AddressExpired: an address of the broker's, which was not fresh, was refused.
            StepFailed: one cannot be had; the reason names it.
        """
        for given in inputs:
            try:
                self._bring(given, check)
            except (AddressExpired, TransferFailed, OSError) as error:
                if isinstance(error, AddressExpired) and given.access == _BROKER and not fresh:
                    raise
                raise _failed(given, reason_of(error)) from error

    def _bring(self, given: Input, check: Check) -> None:
        directory, name = self._directory(given.path)
        target, part = directory / name, directory / f"{name}.spotferry-part"
        if target.is_file() and not target.is_symlink():
            return
        while True:
            before = _size(part)
            try:
                patiently(
                    lambda: self._fetch(given, part, check),
                    again_on=(TransferFailed,),
                    clock=self._clock,
                    check=check,
                    tries=TRIES,
                )
            except TransferFailed:
                if _size(part) <= before:
                    raise
            else:
                break
        self._world.give(part)
        part.rename(target)

    def _fetch(self, given: Input, part: Path, check: Check) -> None:
        """Fetch what is missing; as anybody may where the machine's own credentials are refused: they may know less."""
        headers = self._credentials.headers(given.access, given.url, given.region)
        try:
            self._get(given, part, headers, check)
        except AddressExpired:
            if not headers:
                raise
            self._get(given, part, {}, check)

    def _get(self, given: Input, part: Path, headers: Dict[str, str], check: Check) -> None:
        """One request; another version of the object than the one begun with is fetched from its start."""
        begun, etag = _size(part), self._etags.get(part, "")
        onward = {"Range": f"bytes={begun}-", "If-Range": etag} if begun and etag else {}
        request = urllib.request.Request(given.url, headers={**headers, **onward})  # noqa: S310  (https, or the broker's)
        with open_url(request, self._opener) as answer:
            start = begun if answer.status == _PARTIAL else 0
            self._etags[part] = _strong(answer.headers.get("ETag"))
            length = answer.headers.get("Content-Length")
            total = None if length is None else start + int(length)
            with part.open("ab" if start else "wb") as file:
                count = _copy(given, (start, total), lambda: read_block(answer), file, check)
        if total is not None and count != total:
            raise TransferFailed(f"{count} of {total} bytes came")

    def _directory(self, path: str) -> Tuple[Path, str]:
        """The directory for an input, made where it is missing, and the file's name in it; never through a link."""
        place = self._world.inputs_dir
        *parents, name = path.split("/")
        for part in ("", *parents):
            place = place / part
            if not os.path.lexists(place):
                place.mkdir(mode=0o755)
                self._world.give(place)
            elif not stat.S_ISDIR(place.lstat().st_mode):
                raise NotADirectoryError(f"{place} is no directory")
        return place, name


def _copy(
    given: Input, extent: Tuple[int, Optional[int]], read: Callable[[], bytes], file: IO[bytes], check: Check
) -> int:
    """Write blocks until the end; the size of the file then. `extent` is its size now and at the end, if known."""
    count, total = extent
    most = given.size_gb * _BYTES_PER_GB * _TOLERANCE + _SLACK_BYTES
    while True:
        if max(count, total or 0) > most:
            raise _failed(given, f"it has {max(count, total or 0)} bytes, the job file says {given.size_gb:g} GB")
        block = read()
        if not block:
            return count
        check()
        file.write(block)
        count += len(block)


def _failed(given: Input, why: str) -> StepFailed:
    return StepFailed("startup_failed", {"reason": f"the input {given.uri} cannot be had: {why}"})


def _strong(etag: Optional[str]) -> str:
    """An ETag that proves two answers to be of the same bytes; "" for none."""
    return "" if etag is None or etag.startswith("W/") else etag


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
