"""Which entries of the work directory patterns name: outputs, and paths of checkpoints."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath
from typing import Iterable, List, Optional, Set, Tuple

from spotferry.agent.archive import tree
from spotferry.agent.entries import VANISHED, steadily


def matching(root: Path, patterns: Iterable[str]) -> List[str]:
    """Entries below `root` that the patterns name, in order; a directory brings all that it holds.

    Patterns are paths relative to the work directory; `*`, `?`, `[...]` and `**` are as in a shell's globs. What
    matches nothing adds nothing: a job that failed sends what there is. What is named through a link comes under its
    own path, and the link beside it; what is outside comes not at all.

    Raises:
        ValueError: a pattern leaves the directory.
    """
    way = cache(lambda directory: _way(root.resolve(), directory))
    found: Set[str] = set()
    for pattern in patterns:
        parts = PurePosixPath(pattern).parts
        if ".." in parts or pattern.startswith("/"):
            raise ValueError(f"outputs: {pattern!r} leaves the work directory")
        for path in _matched(root, PurePosixPath(*parts)):
            own, links = way(path.parent)
            if own is not None:
                whole = str(own / path.name) if path.parts else ""
                found.update((*links, whole, *tree(root, whole)))
    return sorted(found - {""})


def _matched(root: Path, pattern: PurePosixPath) -> List[PurePosixPath]:
    """Entries that one pattern names; "." is all of them."""
    if not pattern.parts:
        return [pattern]
    return steadily(lambda: [PurePosixPath(path.relative_to(root)) for path in root.glob(str(pattern))], VANISHED)


def _way(home: Path, directory: PurePosixPath) -> Tuple[Optional[PurePosixPath], List[str]]:
    """The path of a directory without links in it, None where it is outside; and of each link that was in it."""
    own = _inside(home, (home / directory).resolve())
    named = [(home / place).parent.resolve() / place.name for place in (directory, *directory.parents) if place.parts]
    links = [_inside(home, place) for place in named if place.is_symlink()]
    return own, [str(link) for link in links if link is not None]


def _inside(home: Path, place: Path) -> Optional[PurePosixPath]:
    """Its path below `home`; None where it is outside."""
    return PurePosixPath(place.relative_to(home)) if home == place or home in place.parents else None
