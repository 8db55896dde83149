"""Packs a tree into a .tar.gz on the disk, in bounded memory, digested while it is written."""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Dict, Iterable, Iterator, List, Tuple, Union, cast

from spotferry.agent.clock import Check

BLOCK_BYTES = 1024 * 1024
STREAM_BYTES = 64 * 1024
_COMPRESSION = 1
_ARCHIVED = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK, stat.S_ISFIFO)


@dataclass(frozen=True)
class Packed:
    """A finished archive.

    Attributes:
        path: where it is.
        size_bytes, sha256: of the archive.
        files: path, size and digest of each regular file in it.
    """

    path: Path
    size_bytes: int
    sha256: str
    files: List[Dict[str, Union[str, int]]]


class _Digested:
    """A file that is digested and counted as it is written or read through; as much of a file as tarfile and gzip use.

    Args:
        file: the file.
        check: called before every block.
    """

    def __init__(self, file: BinaryIO, check: Check) -> None:
        self._file = file
        self._check = check
        self.digest = hashlib.sha256()
        self.size_bytes = 0

    def write(self, block: bytes) -> int:
        """Write it all."""
        self._check()
        self._file.write(block)
        self._count(block)
        return len(block)

    def read(self, size: int = -1) -> bytes:
        """Read at most so much."""
        self._check()
        block = self._file.read(size)
        self._count(block)
        return block

    def flush(self) -> None:
        """Pass on what is buffered."""
        self._file.flush()

    def _count(self, block: bytes) -> None:
        self.digest.update(block)
        self.size_bytes += len(block)


def tree(root: Path, below: str = "") -> Iterator[str]:
    """Every entry below a directory, relative to `root`, each directory before what it holds; links are entries."""
    with os.scandir(root / below) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = f"{below}/{entry.name}" if below else entry.name
        yield path
        if entry.is_dir(follow_symlinks=False):
            yield from tree(root, path)


def pack(root: Path, paths: Iterable[str], target: Path, check: Check, *, list_files: bool = False) -> Packed:
    """Write the entries at `paths` below `root` to the archive `target`.

    Modes, times (to the fraction), hard and symbolic links are kept; owners are not: they differ from machine to
    machine. Sockets and devices are left out.

    Args:
        root: the directory.
        paths: relative to it.
        target: written; on an error what was written is deleted.
        check: called for every block; may raise to give up.
        list_files: digest each file, for `Packed.files`.

    Raises:
        OSError: something could not be read, or the disk is full.
    """
    try:
        with target.open("wb") as raw:
            out = _Digested(raw, check)
            files = _write(root, paths, out, check, list_files=list_files)
            raw.flush()
    except BaseException:
        target.unlink()
        raise
    return Packed(target, out.size_bytes, out.digest.hexdigest(), files)


def _write(
    root: Path, paths: Iterable[str], out: _Digested, check: Check, *, list_files: bool
) -> List[Dict[str, Union[str, int]]]:
    files: List[Dict[str, Union[str, int]]] = []
    inodes: Dict[Tuple[int, int], str] = {}
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=_COMPRESSION, mtime=0) as zipped,
        tarfile.open(mode="w|", fileobj=zipped, format=tarfile.PAX_FORMAT, bufsize=STREAM_BYTES) as tar,
    ):
        for path in paths:
            check()
            status = os.lstat(root / path)
            if not any(kind(status.st_mode) for kind in _ARCHIVED):
                continue
            entry = _entry(root, path, status, inodes)
            digest = _add(tar, root / path, entry, check)
            if list_files and entry.isreg():
                files.append({"path": path, "size_bytes": entry.size, "sha256": digest})
            forget_members(tar)
    return files


def forget_members(tar: tarfile.TarFile) -> None:
    """Let go of the entries that went through; tarfile keeps every one of them otherwise."""
    setattr(tar, "members", [])  # noqa: B010  (the attribute is missing from the library's type stubs)


def _entry(root: Path, path: str, status: os.stat_result, inodes: Dict[Tuple[int, int], str]) -> tarfile.TarInfo:
    """The header of one entry."""
    entry = tarfile.TarInfo(path)
    entry.mode = stat.S_IMODE(status.st_mode)
    entry.mtime = status.st_mtime
    identity = (status.st_dev, status.st_ino)
    if stat.S_ISDIR(status.st_mode):
        entry.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(root / path)  # noqa: PTH115  (kept as it is written)
    elif stat.S_ISFIFO(status.st_mode):
        entry.type = tarfile.FIFOTYPE
    elif status.st_nlink > 1 and identity in inodes:
        entry.type, entry.linkname = tarfile.LNKTYPE, inodes[identity]
    else:
        entry.size = status.st_size
        if status.st_nlink > 1:
            inodes[identity] = path
    return entry


def _add(tar: tarfile.TarFile, path: Path, entry: tarfile.TarInfo, check: Check) -> str:
    """Write one entry; the digest of its bytes, "" for what is not a file."""
    if not entry.isreg():
        tar.addfile(entry)
        return ""
    with path.open("rb") as file:
        reading = _Digested(file, check)
        tar.addfile(entry, cast("BinaryIO", reading))
    return reading.digest.hexdigest()
