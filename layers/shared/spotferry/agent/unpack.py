"""Unpacks a compressed tar stream into an empty directory, and never writes outside it."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Dict, List, Optional, Set, Tuple, cast

from spotferry.agent.clock import Check
from spotferry.agent.codec import BLOCK_BYTES, Bytes
from spotferry.agent.directories import Directories
from spotferry.agent.errors import ArchiveInvalid
from spotferry.agent.forward import DAMAGED, Forward
from spotferry.agent.holes import Segment
from spotferry.agent.members import Readable, unzip

_ZEROS = bytes(BLOCK_BYTES)
_FEW_ZEROS = bytes(64)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC

Place = Tuple[int, str]
"""A directory's descriptor, and a name in it."""


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
    try:
        # not tarfile's own "r|gz", which unzips a block at once, however large it gets
        with unzip(source) as plain, Directories(target) as directories:
            unpacking = _Unpacking(directories, Forward(plain), owner, check)
            unpacking.take_all()
            while plain.read(BLOCK_BYTES):  # the sum that tells whether all was whole is at the very end
                check()
            unpacking.finish()
    except DAMAGED as error:
        raise ArchiveInvalid(f"the archive is damaged: {error}") from error


class _Unpacking:
    """The entries of one archive, as they come."""

    def __init__(
        self, directories: Directories, stream: Forward, owner: Optional[Tuple[int, int]], check: Check
    ) -> None:
        self._directories = directories
        self._stream = stream
        self._owner = owner
        self._check = check
        self._made: Dict[str, Tuple[int, float]] = {}
        self._real: Set[str] = {""}
        self._files: Set[str] = set()

    def take_all(self) -> None:
        """Make the entries."""
        with self._stream.opened() as tar:
            while (entry := self._stream.next_of(tar)) is not None:
                self._check()
                self._take(entry)

    def finish(self) -> None:
        """Give directories their modes and times, innermost first: until now they had to be open."""
        for path, (mode, mtime) in sorted(self._made.items(), reverse=True):
            self._settle(self._directories.above(path), mode, mtime)

    def _take(self, entry: tarfile.TarInfo) -> None:
        path = _inside(entry.name)
        if path == "":
            return
        self._make_parents(path)
        if entry.isdir():
            self._make_directory(path)
            self._made[path] = (entry.mode, entry.mtime)
            return
        place = self._directories.above(path)
        mode = _mode(place)
        if mode and not stat.S_ISDIR(mode):
            os.unlink(place[1], dir_fd=place[0])
        self._make(entry, path, place)

    def _make(self, entry: tarfile.TarInfo, path: str, place: Place) -> None:
        parent, name = place
        if entry.issym():
            os.symlink(entry.linkname, name, dir_fd=parent)
            self._own(place)
        elif entry.islnk():
            self._link(entry, path)
        elif entry.isfifo():
            os.mkfifo(name, dir_fd=parent)
            self._settle(place, entry.mode, entry.mtime)
        elif entry.isreg():
            self._copy(entry, place)
            self._settle(place, entry.mode, entry.mtime)
            self._files.add(path)
        else:
            raise ArchiveInvalid(f"{entry.name}: neither a file, a directory nor a link; it is refused")

    def _make_parents(self, path: str) -> None:
        """Make the directories above an entry; a link among them is refused."""
        parent = path.rpartition("/")[0]
        if parent not in self._real:
            at = -1
            while (at := parent.find("/", at + 1)) >= 0:
                self._make_directory(parent[:at])
            self._make_directory(parent)

    def _make_directory(self, path: str) -> None:
        if path in self._real:
            return
        place = self._directories.above(path)
        mode = _mode(place)
        if not mode:
            os.mkdir(place[1], mode=0o755, dir_fd=place[0])
            self._own(place)
        elif not stat.S_ISDIR(mode):
            raise ArchiveInvalid(f"{path}: an earlier entry of the archive is no directory; it is refused")
        self._real.add(path)

    def _link(self, entry: tarfile.TarInfo, path: str) -> None:
        goal = _inside(entry.linkname)
        if goal not in self._files:
            raise ArchiveInvalid(f"{entry.name}: a hard link to {entry.linkname}, which is no file before it; refused")
        parent, name = self._directories.above(goal)
        held = os.dup(parent)  # the next call may close it
        try:
            place = self._directories.above(path)
            os.link(name, place[1], src_dir_fd=held, dst_dir_fd=place[0], follow_symlinks=False)
        finally:
            os.close(held)
        self._files.add(path)

    def _copy(self, entry: tarfile.TarInfo, place: Place) -> None:
        """The bytes of a file, before which the stream stands."""
        descriptor = os.open(place[1], _NEW_FILE, 0o666, dir_fd=place[0])
        with io.FileIO(descriptor, "wb") as file:
            for at, size in _segments(entry):
                file.seek(at)
                self._copy_segment(file, size, entry.name)
            file.truncate(entry.size)

    def _copy_segment(self, file: io.FileIO, size: int, name: str) -> None:
        while size > 0:
            self._check()
            block = self._stream.some(min(size, BLOCK_BYTES))
            if not block:
                raise ArchiveInvalid(f"the archive is damaged: it ends in the middle of {name}")
            write_or_skip(file, block)
            size -= len(block)

    def _settle(self, place: Place, mode: int, mtime: float) -> None:
        """Owner, mode and time of what is no link."""
        parent, name = place
        self._own(place)
        os.chmod(name, mode & 0o7777, dir_fd=parent)
        os.utime(name, (mtime, mtime), dir_fd=parent)

    def _own(self, place: Place) -> None:
        if self._owner:
            os.chown(place[1], *self._owner, dir_fd=place[0], follow_symlinks=False)


def _inside(name: str) -> str:
    """An entry's path, normalised; "" is the directory itself."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts:
        raise ArchiveInvalid(f"{name}: it would be written outside the directory; it is refused")
    return "/".join(parts)


def _mode(place: Place) -> int:
    """Of what is there, a link itself; 0 where there is nothing."""
    try:
        return os.stat(place[1], dir_fd=place[0], follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def _is_zeros(block: Bytes) -> bool:
    """Whether it is to be a hole; only bytes are compared as fast as they are read."""
    return block[: len(_FEW_ZEROS)] == _FEW_ZEROS[: len(block)] and bytes(block) == _ZEROS[: len(block)]


def _segments(entry: tarfile.TarInfo) -> List[Segment]:
    """What the archive has of a file: all of it, or what is between its holes.

    Raises:
        ArchiveInvalid: no file can be like that.
    """
    segments = cast("List[Segment]", entry.sparse) if entry.issparse() else [(0, entry.size)]
    end = 0
    for at, size in segments:
        if at < end or size < 0 or at + size > entry.size:
            raise ArchiveInvalid(f"{entry.name}: what its header says of its size and holes cannot be; it is refused")
        end = at + size
    return segments


def write_or_skip(file: io.FileIO, block: Bytes) -> None:
    """Write a block whole, of which the system may take less at a time; of zeros, leave a hole."""
    if _is_zeros(block):
        file.seek(len(block), os.SEEK_CUR)
        return
    rest = memoryview(block)
    while len(rest) > 0:
        rest = rest[file.write(rest) :]
