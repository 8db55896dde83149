"""A compressed stream made and read on several threads: members of one block each (`codec`), in order."""

from __future__ import annotations

import gzip
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import BinaryIO, Callable, Deque, List, Optional, Protocol, Type, cast

from spotferry.agent.clock import Check
from spotferry.agent.codec import BLOCK_BYTES, GZIP, LONGEST_MEMBER_BYTES, ZSTD, Bytes, Codec, Pieces
from spotferry.agent.errors import ArchiveInvalid

MOST_THREADS = 8
_AHEAD = 2
"""Blocks that wait beside those that the threads have: each is in memory, compressed and not."""


class Readable(Protocol):
    """As much of a file as a reader uses."""

    def read(self, size: int = -1) -> Bytes:
        """At most so many bytes; empty at the end."""
        ...


def threads() -> int:
    """How many threads compress or expand."""
    return max(1, min(os.cpu_count() or 1, MOST_THREADS))


class Zipper:
    """Compresses what is written to it, in order, and hands the members on from the writing thread.

    A context manager: leaving it without an error hands on the rest, leaving it with one throws the rest away.

    Args:
        out: gets the members, piece by piece.
        check: called for every block; may raise to give up.
        codec: how.
    """

    def __init__(self, out: Callable[[Bytes], None], check: Check, codec: Codec) -> None:
        self._out = out
        self._check = check
        self._codec = codec
        self._threads = threads()
        self._pool = ThreadPoolExecutor(self._threads, "zip")
        self._waiting: Deque[Callable[[], Pieces]] = deque()
        self._small: List[Bytes] = []
        self._small_bytes = 0

    def __enter__(self) -> Zipper:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        try:
            if kind is None:
                self._flush()
                while self._waiting:
                    self._hand_on()
        finally:
            self._pool.shutdown(cancel_futures=True)

    def write(self, data: bytes) -> None:
        """Take some of the stream. Whole blocks are members of their own, and are not copied; what is less is put
        together to whole ones, so that small files that are like one another shrink together.
        """
        rest = memoryview(data)
        if len(rest) >= BLOCK_BYTES:
            self._flush()
        while len(rest) >= BLOCK_BYTES:
            self._submit(data if len(data) == BLOCK_BYTES else rest[:BLOCK_BYTES])
            rest = rest[BLOCK_BYTES:]
        while rest:
            taken = rest[: BLOCK_BYTES - self._small_bytes]
            self._small.append(taken)
            self._small_bytes += len(taken)
            rest = rest[len(taken) :]
            if self._small_bytes == BLOCK_BYTES:
                self._flush()

    def _flush(self) -> None:
        if self._small:
            self._submit(b"".join(self._small))
            self._small, self._small_bytes = [], 0

    def _submit(self, block: Bytes) -> None:
        self._check()
        stored = self._codec.stored(block)
        if stored is None:
            self._waiting.append(self._pool.submit(self._codec.pack, block).result)
        else:
            self._waiting.append(lambda: stored)
        while len(self._waiting) > self._threads + _AHEAD:
            self._hand_on()

    def _hand_on(self) -> None:
        for piece in self._waiting.popleft()():
            self._out(piece)


class Plain(Readable, Protocol):
    """What a compressed stream holds; to be closed, which leaving it as a context manager does."""

    def __enter__(self) -> Plain:
        """Itself."""
        ...

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType], /
    ) -> None:
        """Close it."""
        ...


class _Front:
    """A stream of which the beginning was read already."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        self._rest = rest

    def some(self, size: int) -> Bytes:
        """The head first."""
        if self._head:
            given = self._head[:size]
            self._head = self._head[len(given) :]
            return given
        return self._rest.read(size)

    def read(self, size: int) -> bytes:
        """As `some`, for libraries that take nothing but bytes."""
        return bytes(self.some(size))


def exactly(size: int, some: Callable[[int], Bytes]) -> bytes:
    """So many bytes, or fewer at the end, of what gives some at a time."""
    pieces, left = [], size
    while left > 0 and (piece := some(left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def unzip(source: Readable) -> Plain:
    """The plain stream of a compressed one: of members as they are made here, or of gzip as any tool makes it.

    Reading it raises `ArchiveInvalid` where a member is damaged, and OSError, EOFError or zlib.error
    where a foreign stream is.
    """
    head = exactly(max(GZIP.head_bytes, ZSTD.head_bytes), source.read)
    again = _Front(head, source)
    for codec in (ZSTD, GZIP):
        if codec.length(head) is not None:
            return _Unzipper(again, codec)
    return gzip.GzipFile(fileobj=cast("BinaryIO", again))


class _Unzipper:
    """Reads members ahead of whoever reads it, and expands them on threads."""

    def __init__(self, source: _Front, codec: Codec) -> None:
        self._source = source
        self._codec = codec
        self._threads = threads()
        self._pool = ThreadPoolExecutor(self._threads, "unzip")
        self._waiting: Deque[Callable[[], Pieces]] = deque()
        self._pieces: Deque[Bytes] = deque()
        self._over = False

    def __enter__(self) -> _Unzipper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Throw away what nobody read."""
        self._pool.shutdown(cancel_futures=True)

    def read(self, size: int = -1) -> Bytes:
        """At most so many bytes, as many as one piece of a member has left; empty at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(BLOCK_BYTES), b""))
        while not self._pieces:
            self._read_ahead()
            if not self._waiting:
                return b""
            self._pieces.extend(filter(None, self._waiting.popleft()()))
        piece = self._pieces[0]
        if len(piece) <= size:
            return self._pieces.popleft()
        self._pieces[0] = memoryview(piece)[size:]
        return memoryview(piece)[:size]

    def _read_ahead(self) -> None:
        while not self._over and len(self._waiting) <= self._threads + _AHEAD:
            head = exactly(self._codec.head_bytes, self._source.some)
            if not head:
                self._over = True
                return
            length = self._codec.length(head)
            if length is None or length > LONGEST_MEMBER_BYTES:
                raise ArchiveInvalid("the archive is damaged: a block of it does not begin as it should")
            body = exactly(length, self._source.some)
            if len(body) != length:
                raise ArchiveInvalid("the archive is damaged: it ends in the middle of a block")
            self._waiting.append(self._block_of(body))

    def _block_of(self, body: bytes) -> Callable[[], Pieces]:
        shown = self._codec.shown(body)
        if shown is not None:
            return lambda: shown
        expanded = self._pool.submit(self._codec.expand, body)
        return lambda: (expanded.result(),)
