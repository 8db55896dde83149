"""Entries of a directory that somebody may change while it is read: what has vanished is no entry any more, what became
another kind is what it is now, and what cannot be read is named.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Tuple, TypeVar

from spotferry.agent.directories import Directories
from spotferry.agent.errors import Unreadable
from spotferry.agent.holes import Segment, segments_of

T = TypeVar("T")

VANISHED = (errno.ENOENT, errno.ENOTDIR)
"""The entry is gone, or a directory above it is, or is none any more."""

_OTHER_KIND = (errno.ELOOP, errno.ENXIO, errno.EINVAL)
"""A file became a link or a socket before it was opened, or a link something else before it was read."""

_LOOKS = 5
"""Once is chance; whoever changes an entry within each of so many looks would do so for ever."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class EntryFile(io.FileIO):
    """A file that is read; what goes wrong names its path.

    Args:
        descriptor: of the open file; closed with this.
        path: for messages.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        super().__init__(descriptor, "rb")
        self._path = path

    def read(self, size: Optional[int] = -1) -> bytes:
        """At most so many bytes; empty at the end.

        Raises:
            Unreadable: it cannot be read.
        """
        try:
            return super().read(-1 if size is None else size) or b""
        except OSError as error:
            raise Unreadable(self._path, error) from error

    def segments(self, status: os.stat_result) -> Optional[List[Segment]]:
        """What the file has beside holes, of the size in its status; None where its holes are not worth it.

        Raises:
            Unreadable: it cannot be looked at.
        """
        try:
            found = segments_of(self.fileno(), status)
            self.seek(0)
        except OSError as error:
            raise Unreadable(self._path, error) from error
        return found


@dataclass(frozen=True)
class Found:
    """What is at a path.

    Attributes:
        status: of it; of an open file its own.
        link: where a symbolic link leads; "" for anything else.
        file: a regular file, open; None for anything else.
    """

    status: os.stat_result
    link: str = ""
    file: Optional[EntryFile] = None


class Entries:
    """What is below a directory; a context manager. No link is followed but the directory's own path.

    Args:
        root: the directory. That it has vanished is an error: nothing is no state of a work directory.
    """

    def __init__(self, root: Path) -> None:
        self._directories = Directories(root)

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *_: object) -> None:
        self._directories.__exit__()

    @contextmanager
    def look(self, path: str) -> Iterator[Optional[Found]]:
        """What is at a path now; None where there is nothing any more. Links are entries, and a pipe is waited for by
        nobody.

        Raises:
            Unreadable: it cannot be looked at.
        """
        found = self._found(path)
        try:
            yield found
        finally:
            if found is not None and found.file is not None:
                found.file.close()

    def listing(self, below: str) -> List[Tuple[str, bool]]:
        """What a directory holds, by name, and which of it are directories; nothing where it has vanished, or is none
        any more. "" is the root.

        Raises:
            Unreadable: it cannot be listed.
        """
        self._open_root()
        try:
            parent, name = self._directories.above(below)
            return _listed(parent, name or ".")
        except OSError as error:
            if below and error.errno in (*VANISHED, errno.ELOOP):
                return []
            raise Unreadable(below or ".", error) from error

    def _found(self, path: str) -> Optional[Found]:
        self._open_root()
        try:
            parent, name = self._directories.above(path)
            return steadily(lambda: _look(parent, name, path), _OTHER_KIND)
        except OSError as error:
            if error.errno in VANISHED:
                return None
            raise Unreadable(path, error) from error

    def _open_root(self) -> None:
        try:
            self._directories.root()
        except OSError as error:
            raise Unreadable(".", error) from error


def steadily(look: Callable[[], T], moving: Tuple[int, ...]) -> T:
    """What a look shows, taken again while it fails because what it looks at changes meanwhile.

    Args:
        look: may be called several times.
        moving: the numbers of the errors that say so.

    Raises:
        OSError: another one, or as often as is looked.
    """
    for _ in range(_LOOKS - 1):
        try:
            return look()
        except OSError as error:
            if error.errno not in moving:
                raise
    return look()


def _look(parent: int, name: str, path: str) -> Found:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return Found(status, link=os.readlink(name, dir_fd=parent))
    if not stat.S_ISREG(status.st_mode):
        return Found(status)
    descriptor = os.open(name, _OPEN, dir_fd=parent)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return Found(status, file=EntryFile(descriptor, path))
    os.close(descriptor)
    return Found(status)


def _listed(parent: int, name: str) -> List[Tuple[str, bool]]:
    descriptor = os.open(name, _LIST, dir_fd=parent)
    try:
        with os.scandir(descriptor) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    finally:
        os.close(descriptor)
