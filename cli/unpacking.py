"""Taking an archive of outputs apart without trusting it."""

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cli.errors import Failed
from cli.output import Json

_LEFT_OUT = (tarfile.SpecialFileError, tarfile.AbsoluteLinkError, tarfile.LinkOutsideDestinationError)
"""What an honest archive may hold and a folder of somebody else's must not: it is left out, not refused."""


@dataclass(slots=True)
class Unpacked:
    """What came of an archive.

    Attributes:
        files: path, size_bytes and sha256 of each file that is in the folder now.
        skipped: named pipes, devices and links that lead out of the folder, by name; they were left out.
    """

    files: list[Json] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def keep(self, member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
        """The entry as it may be unpacked into the folder; None for what is left out.

        Raises:
            tarfile.FilterError: the entry itself would be written outside.
        """
        try:
            return tarfile.data_filter(member, folder)
        except _LEFT_OUT:
            self.skipped.append(member.name)
            return None


def unpack(archive: BinaryIO, folder: Path, files: Sequence[Json], *, complete: bool) -> Unpacked:
    """Put the archive's files into the folder, once all of them were checked.

    Args:
        archive: a .tar.gz, at its start; its own digest was checked.
        folder: where the files go; those of the same name are replaced.
        files: path, size_bytes and sha256 of files that must be in it.
        complete: there must be no other files in it; else the others stand by the archive's digest alone.

    Raises:
        Failed: the archive is damaged, leads out of the folder, or does not hold these files; nothing was written.
        OSError: the folder cannot be written to.
    """
    listed = {str(file["path"]): file for file in files}
    found = Unpacked()
    with tempfile.TemporaryDirectory(prefix=".spotferry-", dir=folder) as name:
        staging = Path(name)
        try:
            with tarfile.open(fileobj=archive, mode="r:gz") as tar:
                others = _check_members(tar, listed, complete=complete)
                tar.extractall(staging, filter=found.keep)  # noqa: S202 (the filter is the library's, and leaves out more)
        except (tarfile.TarError, EOFError) as error:
            raise Failed(f"the outputs' archive is refused: {error}") from error
        found.skipped += _drop_links_out(staging)
        for path, file in listed.items():
            _check_digest(staging, path, str(file["sha256"]))
        found.files = [*files, *(_described(staging, path) for path in others)]
        _move(staging, folder)
    return found


def _check_members(tar: tarfile.TarFile, listed: dict[str, Json], *, complete: bool) -> list[str]:
    """Check each listed file's size; the files that are not listed, which a complete list allows none of.

    So an archive with a complete list cannot unfold to more than was announced.
    """
    others: dict[str, None] = {}
    for member in tar:
        if not member.isfile():
            continue
        path = os.path.normpath(member.name)
        if path not in listed:
            if complete:
                raise Failed(f"the outputs' archive holds {member.name}, which the broker's list does not")
            others[path.lstrip("/")] = None  # as the filter unpacks it
        elif member.size != int(listed[path]["size_bytes"]):
            raise Failed(f"{path} has {member.size} bytes in the outputs' archive, not {listed[path]['size_bytes']}")
    return list(others)


def _drop_links_out(staging: Path) -> list[str]:
    """Links that lead out by way of entries unpacked after them, which the filter could not know; they are deleted."""
    home = os.path.realpath(staging)
    places = [Path(here) / name for here, folders, names in os.walk(staging) for name in [*folders, *names]]
    links = [place for place in places if place.is_symlink()]
    stray = [link for link in links if not Path(os.path.realpath(link)).is_relative_to(home)]
    for place in stray:
        place.unlink()
    return [str(place.relative_to(staging)) for place in stray]


def _digest(staging: Path, path: str) -> str:
    place = staging / path
    if not place.resolve().is_relative_to(staging.resolve()) or not place.is_file():
        raise Failed(f"{path} is missing from the outputs' archive; try again")
    with place.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_digest(staging: Path, path: str, expected: str) -> None:
    found = _digest(staging, path)
    if found != expected:
        raise Failed(f"{path} is damaged: its digest is {found}, not {expected}; try again")


def _described(staging: Path, path: str) -> Json:
    digest = _digest(staging, path)
    return {"path": path, "size_bytes": (staging / path).stat().st_size, "sha256": digest}


def _move(staging: Path, folder: Path) -> None:
    """Into the folder, and not through links in it: one that has a directory's name makes way for it."""
    for source_folder, folders, names in os.walk(staging):
        here = Path(source_folder)
        there = folder / here.relative_to(staging)
        if there != folder and (there.is_symlink() or there.is_file()):
            there.unlink()
        there.mkdir(exist_ok=True)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in [*names, *links]:
            target = there / name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            os.replace(here / name, target)  # noqa: PTH105 (moves a link itself)
