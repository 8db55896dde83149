"""Chunks of an archive between its making and the bucket: a few in memory, more on the disk while the task stands."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Iterator, List, Optional

from spotferry.agent.clock import Check
from spotferry.agent.codec import Bytes

MEMORY_CHUNKS = 4
"""Chunks that are in memory at a time, the one that is being filled among them."""

MEMORY_CHUNK_BYTES = 8 * 1024 * 1024
"""A longer chunk goes through a file."""

_FILES_AHEAD = 2
_FREE_BYTES = 1024**3
"""The disk is never filled further than to this."""

_BLOCK_BYTES = 256 * 1024
_LOOK_SECONDS = 0.2


class Chunk:
    """A piece of an archive that is filled once, read as often as it has to be sent, and dropped.

    Args:
        room: where it takes its place.
        number: within its part, from 0.
        capacity: its length when it is full.
        path: the file that holds it; None: memory does.
    """

    def __init__(self, room: Room, number: int, capacity: int, path: Optional[Path]) -> None:
        self.number = number
        self.capacity = capacity
        self.size_bytes = 0
        self.path = path
        self._room = room
        self._pieces: List[Bytes] = []
        self._file: Optional[BinaryIO] = path.open("xb") if path else None

    def write(self, data: Bytes) -> Bytes:
        """Take as much as fits; what did not."""
        fits = min(len(data), self.capacity - self.size_bytes)
        if self._file:
            self._file.write(data[:fits])
        else:
            self._pieces.append(data if fits == len(data) else memoryview(data)[:fits])
        self.size_bytes += fits
        return memoryview(data)[fits:]

    def close(self) -> None:
        """Nothing more is written."""
        if self._file:
            self._file.close()

    def blocks(self) -> Iterator[Bytes]:
        """All of it, from the start."""
        if self.path is None:
            yield from self._pieces
            return
        with self.path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block

    def drop(self) -> None:
        """Give its place back; the bytes are gone."""
        self.close()
        self._pieces = []
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self._room.left(self)


class Room:
    """Where the chunks of one archive are on their way; safe to use from several threads.

    Args:
        spool: directory for those that are on the disk.
    """

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._changed = threading.Condition()
        self._in_memory = 0
        self._on_disk_bytes = 0
        self._spill_bytes = 0
        self._files = 0

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """Take in chunks as fast as they are made: a task stands still for it. What memory cannot hold goes to the
        disk, at most half of what is free there.
        """
        free = shutil.disk_usage(self._spool).free
        self._spill_bytes = max(0, min(free // 2, free - _FREE_BYTES))
        try:
            yield
        finally:
            self._spill_bytes = 0

    def chunk(self, number: int, capacity: int, check: Check) -> Chunk:
        """A chunk to be filled, as soon as there is room; `check` is called while there is none."""
        while True:
            with self._changed:
                if capacity <= MEMORY_CHUNK_BYTES and self._in_memory < MEMORY_CHUNKS:
                    self._in_memory += 1
                    return Chunk(self, number, capacity, None)
                if self._on_disk_bytes + capacity <= self._most_on_disk(capacity):
                    self._on_disk_bytes += capacity
                    self._files += 1
                    return Chunk(self, number, capacity, self._spool / f"chunk-{os.getpid()}-{id(self)}-{self._files}")
                self._changed.wait(_LOOK_SECONDS)
            check()

    def _most_on_disk(self, capacity: int) -> int:
        needed = _FILES_AHEAD * capacity if capacity > MEMORY_CHUNK_BYTES else 0
        return max(needed, self._spill_bytes)

    def left(self, chunk: Chunk) -> None:
        """A chunk gives its place back."""
        with self._changed:
            if chunk.path is None:
                self._in_memory -= 1
            else:
                self._on_disk_bytes -= chunk.capacity
            self._changed.notify_all()
