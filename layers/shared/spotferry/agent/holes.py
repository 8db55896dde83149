"""Where the holes of a file are, and how an archive says it: GNU's sparse format 1.0, which tar and tarfile read."""

from __future__ import annotations

import errno
import os
import tarfile
from typing import Iterator, List, Optional, Tuple

Segment = Tuple[int, int]
"""Where some bytes of a file begin, and how many they are."""

LEAST_HOLES_BYTES = 4 * 1024 * 1024
"""A file with less in holes is read like any other: zeros cost little where they are few."""

MOST_SEGMENTS = 16_384
"""What lies between small holes is taken together until there are no more."""

_LEAST_HOLE_BYTES = 64 * 1024
_ALLOCATED_BYTES = 512
"""What the system counts a file's blocks in."""

_NOT_TOLD = (errno.EINVAL, errno.EOPNOTSUPP)
"""The file system does not know its holes."""

_MOST_OCTAL = 8**11
_SIZE = slice(124, 136)
_SUM = slice(148, 156)


def segments_of(descriptor: int, status: os.stat_result) -> Optional[List[Segment]]:
    """What a file has beside holes, in order; None where its holes are not worth it. The descriptor's place moves.

    Args:
        descriptor: of the open file.
        status: its own; what the file has beyond the size there does not count.

    Raises:
        OSError: it cannot be looked at.
    """
    size = status.st_size
    if size - status.st_blocks * _ALLOCATED_BYTES < LEAST_HOLES_BYTES:
        return None
    found: List[Segment] = []
    least = _LEAST_HOLE_BYTES
    for segment in _data(descriptor, size):
        _join(found, segment, least)
        while len(found) > MOST_SEGMENTS:
            least *= 2
            found = _joined(found, least)
    return found if size - sum(length for _, length in found) >= LEAST_HOLES_BYTES else None


def _data(descriptor: int, size: int) -> Iterator[Segment]:
    """The system's word on where a file has bytes."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # there is nothing but a hole any more, or the file became shorter
                return
            if error.errno not in _NOT_TOLD:
                raise
            start, end = end, size
        if start < end:
            yield start, end - start


def _joined(segments: List[Segment], least: int) -> List[Segment]:
    joined: List[Segment] = []
    for segment in segments:
        _join(joined, segment, least)
    return joined


def _join(segments: List[Segment], segment: Segment, least: int) -> None:
    """Put a segment to the others, or to the last of them if the hole between is too small."""
    start, length = segment
    if segments and start - sum(segments[-1]) < least:
        begin, _ = segments.pop()
        start, length = begin, start + length - begin
    segments.append((start, length))


def with_holes(entry: tarfile.TarInfo, segments: List[Segment]) -> bytes:
    """The header of a file of which the archive has only segments, and the list of them.

    Args:
        entry: the file; its size is the whole file's.
        segments: in order.
    """
    told = [*segments, (entry.size, 0)]
    listed = "".join(f"{number}\n" for number in [len(told), *(number for pair in told for number in pair)]).encode()
    listed += bytes(-len(listed) % tarfile.BLOCKSIZE)
    entry.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": entry.name,
        "GNU.sparse.realsize": str(entry.size),
    }
    whole, entry.size = entry.size, 0
    header = bytearray(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
    entry.size = whole
    header[-tarfile.BLOCKSIZE :] = _sized(header[-tarfile.BLOCKSIZE :], len(listed) + sum(n for _, n in segments))
    return bytes(header) + listed


def _sized(block: bytearray, size: int) -> bytearray:
    """A header with another size; a long one is no attribute, which readers would take for the whole file's."""
    block[_SIZE] = b"%011o\0" % size if size < _MOST_OCTAL else b"\x80" + size.to_bytes(11, "big")
    block[_SUM] = b" " * 8
    block[_SUM] = b"%06o\0 " % sum(block)
    return block
