"""Zstandard by the system's own library (libzstd, through ctypes): several times as fast as zlib where it is there.

Distributions whose package manager uses it have it: Debian and Ubuntu, Fedora and its kin, Amazon Linux 2023, SUSE.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import subprocess
import threading
from typing import Iterator, List, Optional, Tuple, Union

from spotferry.agent.console import say
from spotferry.agent.errors import ArchiveInvalid

LEVEL = 1
_MAGIC = 0xFD2FB528
_ONE_SEGMENT_OF_FOUR_BYTES_SIZE = 0xA0
_FRAME_HEAD = struct.Struct("<IBI")
_RAW_BLOCK_BYTES = 128 * 1024
_MOST_RAW_BLOCKS = 16
"""Of one frame that is shown as it is: each piece has its price in memory, however short it is."""

_BLOCK_HEAD_BYTES = 3
_LENGTH_SHIFT = 3
_NOT_RAW = 0b110
_LIBRARY = "libzstd.so.1"
_INSTALL_SECONDS = 300
_INSTALLERS = (
    ["apt-get", "install", "-yq", "libzstd1"],
    ["dnf", "install", "-yq", "libzstd"],
    ["yum", "install", "-yq", "libzstd"],
    ["zypper", "-nq", "install", "libzstd1"],
    ["apk", "add", "-q", "zstd-libs"],
)


class _Context:
    """What one thread compresses and expands with: making these anew for each block would cost as much as the block."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.packing = ctypes.c_void_p(library.ZSTD_createCCtx())
        self.expanding = ctypes.c_void_p(library.ZSTD_createDCtx())
        self.buffer = ctypes.create_string_buffer(0)

    def __del__(self) -> None:
        self._library.ZSTD_freeCCtx(self.packing)
        self._library.ZSTD_freeDCtx(self.expanding)

    def room(self, size: int) -> ctypes.Array[ctypes.c_char]:
        """A buffer of at least this size."""
        if len(self.buffer) < size:
            self.buffer = ctypes.create_string_buffer(size)
        return self.buffer


class Zstd:
    """The library; calls let go of the interpreter's lock."""

    def __init__(self, library: ctypes.CDLL) -> None:
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        for name in ("ZSTD_compressBound", "ZSTD_compressCCtx", "ZSTD_decompressDCtx"):
            getattr(library, name).restype = size
        for name in ("ZSTD_createCCtx", "ZSTD_createDCtx"):
            getattr(library, name).restype = pointer
        library.ZSTD_compressBound.argtypes = [size]
        library.ZSTD_isError.argtypes = [size]
        library.ZSTD_compressCCtx.argtypes = [pointer, pointer, size, ctypes.c_char_p, size, ctypes.c_int]
        library.ZSTD_decompressDCtx.argtypes = [pointer, pointer, size, ctypes.c_char_p, size]
        self._library = library
        self._threads = threading.local()

    def _context(self) -> _Context:
        """The calling thread's own; it goes with the thread."""
        found = getattr(self._threads, "context", None)
        if found is None:
            found = self._threads.context = _Context(self._library)
        return found

    def compress(self, block: Union[bytes, memoryview]) -> bytes:
        """A frame."""
        count = self.compressed_bytes(bytes(block))
        return ctypes.string_at(self._context().buffer, count)

    def compressed_bytes(self, block: bytes) -> int:
        """How long a block's frame is, which the calling thread's buffer then holds."""
        room = self._library.ZSTD_compressBound(len(block))
        context = self._context()
        buffer = context.room(room)
        count = int(self._library.ZSTD_compressCCtx(context.packing, buffer, room, block, len(block), LEVEL))
        if self._library.ZSTD_isError(count):
            raise OSError("zstd cannot compress a block")
        return count

    def expand(self, frame: bytes, most: int) -> bytes:
        """The block of a frame.

        Raises:
            ArchiveInvalid: it is damaged, or longer than `most`.
        """
        context = self._context()
        buffer = context.room(most)
        count = self._library.ZSTD_decompressDCtx(context.expanding, buffer, most, frame, len(frame))
        if self._library.ZSTD_isError(count):
            raise ArchiveInvalid("the archive is damaged: zstd cannot expand a block of it")
        return ctypes.string_at(buffer, count)


def stored(block: Union[bytes, memoryview]) -> Iterator[Union[bytes, memoryview]]:
    """A frame that holds a block as it is, in pieces: nothing is copied, and no library is asked.

    Raw blocks in a frame of one segment (RFC 8878, 3.1.1.1 and 3.1.1.2).
    """
    head, view = _FRAME_HEAD.pack(_MAGIC, _ONE_SEGMENT_OF_FOUR_BYTES_SIZE, len(block)), memoryview(block)
    for at in range(0, len(block), _RAW_BLOCK_BYTES):
        raw = view[at : at + _RAW_BLOCK_BYTES]
        is_last = at + len(raw) == len(block)
        yield head + (len(raw) << _LENGTH_SHIFT | is_last).to_bytes(_BLOCK_HEAD_BYTES, "little")
        yield raw
        head = b""


def shown(frame: bytes, most: int) -> Optional[Tuple[memoryview, ...]]:
    """The block of a frame as `stored` makes it, in pieces that are not copies; None where the library has to tell."""
    if len(frame) < _FRAME_HEAD.size:
        return None
    magic, kind, size = _FRAME_HEAD.unpack_from(frame)
    if (magic, kind) != (_MAGIC, _ONE_SEGMENT_OF_FOUR_BYTES_SIZE) or size > most:
        return None
    pieces: List[memoryview] = []
    at, is_last, view = _FRAME_HEAD.size, False, memoryview(frame)
    while not is_last:
        if len(pieces) > _MOST_RAW_BLOCKS:
            return None
        head = int.from_bytes(view[at : at + _BLOCK_HEAD_BYTES], "little")
        is_last, length = bool(head & 1), head >> _LENGTH_SHIFT
        at += _BLOCK_HEAD_BYTES + length
        if head & _NOT_RAW or not 0 < length <= _RAW_BLOCK_BYTES or at > len(frame):
            return None
        pieces.append(view[at - length : at])
    return tuple(pieces) if at == len(frame) and sum(map(len, pieces)) == size else None


@functools.cache
def library() -> Optional[Zstd]:
    """The library; None where the system has none."""
    try:
        return Zstd(ctypes.CDLL(_LIBRARY))
    except (OSError, AttributeError):
        return None


def needed() -> Zstd:
    """The library, installed where it is missing: a checkpoint that another machine made is worth it.

    Raises:
        ArchiveInvalid: it cannot be had.
    """
    found = library()
    if found is None and os.geteuid() == 0:
        _install()
        library.cache_clear()
        found = library()
    if found is None:
        raise ArchiveInvalid(f"it is compressed with zstd, and this machine has no {_LIBRARY}: install it in setup")
    return found


def _install() -> None:
    """Have the system's package manager bring it."""
    for command in _INSTALLERS:
        try:
            done = subprocess.run(  # noqa: S603  (fixed commands; PATH is the machine's)
                command, stdin=subprocess.DEVNULL, check=False, timeout=_INSTALL_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        say(f"{command[0]} was asked for {_LIBRARY}: status {done.returncode}")
        return
