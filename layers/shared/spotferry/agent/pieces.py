"""What a checkpoint of the `paths` engine consists of: entries made of pieces, and the packs that hold the pieces.

A file is cut at fixed places; a piece is known by the SHA-256 of its bytes. Pieces that an earlier checkpoint has are
not sent again: the part that holds them (a *pack*, a tar whose entries are pieces under their digests) is a part of
the new checkpoint too. Which files there are and of which pieces is in the index, one JSON object a line: a
head with the packs' names, then an entry each.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from spotferry.agent.broker import Json
from spotferry.agent.errors import ArchiveInvalid

INDEX_PART = "index.jsonl"
"""How the part's name begins; how it is compressed follows."""

PIECE_BYTES = 1024 * 1024
"""The length of a piece; longer in a file that would have more than MANY_PIECES of them."""

LONGEST_PIECE_BYTES = 8 * 1024 * 1024
"""A piece is in memory while it is looked at."""

MANY_PIECES = 2048

MOST_PACKS = 16
"""A checkpoint has at most so many: beyond that, those with the least in use are sent anew."""

_WORTH_KEEPING = 0.5
"""A pack of which less is in use is sent anew, so that no more than double is ever stored or fetched."""

_OLD_SECONDS = 7 * 24 * 3600
"""A pack that was sent so long ago is sent anew: the bucket deletes objects by their age."""

_MOST = 2**63 - 1
"""Of bytes and of nanoseconds: what a system counts."""

ZEROS = ""
"""Stands for a piece of zeros, which is in no pack."""

Identity = Tuple[int, int, int, int]
"""Size, inode, and times of the last change of bytes and of anything: while they stay, so do the bytes."""


def identity_of(status: os.stat_result) -> Identity:
    """What tells a file that was not touched since."""
    return (status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


def piece_bytes(size: int) -> int:
    """How long the pieces of a file of this size are: a power of two."""
    length = PIECE_BYTES
    while size > length * MANY_PIECES and length < LONGEST_PIECE_BYTES:
        length *= 2
    return length


@dataclass(frozen=True)
class Pack:
    """A part that holds pieces.

    Attributes:
        name: of the part.
        sha256, size_bytes: of the part.
        pieces_bytes: of all the pieces in it, in use or not.
        made_at: when it was sent, in seconds since 1970.
    """

    name: str
    sha256: str
    size_bytes: int
    pieces_bytes: int
    made_at: float


@dataclass(frozen=True)
class Entry:
    """One file, directory, link or pipe.

    Attributes:
        path: below the work directory.
        kind: `f`, `d`, `l` (symbolic link), `h` (hard link), `p`.
        mode, mtime_ns, size: of it.
        link: where a link leads.
        pieces: digests of a file's pieces, in order; ZEROS for a hole.
    """

    path: str
    kind: str
    mode: int = 0
    mtime_ns: int = 0
    size: int = 0
    link: str = ""
    pieces: Tuple[str, ...] = ()

    def line(self) -> Json:
        """As the index has it."""
        return {
            "path": self.path,
            "kind": self.kind,
            "mode": self.mode,
            "mtime_ns": self.mtime_ns,
            "size": self.size,
            "link": self.link,
            "pieces": list(self.pieces),
        }

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Entry:  # Any: JSON
        """An entry of an index.

        Raises:
            ArchiveInvalid: it is none, or would be outside the work directory.
        """
        try:
            entry = cls(
                path=str(given["path"]),
                kind=str(given["kind"]),
                mode=int(given["mode"]),
                mtime_ns=int(given["mtime_ns"]),
                size=int(given["size"]),
                link=str(given["link"]),
                pieces=tuple(str(digest) for digest in given["pieces"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ArchiveInvalid(f"the index has an entry without {error}") from error
        inside(entry.path)
        if entry.kind == "h":
            inside(entry.link)
        if entry.kind not in tuple("fdlhp") or len(entry.pieces) != -(-entry.size // piece_bytes(entry.size)):
            raise ArchiveInvalid(f"{entry.path}: the index does not say what it is")
        if not 0 <= entry.size <= _MOST or not -_MOST <= entry.mtime_ns <= _MOST or "\0" in entry.link:
            raise ArchiveInvalid(f"{entry.path}: the index does not say what it is")
        return entry


def inside(path: str) -> str:
    """The path, if it leads to a place below a directory.

    Raises:
        ArchiveInvalid: it does not.
    """
    parts = path.split("/")
    if not path or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise ArchiveInvalid(f"{path!r} would be outside the work directory; it is refused")
    return path


@dataclass
class Known:
    """What the newest checkpoint holds, as far as the next one can build on it.

    Attributes:
        number: of the checkpoint.
        packs: in the order of its index.
        holder: the pack of each piece, by its place among `packs`.
        files: identity and pieces of each file, by path.
        lengths: of each piece, for telling how much of a pack is in use.
    """

    number: int
    packs: List[Pack] = field(default_factory=list)
    holder: Dict[str, int] = field(default_factory=dict)
    files: Dict[str, Tuple[Identity, Tuple[str, ...]]] = field(default_factory=dict)
    lengths: Dict[str, int] = field(default_factory=dict)

    def pieces_of(self, path: str, identity: Identity) -> Optional[Tuple[str, ...]]:
        """The pieces of a file that was not touched since, if all of them are still to be had."""
        known = self.files.get(path)
        if known is None or known[0] != identity:
            return None
        return known[1] if all(piece == ZEROS or piece in self.holder for piece in known[1]) else None

    def worth_keeping(self, now: float) -> Known:
        """The same without packs that are not worth it: their pieces count as unknown.

        Args:
            now: in seconds since 1970.
        """
        used: Counter[int] = Counter()
        for piece, pack in self.holder.items():
            used[pack] += self.lengths[piece]
        young = (n for n, pack in enumerate(self.packs) if now - pack.made_at < _OLD_SECONDS)
        kept = [n for n in young if used[n] and used[n] >= _WORTH_KEEPING * self.packs[n].pieces_bytes]
        kept = sorted(sorted(kept, key=lambda n: used[n], reverse=True)[: MOST_PACKS - 1])
        place = {old: new for new, old in enumerate(kept)}
        holder = {piece: place[pack] for piece, pack in self.holder.items() if pack in place}
        return Known(self.number, [self.packs[n] for n in kept], holder, self.files, self.lengths)


def piece_lengths(entries: Iterable[Tuple[int, Tuple[str, ...]]]) -> Dict[str, int]:
    """How long each piece is, by the size and the pieces of the files that are made of them."""
    lengths: Dict[str, int] = {}
    for size, pieces in entries:
        length = piece_bytes(size)
        for number, piece in enumerate(pieces):
            lengths[piece] = min(length, size - number * length)
    return lengths


def kind_of(status: os.stat_result) -> str:
    """The letter of an entry's kind; "" for what no checkpoint holds."""
    tests = (("f", stat.S_ISREG), ("d", stat.S_ISDIR), ("l", stat.S_ISLNK), ("p", stat.S_ISFIFO))
    return next((letter for letter, test in tests if test(status.st_mode)), "")
