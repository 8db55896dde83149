"""How one block of a stream is compressed: as a member that says how long it is, and that any zstd or gzip tool reads.

Before each zstd frame stands a skippable frame with its length, as pzstd writes it (RFC 8878, 3.1.2); a gzip member has
its length in an extra field of its header (RFC 1952, 2.3.1.1). So a reader who knows it can hand whole members to
threads; both libraries let go of the interpreter's lock.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Callable, Optional, Tuple, Union

from spotferry.agent import zstd
from spotferry.agent.errors import ArchiveInvalid

BLOCK_BYTES = 1024 * 1024
"""How much of the stream one member holds, at most."""

LONGEST_MEMBER_BYTES = BLOCK_BYTES + 64 * 1024
"""No member is longer than this."""

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

Bytes = Union[bytes, memoryview]
Pieces = Tuple[Bytes, ...]


@dataclass(frozen=True)
class Codec:
    """One way to compress.

    Attributes:
        suffix: of a file so compressed.
        head_bytes: how long the head of a member is.
        length: how much follows a head; None where it is no head of this codec's.
        stored: the member of a block that is kept as it is, in pieces that are not copies; None where it ought to be
            packed. It takes as long as compressing 16 KiB of samples.
        pack: a block's member, in pieces: joining them would cost a copy.
        shown: the block of what follows a head, in pieces, if it was kept as it is; None where it has to be expanded.
            It reads the heads of the pieces, nothing else.
        expand: the block of what follows a head.
    """

    suffix: str
    head_bytes: int
    length: Callable[[bytes], Optional[int]]
    stored: Callable[[Bytes], Optional[Pieces]]
    pack: Callable[[Bytes], Pieces]
    shown: Callable[[bytes], Optional[Pieces]]
    expand: Callable[[bytes], bytes]


def _gzip_length(head: bytes) -> Optional[int]:
    if len(head) < _GZIP_HEAD.size:
        return None
    magic, _, _, _, extra_bytes, first, second, _, length = _GZIP_HEAD.unpack(head[: _GZIP_HEAD.size])
    ours = (magic, extra_bytes, first, second) == (_GZIP_MAGIC, _EXTRA_BYTES, b"S", b"F")
    return int(length) - _GZIP_HEAD.size if ours and length >= _GZIP_HEAD.size + _GZIP_TAIL.size else None


def _gzip_pack(block: Bytes) -> Pieces:
    packer = zlib.compressobj(_LEVEL if _shrinks(block, _deflated_bytes) else 0, zlib.DEFLATED, -zlib.MAX_WBITS)
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


def _deflated_bytes(sample: bytes) -> int:
    return len(zlib.compress(sample, _LEVEL))


def _shrinks(block: Bytes, compressed_bytes: Callable[[bytes], int]) -> bool:
    """Whether compressing is worth its time, by samples from all over the block."""
    if len(block) <= _SAMPLES * _SAMPLE_BYTES:
        return True
    step = (len(block) - _SAMPLE_BYTES) // (_SAMPLES - 1)
    sample = b"".join(block[at : at + _SAMPLE_BYTES] for at in range(0, step * _SAMPLES, step))
    return compressed_bytes(sample) < len(sample) * _WORTH_IT


def _zstd_length(head: bytes) -> Optional[int]:
    if len(head) < _ZSTD_HEAD.size:
        return None
    magic, size, length = _ZSTD_HEAD.unpack(head[: _ZSTD_HEAD.size])
    return int(length) if (magic, size) == (_ZSTD_SKIPPABLE, 4) else None


def _zstd_stored(block: Bytes) -> Optional[Pieces]:
    if _shrinks(block, zstd.needed().compressed_bytes):
        return None
    return _framed(*zstd.stored(block))


def _zstd_pack(block: Bytes) -> Pieces:
    return _framed(zstd.needed().compress(block))


def _framed(*frame: Bytes) -> Pieces:
    return (_ZSTD_HEAD.pack(_ZSTD_SKIPPABLE, 4, sum(map(len, frame))), *frame)


def _zstd_shown(body: bytes) -> Optional[Pieces]:
    return zstd.shown(body, BLOCK_BYTES)


def _zstd_expand(body: bytes) -> bytes:
    return zstd.needed().expand(body, BLOCK_BYTES)


def _never(_: Bytes) -> None:
    """Every gzip member has a sum, which takes its time."""


GZIP = Codec(".gz", _GZIP_HEAD.size, _gzip_length, _never, _gzip_pack, _never, _gzip_expand)
"""Everybody reads it: for what leaves the machines."""

ZSTD = Codec(".zst", _ZSTD_HEAD.size, _zstd_length, _zstd_stored, _zstd_pack, _zstd_shown, _zstd_expand)


def fastest() -> Codec:
    """The faster one that works here: for what only agents read."""
    return ZSTD if zstd.library() else GZIP
