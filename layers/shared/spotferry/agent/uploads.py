"""Sends archives to the bucket while they are made: the bytes first, then the commit that makes them count."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, Iterable, List, Optional, Tuple, Type

from spotferry.agent.addresses import Addresses
from spotferry.agent.broker import Json
from spotferry.agent.chunks import Chunk, Room
from spotferry.agent.clock import Check, Clock
from spotferry.agent.codec import Bytes
from spotferry.agent.digest import Digest
from spotferry.agent.errors import AddressExpired, AgentError, BrokerRefused, TransferFailed, reason_of
from spotferry.agent.link import Link
from spotferry.agent.transfer import put_chunk

FRESH_ADDRESSES = 3
"""How often a chunk is sent to a new address because the one before was refused."""

LISTED_FILES = 10_000
"""A commit lists at most so many files, and says so; the archive holds them all."""

TOLD_NAMES = 100

SENDERS = 3
"""Chunks that are on their way at a time."""

_LOOK_SECONDS = 0.2


class _Stopped(AgentError):
    """Nobody wants the upload any more."""


class Part:
    """One object of an archive, written once from start to end; made by `Outgoing.part`.

    A context manager: leaving it without an error sends the last chunk on.
    """

    def __init__(self, outgoing: Outgoing, name: str, upload_id: str, addresses: Addresses) -> None:
        self.name = name
        self.addresses = addresses
        self.etags: Dict[int, str] = {}
        self.size_bytes = 0
        self._outgoing = outgoing
        self._upload_id = upload_id
        self._digest = Digest()
        self._chunk: Optional[Chunk] = None
        self._number = 0

    def __enter__(self) -> Part:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], _: object, __: Optional[TracebackType]) -> None:
        try:
            if kind is None:
                self._digest.hexdigest()  # what went wrong with it is said before the last chunk is sent
                if self._chunk is not None:
                    self._pass_on(self._chunk)
        finally:
            self._digest.close()
            if self._chunk is not None:
                self._chunk.drop()

    def write(self, data: Bytes) -> None:
        """Send some bytes on, as soon as there is room for them.

        Raises:
            TransferFailed: earlier ones could not be sent, or there is no end to them.
        """
        self._digest.update(data)
        self.size_bytes += len(data)
        while len(data) > 0:
            if self._chunk is None:
                self._chunk = self._outgoing.room.chunk(self._number, self._capacity(), self._outgoing.look)
                self._number += 1
            data = self._chunk.write(data)
            if self._chunk.size_bytes == self._chunk.capacity:
                self._pass_on(self._chunk)

    @property
    def sha256(self) -> str:
        """Digest of all that was written."""
        return self._digest.hexdigest()

    def committed(self) -> Json:
        """As the commit names it."""
        return {
            "name": self.name,
            "upload_id": self._upload_id,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
            "etags": [self.etags[number] for number in range(self._number)],
        }

    def _capacity(self) -> int:
        try:
            return self.addresses.chunk_bytes(self._number)
        except ValueError as error:
            raise TransferFailed(str(error)) from error

    def _pass_on(self, chunk: Chunk) -> None:
        chunk.close()
        self._chunk = None
        self._outgoing.send(self, chunk)


class Outgoing:
    """One archive on its way; made by `Uploader.begin`, to be left as a context manager, committed or not.

    Attributes:
        room: where its chunks wait.
    """

    def __init__(self, link: Link, clock: Clock, room: Room, kind: str, names: Tuple[str, ...], check: Check) -> None:
        self.room = room
        self._link = link
        self._clock = clock
        self._kind = kind
        self._names = names
        self._check = check
        self._nonce = ""
        self._places: Dict[str, Tuple[str, Addresses]] = {}
        self._written: List[Part] = []
        self._kept: List[Json] = []
        self._queue: queue.Queue[Tuple[Part, Chunk]] = queue.Queue()
        self._changed = threading.Condition()
        self._on_their_way = 0
        self._failure: Optional[BaseException] = None
        self._over = threading.Event()

    def __enter__(self) -> Outgoing:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of all that was not sent."""
        self._over.set()
        while not self._queue.empty():
            self._queue.get_nowait()[1].drop()

    def look(self) -> None:
        """Raise what ends the upload, if there is something."""
        self._check()
        if self._failure is not None:
            raise self._failure

    def open(self) -> None:
        """Ask for a place for each part, if that was not done. Reports that were made before are delivered first;
        while the broker is away, this waits until `check` raises.

        Raises:
            TransferFailed: the broker refuses.
        """
        if self._places:
            return
        self._link.delivered(self._check)
        body = {"kind": self._kind, "parts": [{"name": name} for name in self._names]}
        try:
            answer = self._link.call("uploads", body, self._check)
            self._nonce = str(answer["nonce"])
            for part in answer["parts"]:
                whose = {"kind": self._kind, "nonce": self._nonce, "name": part["name"], "upload_id": part["upload_id"]}
                addresses = Addresses(self._ask, whose, part, float(answer["expires_seconds"]), self._clock)
                self._places[str(part["name"])] = (str(part["upload_id"]), addresses)
        except (KeyError, TypeError, ValueError) as error:
            raise TransferFailed(f"the broker's addresses lack {error}") from error
        except BrokerRefused as refused:
            raise TransferFailed(str(refused)) from refused
        for _ in range(SENDERS):
            threading.Thread(target=self._send_all, name="upload", daemon=True).start()

    def part(self, name: str) -> Part:
        """Begin one of the parts."""
        self.open()
        part = Part(self, name, *self._places[name])
        self._written.append(part)
        return part

    def keep(self, name: str, number: int, sha256: str, size_bytes: int) -> None:
        """A part of an earlier checkpoint is one of this archive too."""
        self._kept.append({"name": name, "same_as": number, "sha256": sha256, "size_bytes": size_bytes})

    def send(self, part: Part, chunk: Chunk) -> None:
        """Take a chunk that is full."""
        with self._changed:
            self._on_their_way += 1
        self._queue.put((part, chunk))

    def settle(self) -> None:
        """Wait until all that was written is in the bucket.

        Raises:
            TransferFailed: the bucket did not take it.
        """
        with self._changed:
            while self._on_their_way and self._failure is None:
                self._check()
                self._changed.wait(_LOOK_SECONDS)
        self.look()

    def commit(self, details: Dict[str, Any], files: List[Json]) -> Json:  # Any: fields of the commit
        """Make it count, once it is settled; the broker's answer.

        Raises:
            TransferFailed: the broker refused it; nothing was committed.
        """
        self.open()
        listed = [file for file in files if _can_be_told(str(file["path"]))][:LISTED_FILES]
        body = {
            "kind": self._kind,
            "nonce": self._nonce,
            "parts": [part.committed() for part in self._written] + self._kept,
            "files": listed,
            "files_complete": len(listed) == len(files),
            "log": None,
            **details,
        }
        try:
            return self._link.call("uploads/commit", body, self._check)
        except BrokerRefused as refused:
            raise TransferFailed(str(refused)) from refused

    def _ask(self, path: str, body: Json) -> Json:
        return self._link.call(path, body, self._still_wanted)

    def _still_wanted(self) -> None:
        if self._over.is_set():
            raise _Stopped("the upload is given up")

    def _send_all(self) -> None:
        """One sender: chunks as they come, until the upload is over."""
        while not self._over.is_set():
            try:
                part, chunk = self._queue.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                continue
            try:
                part.etags[chunk.number] = self._sent(part, chunk)
            except Exception as error:  # noqa: BLE001  (whatever it is, it is raised where the archive is made)
                self._failure = self._failure or error
            finally:
                chunk.drop()
                with self._changed:
                    self._on_their_way -= 1
                    self._changed.notify_all()

    def _sent(self, part: Part, chunk: Chunk) -> str:
        """Send one chunk, to a fresh address where the one before is refused; its ETag."""
        refusal = ""
        for _ in range(FRESH_ADDRESSES):
            try:
                url = part.addresses.url(chunk.number)
            except (KeyError, TypeError, ValueError) as error:
                raise TransferFailed(f"the broker's addresses lack {error}") from error
            except BrokerRefused as refused:
                raise TransferFailed(str(refused)) from refused
            try:
                return put_chunk(url, chunk, self._clock, self._still_wanted)
            except AddressExpired as expired:
                refusal = reason_of(expired)
                part.addresses.refused(url)
        raise TransferFailed(f"the bucket refused {part.name}: {refusal}")


class Uploader:
    """Begins uploads, one at a time.

    Args:
        link: to the broker.
        clock: to wait on.
        spool: directory for chunks that have to wait.
    """

    def __init__(self, link: Link, clock: Clock, spool: Path) -> None:
        self._link = link
        self._clock = clock
        self._spool = spool

    def begin(self, kind: str, names: Tuple[str, ...], check: Check) -> Outgoing:
        """A new archive, a `checkpoint` or `outputs`, of at most these parts."""
        return Outgoing(self._link, self._clock, Room(self._spool), kind, names, check)


def told(names: Iterable[str]) -> List[str]:
    """As many of these names as a commit takes, those of them that are text."""
    return [name for name in names if _can_be_told(name)][:TOLD_NAMES]


def _can_be_told(name: str) -> bool:
    """A name of any bytes may be on the disk; JSON has only those that are text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
