"""Which entries of the work directory patterns name: outputs, and paths of checkpoints."""

from __future__ import annotations

import errno
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Iterable, List, NamedTuple, Optional, Set, Tuple

from spotferry.agent.archive import tree
from spotferry.agent.console import say
from spotferry.agent.entries import VANISHED, steadily

_ANY_DIRECTORIES = "**"

_MOST_STEPS = 100
"""The library that matches goes deeper into the stack for each; job files with more are refused."""


class Matched(NamedTuple):
    """What patterns name.

    Attributes:
        paths: the entries, each once, a directory right before what it holds.
        missed: the patterns that name nothing.
    """

    paths: List[str]
    missed: List[str]


def matching(root: Path, patterns: Iterable[str]) -> Matched:
    """Entries below `root` that the patterns name; a directory brings all that it holds.

    Patterns are paths relative to the work directory; `*`, `?`, `[...]` and `**` are as in a shell's globs. What
    matches nothing adds nothing, for a job that failed sends what there is, and neither does what is no such pattern.
    What is named through a link comes under its own path, and the link beside it; what is outside comes not at all.
    """
    way = cache(lambda directory: _way(root.resolve(), directory))
    found: Set[str] = set()
    missed: List[str] = []
    for pattern in patterns:
        inside = [(path, own, links) for path in _matched(root, pattern) for own, links in [way(path.parent)] if own]
        for path, own, links in inside:
            found.update(links)
            whole = str(own / path.name) if path.parts else ""
            if whole not in found:  # what it holds was found with it
                found.update((whole, *tree(root, whole)))
        if not inside:
            missed.append(pattern)
    return Matched(sorted(found - {""}, key=lambda path: path.split("/")), missed)


def _matched(root: Path, pattern: str) -> List[PurePosixPath]:
    """Entries that one pattern names; "." is all of them."""
    fault = _fault(pattern)
    if fault:
        say(f"{pattern!r} names nothing: it {fault}")
        return []
    steps = list(PurePosixPath(pattern).parts)
    is_whole = steps[-1:] == [_ANY_DIRECTORIES]
    while steps[-1:] == [_ANY_DIRECTORIES]:  # what a directory holds comes with it
        steps.pop()
    if not steps:
        return [PurePosixPath()]
    named = _globbed(root, PurePosixPath(*steps))
    if not is_whole:
        return named
    return [path for path in named if (root / path).is_dir()] + _globbed(root, PurePosixPath(*steps, "*"))


def _fault(pattern: str) -> str:
    """Why it cannot be matched; the broker refuses such patterns, but jobs may be older than that."""
    steps = PurePosixPath(pattern).parts
    if ".." in steps or pattern.startswith("/"):
        return "leaves the work directory"
    if any(_ANY_DIRECTORIES in step and step != _ANY_DIRECTORIES for step in steps):
        return f"has {_ANY_DIRECTORIES} beside other characters"
    return "has too many directories" if len(steps) > _MOST_STEPS else ""


def _globbed(root: Path, pattern: PurePosixPath) -> List[PurePosixPath]:
    try:
        return steadily(lambda: [PurePosixPath(path.relative_to(root)) for path in root.glob(str(pattern))], VANISHED)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # no entry has such a name
            return []
        raise


def _way(home: Path, directory: PurePosixPath) -> Tuple[Optional[PurePosixPath], List[str]]:
    """The path of a directory without links in it, None where it is outside; and of each link that was in it."""
    own = _inside(home, (home / directory).resolve())
    named = [(home / place).parent.resolve() / place.name for place in (directory, *directory.parents) if place.parts]
    links = [_inside(home, place) for place in named if place.is_symlink()]
    return own, [str(link) for link in links if link is not None]


def _inside(home: Path, place: Path) -> Optional[PurePosixPath]:
    """Its path below `home`; None where it is outside."""
    return PurePosixPath(place.relative_to(home)) if home == place or home in place.parents else None
