"""Files with holes travel without them, and have them again where they arrive."""

import hashlib
import io
import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotferry.agent import holes
from spotferry.agent.archive import pack, tree
from spotferry.agent.codec import ZSTD
from spotferry.agent.entries import EntryFile
from spotferry.agent.holes import Segment, segments_of
from spotferry.agent.plan import Options
from spotferry.agent.unpack import unpack
from tests.unit.agent.in_process import Agent, Wire, connect
from tests.unit.usecases.world import World

MIB = 1024**2
TIB = 1024**4
KIB64 = 64 * 1024


def nothing() -> None:
    """No order."""


def sparse(path: Path, size: int, *places: int, content: bytes = b"data") -> Path:
    """A file of holes but for some content at these places."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for place in places:
            file.seek(place)
            file.write(content)
        file.truncate(size)
    return path


def there_and_back(root: Path, target: Path) -> None:
    """Pack a tree as a checkpoint is, and unpack it."""
    content = bytearray()
    pack(root, tree(root), content.extend, nothing, codec=ZSTD)
    target.mkdir()
    unpack(io.BytesIO(content), target, None, nothing)


def assert_same(path: Path, size: int, *places: int) -> None:
    """It is such a file, and takes no more of the disk than it should."""
    status = path.stat()
    assert status.st_size == size
    assert status.st_blocks * 512 < len(places) * 3 * MIB
    with path.open("rb") as file:
        for place in places:
            file.seek(place)
            assert file.read(4) == b"data"


PLACES = (0, TIB // 2, TIB - 4)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Options], Agent]:
    """Makes machines of a job."""
    world = World()
    _, attempt = world.running()
    wire = connect(monkeypatch, Wire(world, attempt))
    numbers = iter(range(9))
    return lambda options: Agent(tmp_path / f"m{next(numbers)}", wire, options=options)


@pytest.mark.parametrize("options", [Options(), Options(paths=("db",))])
def test_a_terabyte_of_holes_takes_seconds(machine: Callable[[Options], Agent], options: Options) -> None:
    """As LMDB makes it, with data at both ends and in the middle; by either engine, and its holes stay holes."""
    began = time.monotonic()
    first, second = machine(options), machine(options)
    sparse(first.work / "db" / "data.mdb", TIB, *PLACES)
    (first.work / "db" / "z").write_text("after it")
    first.checkpoint()
    assert second.restore() == (1, "")
    assert_same(second.work / "db" / "data.mdb", TIB, *PLACES)
    assert (second.work / "db" / "z").read_text() == "after it"
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("size", [0, 1, 5 * MIB, 64 * MIB])
def test_a_file_of_nothing_but_a_hole(tmp_path: Path, size: int) -> None:
    """It has its length again."""
    sparse(tmp_path / "a" / "f", size)
    there_and_back(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "f").stat().st_size == size
    assert (tmp_path / "b" / "f").stat().st_blocks == 0


@pytest.mark.parametrize("name", ["f", "n" * 200, "d/" * 60 + "f", "\xe4", "\udce4"])
def test_other_tools_read_it(tmp_path: Path, name: str) -> None:
    """Python's library and the tar command: bytes, names and what comes after the file."""
    root, size = tmp_path / "a", 20 * MIB + 7
    file = sparse(root / name, size, 0, 9 * MIB, size - 4)
    (root / "zz").write_text("after it")
    os.utime(file, ns=(5, 1_600_000_000_500_000_000))
    content = bytearray()
    pack(root, tree(root), content.extend, nothing)
    (tmp_path / "a.tar.gz").write_bytes(content)
    assert (tmp_path / "a.tar.gz").stat().st_size < MIB
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    for extract in (by_library, by_command):
        target = tmp_path / extract.__name__
        target.mkdir()
        extract(tmp_path / "a.tar.gz", target)
        assert hashlib.sha256((target / name).read_bytes()).hexdigest() == digest
        assert (target / name).stat().st_mtime == 1_600_000_000.5
        assert (target / "zz").read_text() == "after it"


def by_library(archive: Path, target: Path) -> None:
    """Python's tarfile."""
    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")


def by_command(archive: Path, target: Path) -> None:
    """GNU tar."""
    subprocess.run(["tar", "-xzf", archive, "-C", target], check=True)  # noqa: S607


def test_a_listed_file_is_read_whole(tmp_path: Path) -> None:
    """Outputs say the digest of all of it, and hold it as every tool knows it."""
    file, content = sparse(tmp_path / "a" / "f", 8 * MIB, 5), bytearray()
    (said,) = pack(tmp_path / "a", ["f"], content.extend, nothing, list_files=True)
    assert said["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert not tar.getmembers()[0].issparse()


@pytest.mark.parametrize("change", [0, MIB, 30 * MIB])
def test_a_file_that_changes_meanwhile_has_the_length_of_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    """Shorter or longer by then: the archive stays readable, and what comes after it is there."""
    file = sparse(tmp_path / "a" / "f", 20 * MIB, 0, 10 * MIB)
    (tmp_path / "a" / "z").write_text("after it")
    look = EntryFile.segments

    def changing(self: EntryFile, status: os.stat_result) -> list[Segment] | None:
        found = look(self, status)
        if status.st_size == 20 * MIB:
            os.truncate(file, change)
        return found

    monkeypatch.setattr(EntryFile, "segments", changing)
    there_and_back(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "f").stat().st_size == 20 * MIB
    assert (tmp_path / "b" / "z").read_text() == "after it"


def test_the_list_of_segments_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Very many holes: what lies between the smallest is taken together, and no byte is lost."""
    monkeypatch.setattr(holes, "MOST_SEGMENTS", 8)
    places = [n * 128 * 1024 for n in range(50)] + [40 * MIB]
    file = sparse(tmp_path / "a" / "f", 64 * MIB, *places)
    descriptor = os.open(file, os.O_RDONLY)
    found = segments_of(descriptor, file.stat())
    os.close(descriptor)
    assert found is not None
    assert len(found) <= 8
    assert all(any(start <= place < start + length for start, length in found) for place in places)
    there_and_back(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "f").read_bytes() == file.read_bytes()


_LAYOUT = st.lists(
    st.tuples(st.integers(0, 200), st.sampled_from([1, 4096, KIB64, 3 * KIB64]), st.booleans()), max_size=8
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(layout=_LAYOUT, rest=st.sampled_from([0, 1, 511, 512, 5 * MIB, 9 * MIB + 1]))
def test_any_layout_comes_back(monkeypatch: pytest.MonkeyPatch, layout: list[tuple[int, int, bool]], rest: int) -> None:
    """Bytes anywhere, zeros among them: the same file, by either engine."""
    world = World()
    _, attempt = world.running()
    with monkeypatch.context() as patched, tempfile.TemporaryDirectory() as directory:
        wire = connect(patched, Wire(world, attempt))
        for number, options in enumerate((Options(), Options(paths=("f",)))):
            first, second = (Agent(Path(directory) / f"{number}{name}", wire, options=options) for name in "ab")
            file = laid_out(first.work / "f", layout, rest)
            first.checkpoint()
            second.restore()
            assert (second.work / "f").read_bytes() == file.read_bytes()
            filled = (second.work / "f").stat().st_blocks - file.stat().st_blocks
            assert filled * 512 < holes.LEAST_HOLES_BYTES + MIB


def laid_out(path: Path, layout: list[tuple[int, int, bool]], rest: int) -> Path:
    """A file with blocks of bytes, or of zeros, at some places, and a hole at its end."""
    with path.open("wb") as file:
        for place, length, is_zeros in layout:
            file.seek(place * KIB64)
            file.write(bytes(length) if is_zeros else os.urandom(length))
        file.truncate(file.seek(0, os.SEEK_END) + rest)
    return path
