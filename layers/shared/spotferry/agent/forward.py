"""The entries of a tar stream one after the other, without trusting what their headers say."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from typing import IO, Optional, cast

from spotferry.agent.codec import BLOCK_BYTES, Bytes
from spotferry.agent.errors import ArchiveInvalid
from spotferry.agent.members import Readable, exactly

_MOST_HEADER_BYTES = 1024 * 1024
"""All that is said of one entry: long names, other attributes, and where its holes are."""

DAMAGED = (
    tarfile.TarError,
    gzip.BadGzipFile,
    EOFError,
    zlib.error,
    ValueError,  # of numbers and names that are none
    OverflowError,  # of times and sizes that the system does not have
    RecursionError,  # of headers about headers
)
"""What reading a damaged or hostile archive raises beside `ArchiveInvalid`."""


class Forward:
    """A stream as tarfile reads the headers of a file: it asks where it is, and skips forward only. What the entries
    hold is taken by `some`.

    Args:
        stream: read from its start.
    """

    def __init__(self, stream: Readable) -> None:
        self._stream = stream
        self._at = 0
        self._header_bytes = 0

    def opened(self) -> tarfile.TarFile:
        """The archive; it is read to the first entry.

        Raises:
            tarfile.TarError: it is none.
        """
        return tarfile.open(fileobj=cast("IO[bytes]", self), mode="r:")

    def next_of(self, tar: tarfile.TarFile) -> Optional[tarfile.TarInfo]:
        """The next entry; None at the end.

        Raises:
            ArchiveInvalid: its header is longer than anybody's.
            tarfile.TarError: it is damaged.
        """
        self._header_bytes = 0
        setattr(tar, "members", [])  # noqa: B010  (it keeps all of them; the attribute is missing from the type stubs)
        return tar.next()

    def tell(self) -> int:
        """How much was read."""
        return self._at

    def seek(self, to: int) -> int:
        """Skip to there.

        Raises:
            tarfile.StreamError: that was read already.
        """
        if to < self._at:
            raise tarfile.StreamError(f"byte {to} was read already")
        while self._at < to and self.some(to - self._at):
            pass
        return self._at

    def read(self, size: int) -> bytes:
        """So many bytes of a header, or fewer at the end.

        Raises:
            ArchiveInvalid: the header is longer than anybody's.
        """
        self._header_bytes += size
        if self._header_bytes > _MOST_HEADER_BYTES:
            raise ArchiveInvalid(f"the header of an entry has more than {_MOST_HEADER_BYTES:,} bytes; it is refused")
        return exactly(size, self.some)

    def some(self, size: int) -> Bytes:
        """At most so many bytes, and no more than a block, as many as are there in one piece; empty at the end."""
        piece = self._stream.read(min(size, BLOCK_BYTES))  # a foreign stream makes room for all that it is asked for
        self._at += len(piece)
        return piece
