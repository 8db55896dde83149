"""Which files of the work directory are outputs."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Iterable, List, Set

from spotferry.agent.archive import tree

_LOOKS = 5


def matching(root: Path, patterns: Iterable[str]) -> List[str]:
    """Entries below `root` that the patterns name, in order; a directory brings all that it holds.

    Patterns are paths relative to the work directory; `*`, `?`, `[...]` and `**` are as in a shell's globs. What
    matches nothing adds nothing: a job that failed sends what there is.

    Raises:
        ValueError: a pattern leaves the directory.
    """
    found: Set[str] = set()
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if ".." in parts or pattern.startswith("/"):
            raise ValueError(f"outputs: {pattern!r} leaves the work directory")
        for path in _matched(root, PurePosixPath(*parts)):
            found.update(_whole(root, path))
    return sorted(path for path in found if _is_inside(root, path))


def _matched(root: Path, pattern: PurePosixPath) -> List[str]:
    """Entries that one pattern names; "." is all of them."""
    if not pattern.parts:
        return list(tree(root))
    for looks_left in reversed(range(_LOOKS)):
        try:
            return [str(path.relative_to(root)) for path in root.glob(str(pattern))]
        except (FileNotFoundError, NotADirectoryError):  # a directory vanished before it was listed
            if not looks_left:
                raise
    raise AssertionError("the last look returns or raises")


def _whole(root: Path, path: str) -> List[str]:
    """An entry with all that it holds."""
    place = root / path
    below = list(tree(root, path)) if place.is_dir() and not place.is_symlink() else []
    return [path, *below]


def _is_inside(root: Path, path: str) -> bool:
    """Not reached through a link that leads out of the work directory."""
    parent = (root / path).parent.resolve()
    home = root.resolve()
    return parent == home or home in parent.parents
