"""Packs a tree into a compressed tar stream, in bounded memory, and nothing of it on the disk."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from pathlib import Path
from typing import Callable, Dict, Iterable, Iterator, List, Tuple

from spotferry.agent.broker import Json
from spotferry.agent.clock import Check
from spotferry.agent.codec import BLOCK_BYTES, GZIP, Bytes, Codec
from spotferry.agent.entries import Entries, EntryFile, Found
from spotferry.agent.holes import Segment, with_holes
from spotferry.agent.members import Zipper

_ARCHIVED = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK, stat.S_ISFIFO)

Inode = Tuple[int, int, int, int]
"""Device and number, time of the last change, and size."""

Write = Callable[[Bytes], None]
"""Takes the next bytes of a stream."""


def tree(root: Path, below: str = "") -> Iterator[str]:
    """Every entry below a directory, relative to `root`, each directory before what it holds; links are entries.

    Raises:
        Unreadable: a directory cannot be listed.
    """
    with Entries(root) as entries:
        open_directories = [_inside(entries, below)]
        while open_directories:  # no recursion: a tree may be deeper than the interpreter's stack
            entry = next(open_directories[-1], None)
            if entry is None:
                open_directories.pop()
                continue
            path, is_directory = entry
            yield path
            if is_directory:
                open_directories.append(_inside(entries, path))


def _inside(entries: Entries, below: str) -> Iterator[Tuple[str, bool]]:
    """What one directory holds when its turn comes, by name, and which of it are directories."""
    for name, is_directory in entries.listing(below):
        yield (f"{below}/{name}" if below else name), is_directory


def pack(
    root: Path, paths: Iterable[str], out: Write, check: Check, *, codec: Codec = GZIP, list_files: bool = False
) -> List[Json]:
    """Write the entries at `paths` below `root` as a compressed tar.

    Modes, times (to the fraction), hard and symbolic links are kept; owners are not: they differ from machine to
    machine. Sockets and devices are left out, and so is what has vanished since it was listed. Long holes of files are
    not read, unless the files are to be digested.

    Args:
        root: the directory.
        paths: relative to it, each directory right before what it holds.
        out: gets the archive.
        check: called for every block; may raise to give up.
        codec: how it is compressed.
        list_files: digest each file.

    Returns:
        Path, size and digest of each regular file, if they were to be listed.

    Raises:
        Unreadable: something cannot be read.
    """
    files: List[Json] = []
    inodes: Dict[Inode, str] = {}
    leaf = "/"
    with Entries(root) as entries, Zipper(out, check, codec) as zipped:
        for path in paths:
            check()
            if path.startswith(leaf):  # it became a directory only after it had been looked at
                continue
            with entries.look(path) as found:
                if found is None or not any(kind(found.status.st_mode) for kind in _ARCHIVED):
                    continue
                entry = _entry(path, found, inodes)
                leaf = leaf if entry.isdir() else f"{path}/"
                if found.file is None or not entry.isreg():
                    zipped.write(header_of(entry))
                    continue
                segments = None if list_files else found.file.segments(found.status)
                if segments is not None:
                    _add_segments(zipped.write, entry, found.file, segments)
                    continue
                digest = add_file(zipped.write, entry, found.file, list_files=list_files)
            if list_files:
                files.append({"path": path, "size_bytes": entry.size, "sha256": digest})
        zipped.write(bytes(2 * tarfile.BLOCKSIZE))
    return files


def inode_of(status: os.stat_result) -> Inode:
    """What tells a file by: its number alone may be another file's by now, which was made after the first had gone."""
    return (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_size)


def header_of(entry: tarfile.TarInfo) -> bytes:
    """An entry's header; PAX, so that nothing is too long for it."""
    return entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def add_file(
    write: Callable[[bytes], None], entry: tarfile.TarInfo, file: EntryFile, *, list_files: bool = False
) -> str:
    """Write one file; the digest of its bytes if it is to be listed.

    It has the length that its header says, also where somebody is still writing it: what is missing is zeros.
    """
    write(header_of(entry))
    digest = hashlib.sha256()

    def write_and_digest(block: bytes) -> None:
        digest.update(block)
        write(block)

    _copy(write_and_digest if list_files else write, file, entry.size)
    write(bytes(-entry.size % tarfile.BLOCKSIZE))
    return digest.hexdigest()


def _add_segments(
    write: Callable[[bytes], None], entry: tarfile.TarInfo, file: EntryFile, segments: List[Segment]
) -> None:
    """Write a file without its holes; they keep their places, whatever somebody still writes."""
    write(with_holes(entry, segments))
    for start, length in segments:
        file.seek(start)
        _copy(write, file, length)
    write(bytes(-sum(length for _, length in segments) % tarfile.BLOCKSIZE))


def _copy(write: Callable[[bytes], None], file: EntryFile, length: int) -> None:
    """Write so many bytes of a file on; what is missing is zeros."""
    while length > 0:
        block = file.read(min(BLOCK_BYTES, length)) or bytes(min(BLOCK_BYTES, length))
        write(block)
        length -= len(block)


def _entry(path: str, found: Found, inodes: Dict[Inode, str]) -> tarfile.TarInfo:
    """What is at a path, but for its bytes."""
    entry, status = tarfile.TarInfo(path), found.status
    entry.mode = stat.S_IMODE(status.st_mode)
    entry.mtime = status.st_mtime
    identity = inode_of(status)
    if stat.S_ISDIR(status.st_mode):
        entry.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, found.link
    elif stat.S_ISFIFO(status.st_mode):
        entry.type = tarfile.FIFOTYPE
    elif status.st_nlink > 1 and identity in inodes:
        entry.type, entry.linkname = tarfile.LNKTYPE, inodes[identity]
    else:
        entry.size = status.st_size
        if status.st_nlink > 1:
            inodes[identity] = path
    return entry
