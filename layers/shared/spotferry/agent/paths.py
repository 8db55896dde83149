"""The `paths` engine: the application writes its own checkpoints, and what changed of them travels."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import tarfile
import time
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from spotferry.agent.archive import Inode, header_of, inode_of
from spotferry.agent.clock import Check
from spotferry.agent.codec import BLOCK_BYTES, fastest
from spotferry.agent.entries import Entries, EntryFile
from spotferry.agent.errors import Unreadable
from spotferry.agent.members import Zipper
from spotferry.agent.pieces import (
    INDEX_PART,
    LONGEST_PIECE_BYTES,
    ZEROS,
    Entry,
    Identity,
    Known,
    Pack,
    identity_of,
    kind_of,
    piece_bytes,
    piece_lengths,
)
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Options, Saved
from spotferry.agent.rebuild import rebuild
from spotferry.agent.signals import Request
from spotferry.agent.subject import Fate, Subject
from spotferry.agent.uploads import Outgoing, Part

_ZEROS = bytes(LONGEST_PIECE_BYTES)
_FEW_ZEROS = _ZEROS[:64]
_LONGEST_PATH_BYTES = 4096 - 512
"""A restore makes entries by their paths, which the system wants shorter, with those of the directories above."""

_LONGEST_FILE_BYTES = 64 * 1024**4
"""Its pieces, holes as well, are a list in memory; the largest machines have no such disk."""

_SETTLED_SECONDS = 2.0
"""A file that was touched so shortly before may be touched again within the same tick of the disk's clock."""


class PathsEngine:
    """Checkpoints of what the application keeps in named paths.

    Args:
        place: the work directory.
        options: of the job.
        outputs: its outputs: a task that is over leaves them too.
        request: asks the task to write.
        spool: directory for the index while it is made.
    """

    def __init__(
        self,
        place: WorkPlace,
        options: Callable[[], Options],
        outputs: Callable[[], Sequence[str]],
        request: Request,
        spool: Path,
    ) -> None:
        self._place = place
        self._options = options
        self._outputs = outputs
        self._request = request
        self._index = spool / "index.jsonl"
        self._known: Optional[Known] = None
        self._captured: Optional[Known] = None
        self._pack_name = ""
        self._name_pack()

    @property
    def parts(self) -> Tuple[str, ...]:
        """The index, and a pack of what is new."""
        return (INDEX_PART + fastest().suffix, self._pack_name)

    def capture(self, subject: Subject, outgoing: Outgoing, check: Check) -> None:
        """Have the task write, if it can be asked to; then read the paths, while a task that goes on runs."""
        options, fate = self._options(), subject.wanted.fate
        if options.signal and fate is not Fate.IS_OVER:
            self._request.make(options.signal, subject, check)
        with ExitStack() as stack:
            if fate is not Fate.GOES_ON:
                stack.enter_context(subject.still(outgoing.room))
            patterns = [*options.paths, *(self._outputs() if fate is Fate.IS_OVER else ())]
            self._captured = _Capture(self._place, self._known, self._index, check).write(
                self._place.matching(patterns).paths, outgoing, self._pack_name
            )

    def committed(self, number: Optional[int]) -> None:
        """Build the next one on it; where it failed, on nothing: perhaps the broker misses what this one built on."""
        if self._captured is not None and number is not None:
            self._captured.number = number
            self._known = self._captured
        else:
            self._known = None
        self._captured = None
        self._name_pack()

    def restore(self, saved: Saved, check: Check) -> str:
        """Its entries take the place of what the paths name."""
        parts = {part.name: part for part in saved.parts}
        self._known = rebuild(self._place, saved.number, parts, self._options().paths, check)
        return ""

    def _name_pack(self) -> None:
        self._pack_name = f"pack-{secrets.token_hex(8)}.tar{fastest().suffix}"


class _Capture:
    """One checkpoint in the making: entries into the index, pieces that nobody has into a pack."""

    def __init__(self, place: WorkPlace, known: Optional[Known], index: Path, check: Check) -> None:
        self._root = place.work_dir
        self._known = known.worth_keeping(time.time()) if known else Known(0)
        self._index = index
        self._check = check
        self._settled_ns = time.time_ns() - int(_SETTLED_SECONDS * 1e9)
        self._files: Dict[str, Tuple[Identity, Tuple[str, ...]]] = {}
        self._made_of: List[Tuple[int, Tuple[str, ...]]] = []
        self._holder = dict(self._known.holder)
        self._inodes: Dict[Inode, str] = {}

    def write(self, paths: List[str], outgoing: Outgoing, pack_name: str) -> Known:
        """Write the parts; what the next checkpoint can build on, but for its number."""
        try:
            with _NewPack(outgoing, pack_name, self._check) as pack:
                self._write_index(paths, pack)
            packs = [*self._known.packs, *pack.packs()]
            self._send_index(outgoing, packs)
        finally:
            self._index.unlink(missing_ok=True)
        for kept in self._known.packs:
            outgoing.keep(kept.name, self._known.number, kept.sha256, kept.size_bytes)
        lengths = piece_lengths(self._made_of)
        holder = {piece: self._holder[piece] for piece in lengths if piece != ZEROS}
        return Known(0, packs, holder, self._files, lengths)

    def _write_index(self, paths: List[str], pack: _NewPack) -> None:
        leaf = "/"
        with self._index.open("w") as index, Entries(self._root) as entries:
            for path in paths:
                self._check()
                if path.startswith(leaf):  # it became a directory only after it had been looked at
                    continue
                if len(os.fsencode(path)) > _LONGEST_PATH_BYTES:
                    raise Unreadable(path, OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)))
                entry = self._entry(entries, path, pack)
                if entry is not None:
                    index.write(json.dumps(entry.line(), separators=(",", ":")) + "\n")
                    leaf = leaf if entry.kind == "d" else f"{path}/"

    def _send_index(self, outgoing: Outgoing, packs: Sequence[Pack]) -> None:
        codec = fastest()
        told = [{"name": p.name, "pieces_bytes": p.pieces_bytes, "made_at": p.made_at} for p in packs]
        head = {"version": 1, "packs": told}
        with outgoing.part(INDEX_PART + codec.suffix) as part, Zipper(part.write, self._check, codec) as zipped:
            zipped.write(json.dumps(head).encode() + b"\n")
            with self._index.open("rb") as lines:
                while block := lines.read(BLOCK_BYTES):
                    zipped.write(block)

    def _entry(self, entries: Entries, path: str, pack: _NewPack) -> Optional[Entry]:
        """What is at a path; None where there is nothing (any more), or what no checkpoint holds."""
        with entries.look(path) as found:
            if found is None:
                return None
            if found.file is not None:
                return self._file(path, found.file, found.status, pack)
            status, kind = found.status, kind_of(found.status)
            return Entry(path, kind, status.st_mode & 0o7777, status.st_mtime_ns, link=found.link) if kind else None

    def _file(self, path: str, file: EntryFile, status: os.stat_result, pack: _NewPack) -> Entry:
        mode, inode = status.st_mode & 0o7777, inode_of(status)
        if status.st_nlink > 1 and inode in self._inodes:
            return Entry(path, "h", link=self._inodes[inode])
        if status.st_size > _LONGEST_FILE_BYTES:
            raise Unreadable(path, OSError(errno.EFBIG, os.strerror(errno.EFBIG)))
        self._inodes[inode] = path
        identity = identity_of(status)
        pieces = self._known.pieces_of(path, identity)
        if pieces is None:
            pieces = tuple(self._pieces(file, status, pack))
        if status.st_ctime_ns < self._settled_ns:
            self._files[path] = (identity, pieces)
        self._made_of.append((status.st_size, pieces))
        return Entry(path, "f", mode, status.st_mtime_ns, status.st_size, "", pieces)

    def _pieces(self, file: EntryFile, status: os.stat_result, pack: _NewPack) -> Iterator[str]:
        """The digests of a file's pieces; those in holes are not read."""
        size, segments = status.st_size, file.segments(status)
        left = deque([(0, size)] if segments is None else segments)
        for at in range(0, size, piece_bytes(size)):
            while left and sum(left[0]) <= at:
                left.popleft()
            is_hole = not left or left[0][0] >= at + piece_bytes(size)
            yield ZEROS if is_hole else self._piece(file, at, size, pack)

    def _piece(self, file: EntryFile, at: int, size: int, pack: _NewPack) -> str:
        """The digest of a piece of a file, which goes into the pack if no pack has it."""
        self._check()
        length = min(piece_bytes(size), size - at)
        file.seek(at)
        content = b"".join(iter(lambda: file.read(min(BLOCK_BYTES, at + length - file.tell())), b""))
        content += bytes(length - len(content))
        if content.startswith(_FEW_ZEROS) and content == _ZEROS[:length]:
            return ZEROS
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._holder:
            pack.add(digest, content)
            self._holder[digest] = len(self._known.packs)
        return digest


class _NewPack:
    """A pack that is begun with its first piece."""

    def __init__(self, outgoing: Outgoing, name: str, check: Check) -> None:
        self._outgoing = outgoing
        self._name = name
        self._check = check
        self._stack = ExitStack()
        self._part: Optional[Part] = None
        self._zipped: Optional[Zipper] = None
        self._pieces_bytes = 0

    def __enter__(self) -> _NewPack:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._zipped is not None and error[0] is None:
            self._zipped.write(bytes(2 * tarfile.BLOCKSIZE))
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # what __exit__ gets

    def add(self, digest: str, content: bytes) -> None:
        """Put a piece in."""
        if self._zipped is None:
            self._part = self._stack.enter_context(self._outgoing.part(self._name))
            self._zipped = self._stack.enter_context(Zipper(self._part.write, self._check, fastest()))
        entry = tarfile.TarInfo(digest)
        entry.size = len(content)
        self._zipped.write(header_of(entry))
        self._zipped.write(content)
        self._zipped.write(bytes(-len(content) % tarfile.BLOCKSIZE))
        self._pieces_bytes += len(content)

    def packs(self) -> List[Pack]:
        """The pack, once it is written; nothing where there was no piece."""
        if self._part is None:
            return []
        return [Pack(self._name, self._part.sha256, self._part.size_bytes, self._pieces_bytes, time.time())]
