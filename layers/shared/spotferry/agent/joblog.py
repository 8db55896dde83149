"""The job's log: a file that setup and task write, read in pieces that the broker takes."""

from __future__ import annotations

import codecs
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Tuple

CHUNK_BYTES = 256 * 1024
"""A call carries at most so much text, counted in UTF-8."""


@dataclass(frozen=True)
class Chunk:
    """A piece of the log.

    Attributes:
        offset: where it begins, in bytes of the UTF-8 text from the start of the attempt.
        text: whole code points; what was not UTF-8 is replaced.
        end: where it ends, counted as `offset` is.
        raw_end: where it ends in the file.
    """

    offset: int
    text: str
    end: int
    raw_end: int


class JobLog:
    """Reads the file from where the broker has it.

    Offsets of the text and of the file differ as soon as something was replaced, so the start of every chunk is
    remembered in both. Safe to use from several threads.

    Args:
        path: the file; created empty if it is not there.
        chunk_bytes: most text of one chunk; at least 12.
    """

    def __init__(self, path: Path, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._path = path
        self._chunk_bytes = chunk_bytes
        self._starts: List[Tuple[int, int]] = [(0, 0)]
        self._skip = 0
        self._complete = False
        self._lock = threading.Lock()
        path.touch()

    def complete(self, *, complete: bool) -> None:
        """Whether nobody writes any more, so that half a code point at the end is one that never gets whole."""
        with self._lock:
            self._complete = complete

    def chunk(self) -> Optional[Chunk]:
        """The next piece after what was acknowledged; None when there is none. Asking again gives it again."""
        with self._lock:
            return self._chunk()

    def size_bytes(self) -> int:
        """How much was printed so far, as it is in the file."""
        return os.path.getsize(self._path)  # noqa: PTH202  (one call a heartbeat)

    def more_after(self, chunk: Optional[Chunk]) -> bool:
        """Whether the file goes on behind a chunk."""
        return chunk is not None and self.size_bytes() > chunk.raw_end

    def acknowledge(self, offset: int, chunk: Optional[Chunk]) -> bool:
        """The broker has the text up to `offset`; answers whether that is further than before `chunk` was sent.

        Args:
            offset: the broker's word; anything else than the end of the chunk makes the next chunk begin there.
            chunk: what the call carried.
        """
        with self._lock:
            position = self._starts[-1][0] + self._skip
            if chunk is not None and offset >= chunk.end:
                self._starts.append((chunk.end, chunk.raw_end))
                self._skip = 0
            elif offset != position:
                self._seek(offset)
            return self._starts[-1][0] + self._skip > position

    def _seek(self, offset: int) -> None:
        """Begin the next chunk at an offset that need not be where a chunk began."""
        while len(self._starts) > 1 and self._starts[-1][0] > offset:
            self._starts.pop()
        self._skip = max(0, offset - self._starts[-1][0])

    def _chunk(self) -> Optional[Chunk]:
        while True:
            start, raw_start = self._starts[-1]
            text, used = self._text_at(raw_start)
            encoded = text.encode()
            if not encoded:
                return None
            end, raw_end = start + len(encoded), raw_start + used
            if self._skip < len(encoded):
                kept = encoded[self._skip :].decode(errors="ignore")
                return Chunk(offset=end - len(kept.encode()), text=kept, end=end, raw_end=raw_end)
            self._starts.append((end, raw_end))
            self._skip -= len(encoded)

    def _text_at(self, raw_start: int) -> Tuple[str, int]:
        """At most one chunk of text from there, and how many bytes of the file it is."""
        raw = self._read(raw_start, self._chunk_bytes)
        text, used = self._decode(raw)
        if len(text.encode()) > self._chunk_bytes:
            text, used = self._decode(raw[: self._chunk_bytes // 3])
        return text, used

    def _read(self, raw_start: int, size: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(raw_start)
            return file.read(size)

    def _decode(self, raw: bytes) -> Tuple[str, int]:
        """The text of the bytes, and how many of them it took: half a code point at the end waits for its rest."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(raw)
        waiting = len(decoder.getstate()[0])
        if self._complete and waiting == len(raw):
            return raw.decode(errors="replace"), len(raw)
        return text, len(raw) - waiting
