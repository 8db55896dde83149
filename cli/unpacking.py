"""Taking an archive of outputs apart without trusting it."""

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from cli.errors import Failed
from cli.output import Json


def unpack(archive: BinaryIO, folder: Path, files: Sequence[Json]) -> None:
    """Put the archive's files into the folder, once all of them were checked.

    Args:
        archive: a .tar.gz, at its start.
        folder: where the files go; those of the same name are replaced.
        files: path, size_bytes and sha256 of each file that must be in it, and of no other.

    Raises:
        Failed: the archive is damaged, leads out of the folder, or does not hold these files; nothing was written.
        OSError: the folder cannot be written to.
    """
    listed = {str(file["path"]): file for file in files}
    with tempfile.TemporaryDirectory(prefix=".spotferry-", dir=folder) as name:
        staging = Path(name)
        try:
            with tarfile.open(fileobj=archive, mode="r:gz") as tar:
                _check_members(tar, listed)
                tar.extractall(staging, filter="data")
        except (tarfile.TarError, EOFError) as error:
            raise Failed(f"the outputs' archive is refused: {error}") from error
        for path, file in listed.items():
            _check_digest(staging, path, file)
        _move(staging, folder)


def _check_members(tar: tarfile.TarFile, listed: dict[str, Json]) -> None:
    """Only listed files, each of its listed size: so an archive cannot unfold to more than was announced."""
    for member in tar:
        if not member.isfile():
            continue
        path = os.path.normpath(member.name)
        if path not in listed:
            raise Failed(f"the outputs' archive holds {member.name}, which the broker's list does not")
        if member.size != int(listed[path]["size_bytes"]):
            raise Failed(f"{path} has {member.size} bytes in the outputs' archive, not {listed[path]['size_bytes']}")


def _check_digest(staging: Path, path: str, file: Json) -> None:
    place = staging / path
    if not place.resolve().is_relative_to(staging.resolve()) or not place.is_file():
        raise Failed(f"{path} is missing from the outputs' archive; try again")
    with place.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != file["sha256"]:
        raise Failed(f"{path} is damaged: its digest is {found}, not {file['sha256']}; try again")


def _move(staging: Path, folder: Path) -> None:
    for source_folder, folders, names in os.walk(staging):
        here = Path(source_folder)
        there = folder / here.relative_to(staging)
        there.mkdir(exist_ok=True)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in [*names, *links]:
            target = there / name
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            os.replace(here / name, target)  # noqa: PTH105 (moves a link itself)
