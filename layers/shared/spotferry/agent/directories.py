"""The directories below one root, walked by their descriptors: whoever puts a link where one was leads nobody astray,
and how long the path to one is does not matter.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from pathlib import Path
from typing import Deque, Optional, Tuple

_ROOT = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _ROOT | os.O_NOFOLLOW

_MOST_OPEN = 64
"""So deep a tree costs one step for each directory in turn; a deeper one is walked anew from its root now and then, and
the descriptors of the machine suffice for it.
"""


class Directories:
    """Where entries below a root are; a context manager.

    Paths that come in the order of their tree cost little: what is open of the way to the last one is used again.

    Args:
        root: itself may be a link.
    """

    def __init__(self, root: Path) -> None:
        self._path = root
        self._root: Optional[int] = None
        self._way: Deque[Tuple[str, int]] = deque()

    def __enter__(self) -> Directories:
        return self

    def __exit__(self, *_: object) -> None:
        while self._way:
            os.close(self._way.pop()[1])
        if self._root is not None:
            os.close(self._root)
            self._root = None

    def root(self) -> int:
        """The root's descriptor; good until the end of this.

        Raises:
            OSError: there is no such directory.
        """
        if self._root is None:
            self._root = os.open(self._path, _ROOT)
        return self._root

    def above(self, path: str) -> Tuple[int, str]:
        """The descriptor of the directory that an entry is in, good until the next call, and the entry's name there.

        Raises:
            OSError: ENOENT or ENOTDIR where no such directory is there any more, also where it became a link.
        """
        directory, _, name = path.rpartition("/")
        while self._way and not _leads_to(self._way[-1][0], directory):
            os.close(self._way.pop()[1])
        at, descriptor = self._way[-1] if self._way else ("", self.root())
        for step in filter(None, directory[len(at) :].split("/")):
            descriptor = _opened(step, descriptor)
            at = f"{at}/{step}" if at else step
            self._way.append((at, descriptor))
            if len(self._way) > _MOST_OPEN:
                os.close(self._way.popleft()[1])
        return descriptor, name


def _opened(name: str, parent: int) -> int:
    try:
        return os.open(name, _BELOW, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ELOOP:  # what some kernels say of a link
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from error
        raise


def _leads_to(way: str, directory: str) -> bool:
    return directory == way or directory.startswith(way + "/")
