"""A work directory as one archive, whose digest depends on its content alone.

The same names, bytes, permission bits and links give the same archive, whoever packs them and when: owners are left
out and every file has the same time stamp. That stamp is constant and not zero, since `make` takes files of one age
for up to date, and zip files cannot hold a time before 1980.
"""

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cli.errors import Failed, UsageProblem
from cli.ignore_rules import IgnoreRules

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TIME_STAMP = 946_684_800  # 2000-01-01T00:00:00Z
MAX_ARCHIVE_BYTES = 5 * 1024**3  # the most that one upload to the bucket can hold


@dataclass(frozen=True, slots=True)
class Packed:
    """An archive that was written.

    Attributes:
        sha256: its digest, hex.
        size_bytes: its size.
        files: how many files it holds.
        left_out: paths that the ignore rules left out; a folder counts once.
        unpackable: paths of sockets, pipes and devices, which no archive carries.
    """

    sha256: str
    size_bytes: int
    files: int
    left_out: tuple[str, ...]
    unpackable: tuple[str, ...]


def pack(work_dir: Path, into: BinaryIO, progress: Callable[[int], None] = lambda _: None) -> Packed:
    """Write a .tar.gz of the work directory, entries relative to it.

    Args:
        work_dir: what to pack.
        into: where the archive goes, at its current position.
        progress: told how many bytes were read, bit by bit.

    Raises:
        UsageProblem: a file cannot be read or changed meanwhile, a link leads out, or the archive is too large.
    """
    listing = _Listing(work_dir)
    entries = list(listing.walk(work_dir, "", IgnoreRules()))
    listing.refuse_bad_links()
    out = _Digesting(into)
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=6, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in entries:
            _add(archive, entry, progress)
    files = sum(1 for entry in entries if not entry.info.isdir())
    return Packed(out.digest.hexdigest(), out.size_bytes, files, tuple(listing.left_out), tuple(listing.unpackable))


@dataclass(frozen=True, slots=True)
class _Entry:
    source: Path
    info: tarfile.TarInfo


class _Listing:
    """Walks a work directory in a fixed order and notes what does not travel."""

    def __init__(self, root: Path) -> None:
        self._root = os.path.realpath(root)
        self.left_out: list[str] = []
        self.unpackable: list[str] = []
        self._bad_links: list[str] = []

    def walk(self, folder: Path, path: str, rules: IgnoreRules) -> Iterator[_Entry]:
        """The entries in and below a folder, by name."""
        rules = rules.inside(folder, path)
        try:
            children = sorted(os.scandir(folder), key=lambda child: os.fsencode(child.name))
        except OSError as error:
            raise _unreadable(folder, error) from error
        for child in children:
            inner = f"{path}/{child.name}" if path else child.name
            is_folder = child.is_dir(follow_symlinks=False)
            if rules.leave_out(inner, is_folder=is_folder):
                self.left_out.append(inner)
                continue
            source = folder / child.name
            entry = self._entry(source, inner)
            if entry is not None:
                yield entry
            if is_folder:
                yield from self.walk(source, inner, rules)

    def _entry(self, source: Path, path: str) -> _Entry | None:
        try:
            status = source.lstat()
        except OSError as error:
            raise _unreadable(source, error) from error
        info = tarfile.TarInfo(path)
        info.mtime = TIME_STAMP
        info.mode = stat.S_IMODE(status.st_mode) & 0o777
        if stat.S_ISDIR(status.st_mode):
            info.type = tarfile.DIRTYPE
        elif stat.S_ISLNK(status.st_mode):
            info.type, info.mode = tarfile.SYMTYPE, 0o777
            info.linkname = os.readlink(source)  # noqa: PTH115 (Path would tidy the text of the link)
            self._check_link(source, path, info.linkname)
        elif stat.S_ISREG(status.st_mode):
            info.size = status.st_size
        else:
            self.unpackable.append(path)
            return None
        return _Entry(source, info)

    def _check_link(self, source: Path, path: str, target: str) -> None:
        """A link must lead to a place inside, both as it reads and as it is followed here."""
        reads = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120 (Path drops "..")
        leads = os.path.realpath(source)
        reads_out = os.path.isabs(target) or reads == ".." or reads.startswith("../")  # noqa: PTH117 (of a text, not a path)
        if reads_out or os.path.commonpath([self._root, leads]) != self._root:
            self._bad_links.append(f"{path} -> {target}")

    def refuse_bad_links(self) -> None:
        """Raise UsageProblem when a link leads out of the work directory."""
        if self._bad_links:
            raise UsageProblem(
                f"work_dir: links that lead out of {self._root} would be broken on the machine: "
                f"{', '.join(self._bad_links)}; copy what they lead to, make them relative, or name them in"
                " .spotferryignore"
            )


class _Digesting(io.RawIOBase):
    """Passes bytes on and keeps their digest and number."""

    def __init__(self, into: BinaryIO) -> None:
        super().__init__()
        self._into = into
        self._failed = False
        self.digest = hashlib.sha256()
        self.size_bytes = 0

    def writable(self) -> bool:
        """It is made to be written to."""
        return True

    def write(self, data: "ReadableBuffer") -> int:
        """Pass on; after a failure nothing more, so that closing the archive does not fail once again."""
        view = memoryview(data)
        if not self._failed:
            self._failed = True
            self._pass_on(view)
            self._failed = False
        return view.nbytes

    def _pass_on(self, view: memoryview) -> None:
        self.digest.update(view)
        self.size_bytes += view.nbytes
        if self.size_bytes > MAX_ARCHIVE_BYTES:
            raise UsageProblem(
                f"work_dir: packs to more than {MAX_ARCHIVE_BYTES // 1024**3} GiB; leave data out by"
                " .spotferryignore and have the task fetch it"
            )
        try:
            self._into.write(view)
        except OSError as error:
            raise Failed(
                f"the archive cannot be written ({error.strerror}); set TMPDIR to a folder with room"
            ) from error


class _Counting:
    """Reads a file for the archive and reports how far it is."""

    def __init__(self, file: BinaryIO, progress: Callable[[int], None]) -> None:
        self._file = file
        self._progress = progress

    def read(self, count: int = -1) -> bytes:
        """The next bytes."""
        data = self._file.read(count)
        self._progress(len(data))
        return data


def _add(archive: tarfile.TarFile, entry: _Entry, progress: Callable[[int], None]) -> None:
    if not entry.info.isreg():
        archive.addfile(entry.info)
        return
    try:
        file = entry.source.open("rb")
    except OSError as error:
        raise _unreadable(entry.source, error) from error
    with file:
        try:
            archive.addfile(entry.info, _Counting(file, progress))
        except OSError as error:
            raise _unreadable(entry.source, error) from error
        if file.read(1):
            raise UsageProblem(f"work_dir: {entry.source} grew while it was being packed; try again when it is at rest")


def _unreadable(path: Path, error: OSError) -> UsageProblem:
    reason = error.strerror or f"{error}; did it change while it was being packed?"
    return UsageProblem(f"work_dir: {path} cannot be packed: {reason}")
