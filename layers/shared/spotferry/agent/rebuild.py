"""Brings a checkpoint of the `paths` engine back: its entries from the index, their bytes from the packs."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from collections import defaultdict
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from spotferry.agent.broker import Json
from spotferry.agent.clock import Check
from spotferry.agent.codec import BLOCK_BYTES
from spotferry.agent.errors import ArchiveInvalid
from spotferry.agent.forward import DAMAGED, Forward
from spotferry.agent.members import Readable, exactly, unzip
from spotferry.agent.pieces import (
    INDEX_PART,
    LONGEST_PIECE_BYTES,
    ZEROS,
    Entry,
    Identity,
    Known,
    Pack,
    identity_of,
    piece_bytes,
    piece_lengths,
)
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Part
from spotferry.agent.removal import remove
from spotferry.agent.unpack import write_or_skip

_MOST_MODE = 0o7777
_HOLE_BYTES = 64 * 1024


def rebuild(place: WorkPlace, number: int, parts: Mapping[str, Part], patterns: Sequence[str], check: Check) -> Known:
    """Put a checkpoint's entries in the place of what the patterns name; the rest of the work directory stays.

    Args:
        place: the work directory.
        number: of the checkpoint.
        parts: of it, by name.
        patterns: what is removed first: files that the checkpoint no longer has must not come back.
        check: called for every block; may raise to give up.

    Returns:
        What the next checkpoint can build on.

    Raises:
        ArchiveInvalid: it is damaged, lacks a part, or would write outside the work directory.
        AddressExpired, TransferFailed, OSError: it cannot be had; nothing was replaced yet, unless the disk failed.
    """
    building = _Building(place, check)
    packs = [_pack_of(said, parts) for said in building.read_index(_index_of(parts))]
    building.make()
    for pack in packs:
        building.fill(parts[pack.name])
    building.finish()
    building.put_in_place(patterns)
    return building.known(number, packs)


def _index_of(parts: Mapping[str, Part]) -> Part:
    index = next((part for name, part in parts.items() if name.startswith(INDEX_PART)), None)
    if index is None:
        raise ArchiveInvalid(f"it has no part {INDEX_PART}")
    return index


def _pack_of(said: Json, parts: Mapping[str, Part]) -> Pack:
    """A pack of the index, with what the manifest says of it."""
    try:
        part = parts[str(said["name"])]
        return Pack(part.name, part.sha256, part.size_bytes, int(said["pieces_bytes"]), float(said["made_at"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ArchiveInvalid(f"a pack of the index lacks {error}") from error


class _Building:
    """The entries of one checkpoint, built beside the work directory."""

    def __init__(self, place: WorkPlace, check: Check) -> None:
        self._place = place
        self._check = check
        if not place.work_dir.is_dir():
            place.empty()
        self._target = place.world.unpack_place(place.work_dir)
        self._entries: List[Entry] = []
        self._wanted: Dict[str, List[Tuple[str, int]]] = defaultdict(list)
        self._holder: Dict[str, int] = {}
        self._packs_read = 0

    def read_index(self, part: Part) -> List[Json]:
        """Learn the entries; what is said of the packs."""
        try:
            with self._place.fetched(part, self._check) as incoming:
                with unzip(incoming) as plain:
                    lines = _lines(plain)
                    head = json.loads(next(lines, b"null"))
                    self._entries = [Entry.of(json.loads(line)) for line in lines]
                incoming.verify()
            return list(head["packs"])
        except (*DAMAGED, KeyError, TypeError) as error:
            raise ArchiveInvalid(f"the index is damaged: {error}") from error

    def make(self) -> None:
        """Make everything but the bytes; nothing is made through a link, since links come last."""
        kinds = {entry.path: entry.kind for entry in self._entries}
        for entry in self._entries:
            for parent in _parents(entry.path):
                if kinds.setdefault(parent, "d") != "d":
                    raise ArchiveInvalid(f"{entry.path}: an entry above it is no directory; it is refused")
        for path in sorted(path for path, kind in kinds.items() if kind == "d"):
            (self._target / path).mkdir()
            self._place.world.give(self._target / path)
        for entry in self._entries:
            if entry.kind == "f":
                self._make_file(entry)
            elif entry.kind == "p":
                os.mkfifo(self._target / entry.path)

    def _make_file(self, entry: Entry) -> None:
        with (self._target / entry.path).open("xb") as file:
            file.truncate(entry.size)
        length = piece_bytes(entry.size)
        for number, piece in enumerate(entry.pieces):
            if piece != ZEROS:
                self._wanted[piece].append((entry.path, number * length))

    def fill(self, part: Part) -> None:
        """Write the pieces of one pack to where they belong."""
        try:
            with self._place.fetched(part, self._check) as incoming:
                with unzip(incoming) as plain:
                    self._fill(plain)
                incoming.verify()
        except DAMAGED as error:
            raise ArchiveInvalid(f"{part.name} is damaged: {error}") from error
        self._packs_read += 1

    def _fill(self, plain: Readable) -> None:
        stream = Forward(plain)
        with stream.opened() as tar:
            while (member := stream.next_of(tar)) is not None:
                self._check()
                if member.name in self._wanted:
                    self._write(member.name, _content(stream, member))
            while plain.read(BLOCK_BYTES):
                self._check()

    def _write(self, piece: str, content: bytes) -> None:
        if hashlib.sha256(content).hexdigest() != piece:
            raise ArchiveInvalid(f"the piece {piece} is not what its digest says")
        for path, at in self._wanted.pop(piece):
            with (self._target / path).open("r+b", buffering=0) as file:
                file.seek(at)
                for start in range(0, len(content), _HOLE_BYTES):
                    write_or_skip(file, content[start : start + _HOLE_BYTES])
        self._holder[piece] = self._packs_read

    def finish(self) -> None:
        """Make the links, and see that nothing is missing."""
        if self._wanted:
            raise ArchiveInvalid(f"{len(self._wanted)} pieces are in none of its packs")
        for entry in self._entries:
            if entry.kind == "l":
                (self._target / entry.path).symlink_to(entry.link)
            elif entry.kind == "h":
                self._link(entry)
            self._place.world.give(self._target / entry.path)
        self._settle(self._target, "fp")

    def _settle(self, root: Path, kinds: str) -> None:
        """Modes and times, innermost first."""
        for entry in sorted(self._entries, key=lambda entry: entry.path, reverse=True):
            if entry.kind in kinds:
                (root / entry.path).chmod(entry.mode & _MOST_MODE)
                os.utime(root / entry.path, ns=(entry.mtime_ns, entry.mtime_ns))

    def _link(self, entry: Entry) -> None:
        if not (self._target / entry.link).is_file() or (self._target / entry.link).is_symlink():
            raise ArchiveInvalid(f"{entry.path}: a hard link to {entry.link}, which is no file; refused")
        os.link(self._target / entry.link, self._target / entry.path, follow_symlinks=False)

    def put_in_place(self, patterns: Sequence[str]) -> None:
        """Take away what the patterns name in the work directory, and move the entries there."""
        for path in reversed(self._place.matching(patterns).paths):
            remove(self._place.work_dir / path)
        _move(self._target, self._place.work_dir)
        self._settle(self._place.work_dir, "d")  # until now they had to be open

    def known(self, number: int, packs: List[Pack]) -> Known:
        """What the next checkpoint can build on."""
        files: Dict[str, Tuple[Identity, Tuple[str, ...]]] = {}
        made_of: List[Tuple[int, Tuple[str, ...]]] = []
        for entry in self._entries:
            if entry.kind == "f":
                files[entry.path] = (identity_of(os.lstat(self._place.work_dir / entry.path)), entry.pieces)
                made_of.append((entry.size, entry.pieces))
        return Known(number, packs, self._holder, files, piece_lengths(made_of))


def _move(source: Path, target: Path) -> None:
    """Move what is in a directory into another, over what is there; directories that are in both are joined."""
    with os.scandir(source) as found:
        names = [entry.name for entry in found]
    for name in names:
        old, new = source / name, target / name
        if _is_directory(old) and _is_directory(new):
            _move(old, new)
        else:
            remove(new)
            old.rename(new)
    source.rmdir()


def _is_directory(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _parents(path: str) -> Iterator[str]:
    """The directories above a path."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def _content(stream: Forward, member: tarfile.TarInfo) -> bytes:
    """The bytes of a piece."""
    if not member.isreg() or member.issparse() or member.size > LONGEST_PIECE_BYTES:
        raise ArchiveInvalid(f"the piece {member.name} is none")
    content = exactly(member.size, stream.some)
    if len(content) != member.size:
        raise ArchiveInvalid("it ends in the middle of a piece")
    return content


def _lines(plain: Readable) -> Iterator[bytes]:
    """The lines of a stream."""
    rest = b""
    while block := plain.read(BLOCK_BYTES):
        *whole, rest = (rest + bytes(block)).split(b"\n")
        yield from whole
    if rest:
        raise ArchiveInvalid("the index is damaged: it ends in the middle of a line")
