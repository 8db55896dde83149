"""Archives out and in."""

import hashlib
import io
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from spotferry.agent.archive import add_file, inode_of, pack, tree
from spotferry.agent.codec import BLOCK_BYTES
from spotferry.agent.entries import EntryFile
from spotferry.agent.errors import ArchiveInvalid, Ended, Order
from spotferry.agent.forward import Forward
from spotferry.agent.removal import remove
from spotferry.agent.unpack import unpack


def nothing() -> None:
    """No order."""


def made(path: Path, entries: Sequence[tarfile.TarInfo], content: bytes = b"") -> Path:
    """An archive of these entries, each file with the same content."""
    with tarfile.open(path, "w:gz") as tar:
        for entry in entries:
            entry.size = len(content) if entry.isreg() else 0
            tar.addfile(entry, io.BytesIO(content))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    """One entry."""
    made_entry = tarfile.TarInfo(name)
    made_entry.type, made_entry.linkname = kind, link
    return made_entry


def packed(root: Path, paths: Iterable[str] | None = None) -> bytes:
    """A tree, or some of its entries, as an archive."""
    content = bytearray()
    pack(root, tree(root) if paths is None else paths, content.extend, nothing)
    return bytes(content)


def there_and_back(root: Path, tmp_path: Path) -> Path:
    """Pack a tree and unpack it elsewhere."""
    target = tmp_path / "back"
    target.mkdir()
    unpack(io.BytesIO(packed(root)), target, None, nothing)
    return target


def test_tree_comes_back_as_it_was(tmp_path: Path) -> None:
    """Content, modes, times to the fraction, links of both kinds, pipes, empty and read-only directories."""
    root = tmp_path / "root"
    (root / "empty").mkdir(parents=True)
    (root / "closed").mkdir()
    (root / "closed" / "file").write_bytes(b"content")
    (root / "closed" / "file").chmod(0o640)
    os.utime(root / "closed" / "file", ns=(1, 1_600_000_000_123_000_000))
    (root / "hard").hardlink_to(root / "closed" / "file")
    (root / "soft").symlink_to("/usr/bin/python3")
    (root / "loop").symlink_to(".")
    os.mkfifo(root / "pipe")
    (root / ("n" * 200)).write_text("a long name, ä")
    (root / "closed").chmod(0o555)
    back = there_and_back(root, tmp_path)
    assert list(tree(back)) == list(tree(root))
    file = (back / "closed" / "file").stat()
    assert (stat.S_IMODE(file.st_mode), round(file.st_mtime, 3)) == (0o640, 1_600_000_000.123)
    assert (back / "hard").samefile(back / "closed" / "file")
    assert os.readlink(back / "soft") == "/usr/bin/python3"  # noqa: PTH115  (as written)
    assert stat.S_ISFIFO((back / "pipe").stat().st_mode)
    assert stat.S_IMODE((back / "closed").stat().st_mode) == 0o555


def test_holes_come_back_as_holes(tmp_path: Path) -> None:
    """A sparse file does not fill the disk of the next machine."""
    root = tmp_path / "root"
    root.mkdir()
    with (root / "sparse").open("wb") as file:
        file.seek(16 * 1024 * 1024)
        file.write(b"end")
        file.truncate(17 * 1024 * 1024)
    back = (there_and_back(root, tmp_path) / "sparse").stat()
    assert back.st_size == 17 * 1024 * 1024
    assert back.st_blocks * 512 < 4 * 1024 * 1024


def test_a_tree_deeper_than_the_stack_is_walked(deep_tree: Path) -> None:
    """How deep directories lie in one another is no limit of an archive, but of the file system."""
    assert sum(1 for _ in tree(deep_tree)) == sys.getrecursionlimit() + 1


def test_a_tree_deeper_than_the_stack_comes_back_and_goes(deep_tree: Path, tmp_path: Path) -> None:
    """What an archive holds can be unpacked, and what was unpacked can be deleted, however deep."""
    back = tmp_path / "back"
    try:
        there_and_back(deep_tree, tmp_path)
        assert list(tree(back)) == list(tree(deep_tree))
    finally:
        remove(back)
    assert not back.exists()


def test_files_are_listed_with_their_digests(tmp_path: Path) -> None:
    """Outputs say what they hold."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(b"abc")
    files = pack(tmp_path / "root", ["a"], lambda _: None, nothing, list_files=True)
    assert files == [{"path": "a", "size_bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}]


def test_order_stops_packing(tmp_path: Path) -> None:
    """Whatever the check raises comes out, before the archive is whole."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(os.urandom(12 * BLOCK_BYTES))
    left, content = [10], bytearray()

    def check() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Ended(Order("stop", ""))

    with pytest.raises(Ended):
        pack(tmp_path / "root", ["a"], content.extend, check)
    assert len(content) < 12 * BLOCK_BYTES


def test_a_file_that_somebody_cuts_short_meanwhile_is_filled_up(tmp_path: Path) -> None:
    """The archive stays readable: what is missing of the file is zeros."""
    file = tmp_path / "a"
    file.write_bytes(b"x" * 1000)
    entry_of_it, content = entry("a"), bytearray()
    entry_of_it.size = 1000
    file.write_bytes(b"y" * 10)
    with EntryFile(os.open(file, os.O_RDONLY), "a") as opened:
        add_file(content.extend, entry_of_it, opened)
    with tarfile.open(fileobj=io.BytesIO(content + bytes(1024))) as tar:
        extracted = tar.extractfile("a")
        assert extracted is not None
        assert extracted.read() == b"y" * 10 + bytes(990)


def test_any_tool_reads_an_archive(tmp_path: Path) -> None:
    """Members of one block each are an ordinary gzip stream, and its plain bytes an ordinary tar."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(b"abc" * 500_000)
    (tmp_path / "a.tar.gz").write_bytes(packed(tmp_path / "root"))
    done = subprocess.run(["/bin/tar", "-xzOf", tmp_path / "a.tar.gz", "a"], capture_output=True, check=True)
    assert done.stdout == b"abc" * 500_000


@pytest.mark.parametrize(
    "entries",
    [
        [entry("/absolute")],
        [entry("a/../../outside")],
        [entry("link", tarfile.SYMTYPE, ".."), entry("link/outside")],
        [entry("link", tarfile.SYMTYPE, ".."), entry("link/sub/outside")],
        [entry("hard", tarfile.LNKTYPE, "../outside")],
        [entry("hard", tarfile.LNKTYPE, "never-there")],
        [entry("soft", tarfile.SYMTYPE, "/etc/passwd"), entry("hard", tarfile.LNKTYPE, "soft")],
        [entry("device", tarfile.CHRTYPE)],
        [entry("file"), entry("file/below")],
    ],
)
def test_archive_that_reaches_outside_is_refused(tmp_path: Path, entries: list[tarfile.TarInfo]) -> None:
    """Nothing is written outside the directory, whatever an archive says."""
    target = tmp_path / "in" / "target"
    target.mkdir(parents=True)
    with pytest.raises(ArchiveInvalid):
        unpack(io.BytesIO(made(tmp_path / "a.tar.gz", entries, b"x").read_bytes()), target, None, nothing)
    assert list((tmp_path / "in").iterdir()) == [target]


def test_link_is_replaced_not_followed(tmp_path: Path) -> None:
    """A file after a link of the same name takes its place; what the link pointed to is untouched."""
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "victim").write_text("safe")
    entries = [entry("x", tarfile.SYMTYPE, "../victim"), entry("./x")]
    unpack(io.BytesIO(made(tmp_path / "a.tar.gz", entries, b"new").read_bytes()), target, None, nothing)
    assert (tmp_path / "victim").read_text() == "safe"
    assert (target / "x").read_bytes() == b"new"


def test_no_more_than_a_block_is_asked_of_a_stream_at_once() -> None:
    """Also where tar skips what nobody wants: a foreign stream makes room for all that it is asked for."""
    asked: list[int] = []

    class Endless:
        """Gives whatever is asked of it."""

        def read(self, size: int = -1) -> bytes:
            """Zeros."""
            asked.append(size)
            return bytes(min(size, 300_000))

    stream = Forward(Endless())
    assert stream.seek(20 * BLOCK_BYTES) == stream.tell() == 20 * BLOCK_BYTES
    assert len(stream.read(BLOCK_BYTES)) == BLOCK_BYTES
    assert len(stream.some(5 * BLOCK_BYTES)) == 300_000
    assert 0 < max(asked) <= BLOCK_BYTES


@pytest.mark.parametrize("keep", [0, 1, 20, 50_000, -9, -1])
def test_damaged_archive_is_refused(tmp_path: Path, keep: int) -> None:
    """Cut short anywhere, or not an archive at all."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a").write_bytes(os.urandom(100_000))
    content = packed(tmp_path / "root")[:keep]
    (tmp_path / "target").mkdir()
    with pytest.raises(ArchiveInvalid, match="damaged"):
        unpack(io.BytesIO(content), tmp_path / "target", None, nothing)


@pytest.mark.parametrize("keep", [0, 1, 20, 50_000, -9, -1])
def test_damaged_archive_of_another_tool_is_refused(tmp_path: Path, keep: int) -> None:
    """The command's own archives are one gzip member."""
    content = made(tmp_path / "a.tar.gz", [entry("a")], os.urandom(100_000)).read_bytes()[:keep]
    (tmp_path / "target").mkdir()
    with pytest.raises(ArchiveInvalid, match="damaged"):
        unpack(io.BytesIO(content), tmp_path / "target", None, nothing)


def test_a_number_that_another_file_got_meanwhile_is_no_hard_link() -> None:
    """A disk gives the number of a deleted file to the next one: time of change and size tell the two apart."""
    said = {"st_dev": 1, "st_ino": 2, "st_ctime_ns": 3, "st_size": 4}
    statuses = [SimpleNamespace(**said), *(SimpleNamespace(**{**said, name: 9}) for name in said)]
    assert len({inode_of(cast("os.stat_result", status)) for status in statuses}) == 5


def test_a_file_that_becomes_a_directory_while_it_is_packed_holds_nothing(tmp_path: Path) -> None:
    """It is what it was when it was looked at: an archive with entries below a file could not be unpacked."""
    root, turns = tmp_path / "root", iter(range(10))
    root.mkdir()
    (root / "d").write_text("a file")

    def changing() -> None:
        if next(turns) == 1:
            (root / "d").unlink()
            (root / "d").mkdir()
            (root / "d" / "x").write_text("below it")

    content, back = bytearray(), tmp_path / "back"
    back.mkdir()
    pack(root, ["d", "d/x"], content.extend, changing)
    unpack(io.BytesIO(content), back, None, nothing)
    assert (back / "d").read_text() == "a file"
