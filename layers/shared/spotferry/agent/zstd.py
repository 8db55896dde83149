"""Zstandard by the system's own library (libzstd, through ctypes): several times as fast as zlib where it is there.

Distributions whose package manager uses it have it: Debian and Ubuntu, Fedora and its kin, Amazon Linux 2023, SUSE.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import threading
from typing import Optional

from spotferry.agent.console import say
from spotferry.agent.errors import ArchiveInvalid

LEVEL = 1
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

    def compress(self, block: bytes) -> bytes:
        """A frame."""
        room = self._library.ZSTD_compressBound(len(block))
        context = self._context()
        buffer = context.room(room)
        count = self._library.ZSTD_compressCCtx(context.packing, buffer, room, block, len(block), LEVEL)
        if self._library.ZSTD_isError(count):
            raise OSError("zstd cannot compress a block")
        return ctypes.string_at(buffer, count)

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
