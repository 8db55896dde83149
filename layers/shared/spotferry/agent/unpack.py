"""Unpacks a compressed tar stream into an empty directory, and never writes outside it."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zlib
from pathlib import Path
from typing import IO, Callable, Dict, Optional, Set, Tuple, cast

from spotferry.agent.archive import forget_members
from spotferry.agent.clock import Check
from spotferry.agent.codec import BLOCK_BYTES, Bytes
from spotferry.agent.errors import ArchiveInvalid
from spotferry.agent.members import Readable, unzip

_ZEROS = bytes(BLOCK_BYTES)
_FEW_ZEROS = bytes(64)


def unpack(source: Readable, target: Path, owner: Optional[Tuple[int, int]], check: Check) -> None:
    """Unpack a compressed tar stream into the empty directory `target`.

    No entry may leave the directory by its name (absolute, `..`), by a link among its parents, or as a hard link to
    what is not in the archive; devices are refused. A symbolic link keeps its text, wherever it points (a virtual
    environment's interpreter is outside), since nothing is ever written through one. Long runs of zeros become holes.

    Args:
        source: the archive; it is read to its end.
        target: where to.
        owner: user and group that everything is to belong to; None leaves it to the agent's user.
        check: called for every block; may raise to give up.

    Raises:
        ArchiveInvalid: it is damaged, or holds what is refused.
        OSError: the disk is full, or the like.
    """
    unpacking = _Unpacking(target, owner, check)
    try:
        # not tarfile's own "r|gz", which unzips a block at once, however large it gets
        with unzip(source) as plain:
            stream = Forward(plain)
            with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r:") as tar:
                while (entry := tar.next()) is not None:
                    check()
                    unpacking.take(tar, entry, stream)
                    forget_members(tar)
            while plain.read(BLOCK_BYTES):  # the sum that tells whether all was whole is at the very end
                check()
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, UnicodeError) as error:
        raise ArchiveInvalid(f"the archive is damaged: {error}") from error
    unpacking.finish()


class Forward:
    """A stream as tarfile reads a file: it asks where it is, and skips forward only.

    Args:
        stream: read from its start.
    """

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._at = 0

    def tell(self) -> int:
        """How much was read."""
        return self._at

    def seek(self, to: int) -> int:
        """Skip to there.

        Raises:
            tarfile.StreamError: that was read already.
        """
        if to < self._at:
            raise tarfile.StreamError(f"byte {to} was read already")
        while self._at < to and self.some(to - self._at):
            pass
        return self._at

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer at the end."""
        pieces, left = [], size
        while left > 0 and (piece := self.some(left)):
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def some(self, size: int) -> Bytes:
        """At most so many bytes, as many as are there in one piece; empty at the end."""
        piece = self._stream.read(size)
        self._at += len(piece)
        return piece


class _Unpacking:
    """The entries of one archive, as they come."""

    def __init__(self, target: Path, owner: Optional[Tuple[int, int]], check: Check) -> None:
        self._target = target
        self._owner = owner
        self._check = check
        self._directories: Dict[str, Tuple[int, float]] = {}
        self._real: Set[str] = {""}
        self._files: Set[str] = set()

    def take(self, tar: tarfile.TarFile, entry: tarfile.TarInfo, stream: Forward) -> None:
        """Make one entry of an archive, whose stream stands before the entry's bytes."""
        path = self._inside(entry.name)
        if path == "":
            return
        self._make_parents(path)
        if entry.isdir():
            self._make_directory(path)
            self._directories[path] = (entry.mode, entry.mtime)
            return
        place = self._target / path
        if os.path.lexists(place) and (place.is_symlink() or not place.is_dir()):
            place.unlink()
        self._make(tar, entry, stream, place)

    def finish(self) -> None:
        """Give directories their modes and times, innermost first: until now they had to be open."""
        for path, (mode, mtime) in sorted(self._directories.items(), reverse=True):
            place = self._target / path
            self._own(place)
            place.chmod(mode & 0o7777)
            os.utime(place, (mtime, mtime))

    def _make(self, tar: tarfile.TarFile, entry: tarfile.TarInfo, stream: Forward, place: Path) -> None:
        if entry.issym():
            place.symlink_to(entry.linkname)
            self._own(place)
        elif entry.islnk():
            self._link(entry, place)
        elif entry.isfifo():
            os.mkfifo(place)
            self._settle(place, entry)
        elif entry.isreg():
            self._copy(_some_of(tar, entry, stream), entry.size, place)
            self._settle(place, entry)
            self._files.add(self._inside(entry.name))
        else:
            raise ArchiveInvalid(f"{entry.name}: neither a file, a directory nor a link; it is refused")

    def _inside(self, name: str) -> str:
        """The entry's path, normalised; "" is the directory itself."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts:
            raise ArchiveInvalid(f"{name}: it would be written outside the directory; it is refused")
        return "/".join(parts)

    def _make_parents(self, path: str) -> None:
        """Make the directories above an entry; a link among them is refused."""
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            self._make_directory("/".join(parts[:count]))

    def _make_directory(self, path: str) -> None:
        if path in self._real:
            return
        place = self._target / path
        if not os.path.lexists(place):
            place.mkdir(mode=0o755)
            self._own(place)
        elif not stat.S_ISDIR(place.lstat().st_mode):
            raise ArchiveInvalid(f"{path}: an earlier entry of the archive is no directory; it is refused")
        self._real.add(path)

    def _link(self, entry: tarfile.TarInfo, place: Path) -> None:
        goal = self._inside(entry.linkname)
        if goal not in self._files:
            raise ArchiveInvalid(f"{entry.name}: a hard link to {entry.linkname}, which is no file before it; refused")
        os.link(self._target / goal, place, follow_symlinks=False)
        self._files.add(self._inside(entry.name))

    def _copy(self, some: Callable[[int], Bytes], size: int, place: Path) -> None:
        with place.open("xb", buffering=0) as file:
            while size > 0:
                self._check()
                block = some(min(size, BLOCK_BYTES))
                if not block:
                    raise ArchiveInvalid(f"the archive is damaged: it ends in the middle of {place.name}")
                if block[: len(_FEW_ZEROS)] == _FEW_ZEROS and block == _ZEROS[: len(block)]:
                    file.seek(len(block), os.SEEK_CUR)
                else:
                    write_all(file, block)
                size -= len(block)
            file.truncate()

    def _settle(self, place: Path, entry: tarfile.TarInfo) -> None:
        self._own(place)
        place.chmod(entry.mode & 0o7777)
        os.utime(place, (entry.mtime, entry.mtime))

    def _own(self, place: Path) -> None:
        if self._owner:
            os.chown(place, *self._owner, follow_symlinks=False)


def _some_of(tar: tarfile.TarFile, entry: tarfile.TarInfo, stream: Forward) -> Callable[[int], Bytes]:
    """How to read a file's bytes: the stream stands before them, but those with holes are put together by tarfile."""
    return cast("IO[bytes]", tar.extractfile(entry)).read if entry.issparse() else stream.some


def write_all(file: io.FileIO, block: Bytes) -> None:
    """Write a block whole; the system may take less at a time."""
    rest = memoryview(block)
    while len(rest) > 0:
        rest = rest[file.write(rest) :]
