"""Packs functions and layer for the local cloud, from the tree as it is: docs/decisions/0002-deploy-without-sam-cli.md.

The local layer holds the package alone: the libraries come from the environment that runs the emulator. A zip of the
same files is the same bytes, so its digest names it.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time a zip can hold; the same for every file, so that bytes repeat
REGULAR_FILE_MODE = 0o100644
IGNORED_PARTS = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"})


@dataclass(frozen=True, slots=True)
class Package:
    """A zip and the key that it is stored under."""

    body: bytes
    key: str


def pack(folder: Path, prefix: str = "") -> Package:
    """Zip a folder's source files, each under the prefix; the same files give the same bytes.

    Raises:
        FileNotFoundError: the folder has no file to pack.
    """
    files = sorted(_sources(folder), key=lambda path: path.relative_to(folder).as_posix())
    if not files:
        raise FileNotFoundError(f"There is nothing to pack in {folder}.")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(prefix + path.relative_to(folder).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = REGULAR_FILE_MODE << 16
            archive.writestr(entry, path.read_bytes())
    body = buffer.getvalue()
    return Package(body, f"{folder.name}-{hashlib.sha256(body).hexdigest()[:16]}.zip")


def pack_layer(package: Path) -> Package:
    """Zip a Python package as a layer, where Lambda's Python looks for it."""
    return pack(package, prefix=f"python/{package.name}/")


def _sources(folder: Path) -> Iterable[Path]:
    for path in folder.rglob("*"):
        if path.is_file() and not IGNORED_PARTS.intersection(path.parts) and path.suffix != ".pyc":
            yield path
