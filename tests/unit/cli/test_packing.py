"""A packed work directory depends on its content alone, and holds what travels, no more."""

import hashlib
import io
import os
import socket
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cli.packing
from cli.errors import Failed, UsageProblem
from cli.packing import Packed, pack

NAMES = st.from_regex(r"[a-z\u00e4][a-z0-9 ._-]{0,8}[a-z]", fullmatch=True)
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=200), max_size=6
).filter(lambda tree: not any(a != b and b.startswith(f"{a}/") for a in tree for b in tree))


def write(folder: Path, tree: Mapping[str, bytes]) -> None:
    """Make the files of a tree."""
    for path, content in tree.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def packed(folder: Path) -> tuple[Packed, bytes]:
    """What was packed, and the archive."""
    archive = io.BytesIO()
    return pack(folder, archive), archive.getvalue()


def unpacked(archive: bytes) -> dict[str, bytes]:
    """The files in an archive."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        files = [(member, tar.extractfile(member)) for member in tar if member.isfile()]
        return {member.name: file.read() for member, file in files if file is not None}


@settings(max_examples=40, deadline=None)
@given(TREES)
def test_the_same_content_is_the_same_archive(tree: Mapping[str, bytes]) -> None:
    """Order of creation, times and the folder's own name change nothing."""
    with TemporaryDirectory() as one, TemporaryDirectory() as two:
        write(Path(one), tree)
        write(Path(two), {path: tree[path] for path in sorted(tree, reverse=True)})
        for path in tree:
            os.utime(Path(two, path), (1, 1))
        first, archive = packed(Path(one))
        assert packed(Path(two)) == (first, archive)
        assert (first.sha256, first.size_bytes) == (hashlib.sha256(archive).hexdigest(), len(archive))


@settings(max_examples=40, deadline=None)
@given(TREES)
def test_what_is_packed_comes_out(tree: Mapping[str, bytes]) -> None:
    """Every file comes back byte for byte, and nothing else does."""
    with TemporaryDirectory() as folder:
        write(Path(folder), tree)
        assert unpacked(packed(Path(folder))[1]) == tree


@settings(max_examples=40, deadline=None)
@given(TREES, st.data())
def test_other_content_is_another_archive(tree: Mapping[str, bytes], data: st.DataObject) -> None:
    """One byte more in one file changes the digest."""
    path = data.draw(st.sampled_from(sorted(tree) or ["file"]))
    with TemporaryDirectory() as folder:
        write(Path(folder), tree)
        before = packed(Path(folder))[0].sha256
        write(Path(folder), {path: tree.get(path, b"") + b"x"})
        assert packed(Path(folder))[0].sha256 != before


@settings(max_examples=40, deadline=None)
@given(TREES)
def test_what_is_ignored_is_never_packed(tree: Mapping[str, bytes]) -> None:
    """No file below an ignored folder, and nothing of git's own, is in the archive."""
    with TemporaryDirectory() as folder:
        write(Path(folder), tree)
        write(Path(folder), {f"secret/{path}": content for path, content in tree.items()})
        write(Path(folder), {".git/config": b"", "sub/.git/HEAD": b"", "a.key": b"", ".gitignore": b"secret/\n*.key\n"})
        names = set(unpacked(packed(Path(folder))[1]))
        assert not {n for n in names if n.startswith("secret/") or ".git" in n.split("/") or n.endswith(".key")}
        assert {path for path in tree if not path.startswith(("secret/", "sub/"))} <= names | {"a.key"}


def test_permissions_empty_folders_and_inner_links_travel(tmp_path: Path) -> None:
    """What a task may rely on is kept; owner and time are not."""
    write(tmp_path, {"run.sh": b"#!/bin/sh\n", "data/in.txt": b"x"})
    (tmp_path / "run.sh").chmod(0o4750)
    (tmp_path / "empty").mkdir()
    (tmp_path / "data" / "link").symlink_to("../run.sh")
    (tmp_path / "later").symlink_to("data/made-later.txt")
    found, archive = packed(tmp_path)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = {member.name: member for member in tar}
    assert members["run.sh"].mode == 0o750
    assert members["empty"].isdir()
    assert members["data/link"].linkname == "../run.sh"
    assert members["later"].linkname == "data/made-later.txt"
    assert {(m.uid, m.gid, m.uname, m.mtime) for m in members.values()} == {(0, 0, "", 946_684_800)}
    assert found.files == 4


@pytest.mark.parametrize("target", ["../outside", "/etc/passwd", "..", "sub/../../outside", "root/../.."])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: str) -> None:
    """What would be broken, or would carry something of this machine, is named."""
    work_dir = tmp_path / "work"
    (work_dir / "sub").mkdir(parents=True)
    (work_dir / "root").symlink_to(".")
    (work_dir / "bad").symlink_to(target)
    with pytest.raises(UsageProblem, match=f"work_dir: .*bad -> {target}.*spotferryignore"):
        packed(work_dir)
    (work_dir / ".spotferryignore").write_text("bad\n")
    assert packed(work_dir)[0].left_out == ("bad",)


def test_the_work_directory_itself_may_be_a_link(tmp_path: Path) -> None:
    """Links inside are judged by where the work directory really is."""
    write(tmp_path / "real", {"a": b"x"})
    (tmp_path / "real" / "b").symlink_to("a")
    (tmp_path / "link").symlink_to("real")
    assert packed(tmp_path / "link") == packed(tmp_path / "real")


def test_sockets_and_pipes_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no archive can carry is left out and said."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        assert packed(tmp_path)[0].unpackable == ("pipe", "socket")


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    """Half of a file is never sent as the whole of it."""
    write(tmp_path, {"a": b"1", "b": b"2" * 100})

    def shrink(_: int) -> None:
        write(tmp_path, {"b": b""})

    def grow(_: int) -> None:
        with (tmp_path / "a").open("ab") as file:
            file.write(b"1")

    with pytest.raises(UsageProblem, match="did it change while it was being packed"):
        pack(tmp_path, io.BytesIO(), shrink)
    write(tmp_path, {"a": b"1"})
    with pytest.raises(UsageProblem, match="grew while it was being packed"):
        pack(tmp_path, io.BytesIO(), grow)


def test_a_file_that_went_away_is_named(tmp_path: Path) -> None:
    """A file that cannot be opened ends the packing with its name."""
    write(tmp_path, {"a": b"1", "b": b"2"})
    with pytest.raises(UsageProblem, match=r"/b cannot be packed: No such file"):
        pack(tmp_path, io.BytesIO(), lambda _: (tmp_path / "b").unlink(missing_ok=True))


def test_a_work_directory_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one upload can hold is refused while it is packed, not after."""
    monkeypatch.setattr(cli.packing, "MAX_ARCHIVE_BYTES", 1024)
    write(tmp_path, {"noise": os.urandom(4096)})
    with pytest.raises(UsageProblem, match="work_dir: packs to more than"):
        packed(tmp_path)


def test_a_full_disk_is_not_bad_input(tmp_path: Path) -> None:
    """Trouble with the place for the archive says how to choose another."""

    class Full(io.BytesIO):
        def write(self, _data: object, /) -> int:
            raise OSError(28, "No space left on device")

    write(tmp_path, {"a": os.urandom(4096)})
    with pytest.raises(Failed, match="TMPDIR"):
        pack(tmp_path, Full())
