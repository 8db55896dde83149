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
from typing import Iterator, List, Optional, Tuple

from spotferry.agent.errors import Unreadable

_VANISHED = (errno.ENOENT, errno.ENOTDIR)
"""The entry is gone, or a directory above it."""

_OTHER_KIND = (errno.ELOOP, errno.ENXIO, errno.EINVAL)
"""A file became a link or a socket before it was opened, or a link something else before it was read."""

_LOOKS = 3
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


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


@contextmanager
def look(root: Path, path: str) -> Iterator[Optional[Found]]:
    """What is at a path below `root` now; None where there is nothing any more. Links are entries, and a pipe is waited
    for by nobody.

    Raises:
        Unreadable: it cannot be looked at.
    """
    found = _found(root, path)
    try:
        yield found
    finally:
        if found is not None and found.file is not None:
            found.file.close()


def _found(root: Path, path: str) -> Optional[Found]:
    for looks_left in reversed(range(_LOOKS)):
        try:
            return _look(root / path, path)
        except OSError as error:
            if error.errno in _VANISHED:
                return None
            if error.errno not in _OTHER_KIND or not looks_left:
                raise Unreadable(path, error) from error
    raise AssertionError("the last look returns or raises")


def _look(place: Path, path: str) -> Found:
    status = os.lstat(place)
    if stat.S_ISLNK(status.st_mode):
        return Found(status, link=os.readlink(place))  # noqa: PTH115  (kept as it is written)
    if not stat.S_ISREG(status.st_mode):
        return Found(status)
    descriptor = os.open(place, _OPEN)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return Found(status, file=EntryFile(descriptor, path))
    os.close(descriptor)
    return Found(status)


def listing(root: Path, below: str) -> List[Tuple[str, bool]]:
    """What a directory below `root` holds, by name, and which of it are directories; nothing where it has vanished, or
    is none any more. That `root` itself has is an error: nothing is no state of a work directory.

    Raises:
        Unreadable: it cannot be listed.
    """
    try:
        descriptor = os.open(root / below, _LIST | (os.O_NOFOLLOW if below else 0))
        try:
            with os.scandir(descriptor) as entries:
                return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        finally:
            os.close(descriptor)
    except OSError as error:
        if below and error.errno in (*_VANISHED, errno.ELOOP):
            return []
        raise Unreadable(below or ".", error) from error
