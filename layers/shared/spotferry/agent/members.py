"""A compressed stream made and read on several threads: members of one block each, which say how long they are.

Any zstd or gzip tool reads such a stream. Before each zstd frame stands a skippable frame with its length, as pzstd
writes it (RFC 8878, 3.1.2); a gzip member has its length in an extra field of its header (RFC 1952, 2.3.1.1). So a
reader who knows it can hand whole members to threads; both libraries let go of the interpreter's lock.
"""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import BinaryIO, Callable, Deque, List, Optional, Protocol, Tuple, Type, Union, cast

from spotferry.agent import zstd
from spotferry.agent.clock import Check
from spotferry.agent.errors import ArchiveInvalid

BLOCK_BYTES = 512 * 1024
"""How much of the stream one member holds; the last may hold less."""

MOST_THREADS = 8
"""Two blocks and their compressed forms are in memory for each."""

_LARGE_BYTES = BLOCK_BYTES // 4
_LEVEL = 1
_SAMPLE_BYTES = 4096
_SAMPLES = 4
_WORTH_IT = 0.9
"""A block whose samples do not shrink below this share is stored as it is: random weights cost no time."""

_GZIP_HEAD = struct.Struct("<4sIBBHccHI")
_GZIP_TAIL = struct.Struct("<II")
_GZIP_MAGIC = b"\x1f\x8b\x08\x04"
_UNKNOWN_SYSTEM = 255
_EXTRA_BYTES = 8
_ZSTD_HEAD = struct.Struct("<III")
_ZSTD_SKIPPABLE = 0x184D2A50
_LONGEST_MEMBER = BLOCK_BYTES + 64 * 1024

Bytes = Union[bytes, memoryview]


class Readable(Protocol):
    """As much of a file as a reader uses."""

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; empty at the end."""
        ...


@dataclass(frozen=True)
class Codec:
    """One way to compress.

    Attributes:
        suffix: of a file so compressed.
        head_bytes: how long the head of a member is.
        length: how much follows a head; None where it is no head of this codec's.
        pack: a block's member, in pieces: joining them would cost a copy.
        expand: the block of what follows a head.
    """

    suffix: str
    head_bytes: int
    length: Callable[[bytes], Optional[int]]
    pack: Callable[[bytes], Tuple[bytes, ...]]
    expand: Callable[[bytes], bytes]


def _gzip_length(head: bytes) -> Optional[int]:
    if len(head) < _GZIP_HEAD.size:
        return None
    magic, _, _, _, extra_bytes, first, second, _, length = _GZIP_HEAD.unpack(head[: _GZIP_HEAD.size])
    ours = (magic, extra_bytes, first, second) == (_GZIP_MAGIC, _EXTRA_BYTES, b"S", b"F")
    return int(length) - _GZIP_HEAD.size if ours and length >= _GZIP_HEAD.size + _GZIP_TAIL.size else None


def _gzip_pack(block: bytes) -> Tuple[bytes, ...]:
    packer = zlib.compressobj(_LEVEL if _shrinks(block) else 0, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = (packer.compress(block), packer.flush())
    size = _GZIP_HEAD.size + sum(map(len, body)) + _GZIP_TAIL.size
    head = _GZIP_HEAD.pack(_GZIP_MAGIC, 0, 0, _UNKNOWN_SYSTEM, _EXTRA_BYTES, b"S", b"F", 4, size)
    return (head, *body, _GZIP_TAIL.pack(zlib.crc32(block), len(block)))


def _gzip_expand(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        block = unpacker.decompress(memoryview(body)[: -_GZIP_TAIL.size], BLOCK_BYTES)
    except zlib.error as error:
        raise ArchiveInvalid(f"the archive is damaged: {error}") from error
    if _GZIP_TAIL.unpack(body[-_GZIP_TAIL.size :]) != (zlib.crc32(block), len(block)):
        raise ArchiveInvalid("the archive is damaged: a block's sum is not that of its bytes")
    return block


def _shrinks(block: bytes) -> bool:
    """Whether compressing is worth its time, by samples from all over the block."""
    if len(block) <= _SAMPLES * _SAMPLE_BYTES:
        return True
    step = (len(block) - _SAMPLE_BYTES) // (_SAMPLES - 1)
    sample = b"".join(block[at : at + _SAMPLE_BYTES] for at in range(0, step * _SAMPLES, step))
    return len(zlib.compress(sample, _LEVEL)) < len(sample) * _WORTH_IT


def _zstd_length(head: bytes) -> Optional[int]:
    if len(head) < _ZSTD_HEAD.size:
        return None
    magic, size, length = _ZSTD_HEAD.unpack(head[: _ZSTD_HEAD.size])
    return int(length) if (magic, size) == (_ZSTD_SKIPPABLE, 4) else None


def _zstd_pack(block: bytes) -> Tuple[bytes, ...]:
    frame = zstd.needed().compress(block)
    return (_ZSTD_HEAD.pack(_ZSTD_SKIPPABLE, 4, len(frame)), frame)


def _zstd_expand(body: bytes) -> bytes:
    return zstd.needed().expand(body, BLOCK_BYTES)


GZIP = Codec(".gz", _GZIP_HEAD.size, _gzip_length, _gzip_pack, _gzip_expand)
"""Everybody reads it: for what leaves the machines."""

ZSTD = Codec(".zst", _ZSTD_HEAD.size, _zstd_length, _zstd_pack, _zstd_expand)


def fastest() -> Codec:
    """The faster one that works here: for what only agents read."""
    return ZSTD if zstd.library() else GZIP


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

    def __init__(self, out: Callable[[bytes], None], check: Check, codec: Codec) -> None:
        self._out = out
        self._check = check
        self._codec = codec
        self._threads = threads()
        self._pool = ThreadPoolExecutor(self._threads, "zip")
        self._waiting: Deque[Future[Tuple[bytes, ...]]] = deque()
        self._small: List[bytes] = []
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
            for future in self._waiting:
                future.cancel()
            self._pool.shutdown()

    def write(self, data: bytes) -> None:
        """Take some of the stream; what is large is a member of its own, and is not copied."""
        if len(data) > BLOCK_BYTES:
            for at in range(0, len(data), BLOCK_BYTES):
                self.write(data[at : at + BLOCK_BYTES])
            return
        if len(data) >= _LARGE_BYTES or self._small_bytes + len(data) > BLOCK_BYTES:
            self._flush()
        if len(data) >= _LARGE_BYTES:
            self._submit(data)
        elif data:
            self._small.append(data)
            self._small_bytes += len(data)

    def _flush(self) -> None:
        if self._small:
            self._submit(b"".join(self._small))
            self._small, self._small_bytes = [], 0

    def _submit(self, block: bytes) -> None:
        self._check()
        self._waiting.append(self._pool.submit(self._codec.pack, block))
        while len(self._waiting) > 2 * self._threads:
            self._hand_on()

    def _hand_on(self) -> None:
        for piece in self._waiting.popleft().result():
            self._out(piece)


class _Front:
    """A stream of which the beginning was read already."""

    def __init__(self, head: bytes, rest: Readable) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        """The head first."""
        if self._head:
            given = self._head if size < 0 else self._head[:size]
            self._head = self._head[len(given) :]
            return given
        return self._rest.read(size)

    def exactly(self, size: int) -> bytes:
        """So many bytes, or fewer at the end."""
        pieces, left = [], size
        while left > 0 and (piece := self.read(left)):
            pieces.append(piece)
            left -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def unzip(source: Readable) -> BinaryIO:
    """The plain stream of a compressed one: of members as they are made here, or of gzip as any tool makes it.

    To be closed. Reading it raises `ArchiveInvalid` where a member is damaged, and OSError, EOFError or zlib.error
    where a foreign stream is.
    """
    head = _Front(b"", source).exactly(max(GZIP.head_bytes, ZSTD.head_bytes))
    again = _Front(head, source)
    for codec in (ZSTD, GZIP):
        if codec.length(head) is not None:
            return cast("BinaryIO", _Unzipper(again, codec))
    return cast("BinaryIO", gzip.GzipFile(fileobj=cast("BinaryIO", again)))


class _Unzipper:
    """Reads members ahead of whoever reads it, and expands them on threads."""

    def __init__(self, source: _Front, codec: Codec) -> None:
        self._source = source
        self._codec = codec
        self._threads = threads()
        self._pool = ThreadPoolExecutor(self._threads, "unzip")
        self._waiting: Deque[Future[bytes]] = deque()
        self._block = b""
        self._plain = memoryview(self._block)
        self._over = False

    def __enter__(self) -> _Unzipper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Throw away what nobody read."""
        for future in self._waiting:
            future.cancel()
        self._pool.shutdown()

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes, as many as one member has left; empty at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(BLOCK_BYTES), b""))
        while not self._plain:
            self._read_ahead()
            if not self._waiting:
                return b""
            self._block = self._waiting.popleft().result()
            self._plain = memoryview(self._block)
        whole = size >= len(self._plain) == len(self._block)
        given = self._block if whole else bytes(self._plain[:size])
        self._plain = self._plain[len(given) :]
        return given

    def _read_ahead(self) -> None:
        while not self._over and len(self._waiting) <= 2 * self._threads:
            head = self._source.exactly(self._codec.head_bytes)
            if not head:
                self._over = True
                return
            length = self._codec.length(head)
            if length is None or length > _LONGEST_MEMBER:
                raise ArchiveInvalid("the archive is damaged: a block of it does not begin as it should")
            body = self._source.exactly(length)
            if len(body) != length:
                raise ArchiveInvalid("the archive is damaged: it ends in the middle of a block")
            self._waiting.append(self._pool.submit(self._codec.expand, body))
