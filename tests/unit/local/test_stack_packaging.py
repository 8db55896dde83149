"""Packing of functions and layer for the local cloud."""

import io
import os
import zipfile
from pathlib import Path

import pytest

from local.packaging import pack, pack_layer


def make_folder(root: Path, *names: str) -> Path:
    """A folder with these files, each holding its own name."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return root


def names_in(body: bytes) -> list[str]:
    """The names in a zip."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return archive.namelist()


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    """Packing is idempotent: neither the order of creation nor file times nor modes change a byte or the key."""
    first = pack(make_folder(tmp_path / "a" / "fn", "app.py", "data/x.json"))
    folder = make_folder(tmp_path / "b" / "fn", "data/x.json", "app.py")
    os.utime(folder / "app.py", (0, 0))
    (folder / "app.py").chmod(0o600)
    assert pack(folder) == first


def test_another_content_has_another_key(tmp_path: Path) -> None:
    """A changed file changes the key, so that a deployment never runs old code."""
    folder = make_folder(tmp_path / "fn", "app.py")
    before = pack(folder)
    (folder / "app.py").write_text("changed", encoding="utf-8")
    assert pack(folder).key != before.key


def test_what_tools_leave_behind_is_not_packed(tmp_path: Path) -> None:
    """Caches and bytecode stay out: only sources decide what a package is."""
    folder = make_folder(tmp_path / "fn", "app.py", "__pycache__/app.cpython-311.pyc", ".mypy_cache/x.json")
    assert names_in(pack(folder).body) == ["app.py"]


def test_a_layer_lies_where_lambda_looks_for_python(tmp_path: Path) -> None:
    """The package is importable from the layer's `python` folder, data files included."""
    package = make_folder(tmp_path / "spotferry", "__init__.py", "agent/agent.py", "catalog/starter.csv")
    assert names_in(pack_layer(package).body) == [
        "python/spotferry/__init__.py",
        "python/spotferry/agent/agent.py",
        "python/spotferry/catalog/starter.csv",
    ]


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """A folder that is not there, or has nothing to pack, is said so before anything is deployed."""
    with pytest.raises(FileNotFoundError, match="nothing to pack"):
        pack(tmp_path / "missing")
