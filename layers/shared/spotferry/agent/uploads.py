"""Sends archives to the bucket in two phases: the bytes, then the commit that makes them count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List

from spotferry.agent.archive import Packed
from spotferry.agent.broker import Json
from spotferry.agent.clock import Check, Clock
from spotferry.agent.errors import AddressExpired, BrokerRefused, TransferFailed
from spotferry.agent.link import Link
from spotferry.agent.machine import arch
from spotferry.agent.transfer import send_chunks

FRESH_ADDRESSES = 3
"""How often an upload is begun anew because its addresses ran out."""

LISTED_FILES = 10_000
"""A commit lists at most so many files, and says so; the archive holds them all."""


@dataclass(frozen=True)
class Upload:
    """What is sent.

    Attributes:
        kind: `checkpoint` or `outputs`.
        part: its name in the bucket.
        packed: the archive.
        details: further fields of the commit.
    """

    kind: str
    part: str
    packed: Packed
    details: Dict[str, Any]


class Uploader:
    """Sends uploads one at a time."""

    def __init__(self, link: Link, clock: Clock) -> None:
        self._link = link
        self._clock = clock

    def send(self, upload: Upload, check: Check) -> Json:
        """Send the archive and commit it; the broker's answer. The archive stays where it is.

        Reports that were made before are delivered first. While the broker is away it waits, until `check` raises.

        Raises:
            TransferFailed: the bucket did not take it, or the broker refused it; nothing was committed.
        """
        self._link.delivered(check)
        for last in (False,) * (FRESH_ADDRESSES - 1) + (True,):
            try:
                addresses = self._addresses(upload, check)
                etags = self._put(upload, addresses, check)
                return self._commit(upload, addresses, etags, check)
            except AddressExpired as expired:
                if last:
                    raise TransferFailed(f"the bucket refused {upload.part}: {expired}") from expired
            except (KeyError, TypeError, IndexError) as error:
                raise TransferFailed(f"the broker's addresses lack {error}") from error
            except BrokerRefused as refused:
                raise TransferFailed(str(refused)) from refused
        raise AssertionError("the last try returns or raises")

    def _part(self, upload: Upload) -> Dict[str, Any]:
        return {"name": upload.part, "size_bytes": upload.packed.size_bytes, "sha256": upload.packed.sha256}

    def _addresses(self, upload: Upload, check: Check) -> Json:
        return self._link.call("uploads", {"kind": upload.kind, "parts": [self._part(upload)]}, check)

    def _put(self, upload: Upload, addresses: Json, check: Check) -> List[str]:
        part = addresses["parts"][0]
        return send_chunks(upload.packed.path, part["urls"], int(part["chunk_bytes"]), self._clock, check)

    def _commit(self, upload: Upload, addresses: Json, etags: List[str], check: Check) -> Json:
        part = {**self._part(upload), "upload_id": addresses["parts"][0]["upload_id"], "etags": etags}
        body = {
            "kind": upload.kind,
            "nonce": addresses["nonce"],
            "machine": {"arch": arch()},
            "parts": [part],
            "files": upload.packed.files[:LISTED_FILES],
            "files_complete": len(upload.packed.files) <= LISTED_FILES,
            "log": None,
            **upload.details,
        }
        return self._link.call("uploads/commit", body, check)
