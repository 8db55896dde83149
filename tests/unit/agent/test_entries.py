"""A work directory that somebody outside the task changes while a checkpoint of it is made."""

import errno
import io
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spotferry.agent.archive import pack, tree
from spotferry.agent.directories import Directories
from spotferry.agent.entries import Entries
from spotferry.agent.errors import Unreadable
from spotferry.agent.outputs import matching
from spotferry.agent.plan import Options
from spotferry.agent.removal import remove
from spotferry.agent.results import FAILURES
from spotferry.agent.unpack import unpack
from spotferry.agent.world import is_self_link
from tests.unit.agent.in_process import Agent, Wire, connect
from tests.unit.usecases.world import World

Change = Callable[[Path], None]
SECRET = b"not of the work directory"


def nothing() -> None:
    """No order."""


def vanish(path: Path) -> None:
    """It is deleted, with all that it holds."""
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def instead(make: Change) -> Change:
    """It is deleted, and something else made in its place."""

    def change(path: Path) -> None:
        vanish(path)
        make(path)

    return change


def written(content: bytes) -> Change:
    """A file is made."""

    def change(path: Path) -> None:
        path.write_bytes(content)

    return change


def _filled(path: Path) -> None:
    path.mkdir()
    (path / "below").write_bytes(b"old")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def _outside(path: Path) -> Path:
    """A place beside the work directory, which no checkpoint of it may hold; it has an entry of the same name."""
    place = path.parents[2] / "outside"
    place.mkdir(exist_ok=True)
    (place / "key").write_bytes(SECRET)
    (place / path.name).write_bytes(SECRET)
    return place


def _led_outside(path: Path) -> None:
    """The directory above it becomes a link."""
    vanish(path.parent)
    path.parent.symlink_to(_outside(path))


CHANGES: dict[str, tuple[Change, str]] = {
    "vanished": (vanish, "nothing"),
    "another file": (instead(written(b"new")), "file of new"),
    "link": (instead(lambda path: path.symlink_to(_outside(path) / "key")), "link"),
    "link to a directory": (instead(lambda path: path.symlink_to(_outside(path))), "link"),
    "dangling link": (instead(lambda path: path.symlink_to("/nowhere")), "link"),
    "link to itself": (instead(lambda path: path.symlink_to(path.name)), "link"),
    "pipe": (instead(os.mkfifo), "pipe"),
    "socket": (instead(_socket), "nothing"),
    "directory": (instead(lambda path: path.mkdir()), "directory"),
    "directory above it vanished": (lambda path: vanish(path.parent), "nothing"),
    "directory above it became a link": (_led_outside, "nothing"),
}
"""What may happen to an entry, and what an archive then has of it."""

KINDS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "file": (written(b"old"), ("walk", "stat", "open")),
    "link": (lambda path: path.symlink_to("/old"), ("walk", "stat", "readlink")),
    "directory": (_filled, ("walk", "stat", "list")),
    "pipe": (os.mkfifo, ("walk", "stat")),
}
"""What it may have been, and the system calls about it, in order."""


class Meddler:
    """Acts at one system call about an entry, once: the seam through which these tests see what the agent asks.

    Args:
        monkeypatch: replaces the calls.
        path: of the entry; the directory above is there.
        call: "walk" (its directory is opened, for what is in it), "list" (it is opened as a directory), "open" (as a
            file), "stat" or "readlink".
        act: what is done; may raise.
        later: it happens after the call instead.
        flags: what it is opened with instead.

    Attributes:
        struck: it happened.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        path: Path,
        call: str,
        act: Callable[[], None],
        *,
        later: bool = False,
        flags: int | None = None,
    ) -> None:
        self.struck = False
        self._entry = path.parent if call == "walk" else path
        self._above = self._entry.parent.stat()
        self._call = call
        name = call if call in ("stat", "readlink") else "open"
        real = getattr(os, name)

        def meddled(place: object, *args: int, **options: Any) -> object:  # Any: as the call has them
            if self.struck or not self._is_mine(place, *args, **options):
                return real(place, *args, **options)
            self.struck = True
            if not later:
                act()
            try:
                return real(place, *(args if flags is None else (flags,)), **options)
            finally:
                if later:
                    act()

        monkeypatch.setattr(os, name, meddled)

    def _is_mine(self, place: object, flags: int = 0, *, dir_fd: int | None = None, **_: object) -> bool:
        """Whether it is the call, about the entry: by its name in its directory, whichever way that was found."""
        wanted = {"walk": os.O_PATH | os.O_DIRECTORY, "list": os.O_DIRECTORY}.get(self._call, 0)
        if place != self._entry.name or dir_fd is None or flags & (os.O_PATH | os.O_DIRECTORY) != wanted:
            return False
        return os.path.samestat(os.fstat(dir_fd), self._above)


def work_dir(tmp_path: Path, kind: str = "file") -> tuple[Path, Path]:
    """A work directory with an entry of this kind among others; the entry's path."""
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    (root / "a").write_bytes(b"first")
    (root / "z").write_bytes(b"last")
    KINDS[kind][0](root / "d" / "x")
    return root, root / "d" / "x"


def packed_and_back(root: Path, tmp_path: Path) -> Path:
    """What an archive of it holds."""
    content, back = bytearray(), tmp_path / "back"
    pack(root, tree(root), content.extend, nothing)
    back.mkdir()
    unpack(io.BytesIO(content), back, None, nothing)
    return back


def contents(root: Path) -> dict[str, bytes]:
    """Its files, links not followed."""
    return {path: (root / path).read_bytes() for path in tree(root) if stat.S_ISREG((root / path).lstat().st_mode)}


def kind_of(path: Path) -> str:
    """What is there, in the words of CHANGES."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return "nothing"
    if stat.S_ISREG(mode):
        return f"file of {path.read_text()}"
    return {stat.S_IFLNK: "link", stat.S_IFIFO: "pipe", stat.S_IFDIR: "directory"}[stat.S_IFMT(mode)]


@pytest.mark.parametrize(("kind", "call"), [(kind, call) for kind in KINDS for call in KINDS[kind][1]])
@pytest.mark.parametrize("change", CHANGES)
def test_an_archive_is_made_whatever_becomes_of_an_entry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, change: str, call: str
) -> None:
    """Between any two calls about it: the others are there, it is what it is now or nothing, nobody waits for a pipe,
    and nothing outside comes in.
    """
    root, path = work_dir(tmp_path, kind)
    act, becomes = CHANGES[change]
    meddler = Meddler(monkeypatch, path, call, lambda: act(path))
    back = packed_and_back(root, tmp_path)
    assert meddler.struck
    found = contents(back)
    assert (found["a"], found["z"]) == (b"first", b"last")
    assert SECRET not in found.values()
    assert kind_of(back / "d" / "x") == ("directory" if call == "list" else becomes)
    assert "d/x/below" not in found


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("call", KINDS["file"][1])
def test_the_paths_engine_skips_it_as_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str, call: str
) -> None:
    """It reads while the task runs, so that entries come and go all the time."""
    world = World()
    _, attempt = world.running()
    wire = connect(monkeypatch, Wire(world, attempt))
    agent = Agent(tmp_path / "m", wire, Options(paths=("d", "a")))
    path = agent.work / "d" / "x"
    path.parent.mkdir()
    (agent.work / "a").write_bytes(b"first")
    path.write_bytes(b"old")
    act, becomes = CHANGES[change]
    meddler = Meddler(monkeypatch, path, call, lambda: act(path))
    agent.checkpoint()
    assert meddler.struck
    other = Agent(tmp_path / "other", wire, agent.options)
    assert other.restore() == (1, "")
    assert (other.work / "a").read_bytes() == b"first"
    assert kind_of(other.work / "d" / "x") == becomes
    assert SECRET not in contents(other.work).values()


def test_a_link_above_an_entry_is_not_followed(tmp_path: Path) -> None:
    """A directory that was listed, and became a link before what is in it is looked at, is gone with all of it; also
    where somebody looked at it before.
    """
    root, path = work_dir(tmp_path, "directory")
    (path / "deeper").mkdir()
    (path / "deeper" / "key").write_bytes(b"old")
    outside = _outside(path)
    (outside / "deeper").mkdir()
    (outside / "deeper" / "key").write_bytes(SECRET)
    with Entries(root) as before:
        assert before.listing("d/x/deeper") == [("key", False)]
        vanish(path)
        path.symlink_to(outside)
        for entries in (before, Entries(root)):
            with entries, entries.look("d/x/deeper/key") as deeper, entries.look("d/x/key") as found:
                assert (deeper, found) == (None, None)
                assert (entries.listing("d/x/deeper"), entries.listing("d/x")) == ([], [])


@pytest.mark.parametrize("call", ["walk", "list"])
def test_a_link_is_no_directory_whatever_the_kernel_calls_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, call: str
) -> None:
    """ENOTDIR or ELOOP: what was in the directory is gone."""
    root, path = work_dir(tmp_path, "directory")
    refuse(monkeypatch, path / "below" if call == "walk" else path, call, errno.ELOOP)
    with Entries(root) as entries, entries.look("d/x/below" if call == "walk" else "d/none") as found:
        assert found is None
        assert entries.listing("d/x" if call == "list" else "d/x/below") == []


def test_a_tree_longer_than_any_path_is_archived(tmp_path: Path) -> None:
    """The system takes paths of 4096 bytes; what is deeper is read, comes back, and goes."""
    root, back = tmp_path / "work", tmp_path / "back"
    root.mkdir()
    steps, begun = ["d" * 200] * 50, os.open(".", os.O_RDONLY)
    try:
        os.chdir(root)
        for step in steps:
            Path(step).mkdir()
            os.chdir(step)
            Path("file").write_bytes(step[:3].encode())
        Path("again").hardlink_to("file")
    finally:
        os.fchdir(begun)
        os.close(begun)
    packed_and_back(root, tmp_path)
    paths = list(tree(back))
    assert len(paths) == 2 * len(steps) + 1
    assert paths == list(tree(root))
    with Entries(back) as entries, entries.look("/".join([*steps, "again"])) as found:
        assert found is not None
        assert found.file is not None
        assert (found.status.st_nlink, found.file.read()) == (2, b"ddd")
    for directory in (root, back):
        remove(directory)


def test_a_long_path_is_no_path_of_a_checkpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The paths engine could not put it back: it says so before the checkpoint counts."""
    world = World()
    _, attempt = world.running()
    agent = Agent(tmp_path / "m", connect(monkeypatch, Wire(world, attempt)), Options(paths=("d" * 200,)))
    place = agent.work
    for _ in range(18):
        place /= "d" * 200
        place.mkdir()
    with pytest.raises(Unreadable, match=r"cannot be read \(File name too long\): .*checkpoint.paths"):
        agent.checkpoint()


def test_a_walk_costs_the_directories_and_not_their_entries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is above many files is opened once, and no more is open at a time than a process may have."""
    root = tmp_path / "work"
    for name in ("a/b/c", "a/b/d", "e"):
        (root / name).mkdir(parents=True)
        for number in range(100):
            (root / name / str(number)).write_bytes(b"")
    paths, real, opened = list(tree(root)), os.open, list[str]()

    def counted(place: str, flags: int, **options: Any) -> int:  # Any: as the call has them
        opened.append(str(place))
        return real(place, flags, **options)

    monkeypatch.setattr(os, "open", counted)
    with Directories(root) as directories:
        for path in paths:
            directories.above(path)
    assert opened == [str(root), "a", "b", "c", "d", "e"]


def test_a_walk_keeps_few_descriptors(deep_tree: Path) -> None:
    """However deep the tree is; and gives all of them back."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (names alone)
    with Directories(deep_tree) as directories:
        for path in tree(deep_tree):
            directories.above(path)
        assert len(os.listdir("/proc/self/fd")) < before + 100  # noqa: PTH208  (names alone)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208  (names alone)


@pytest.mark.parametrize("change", CHANGES)
def test_a_directory_that_changes_while_it_is_listed_is_empty(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    """Also after it was opened."""
    root, path = work_dir(tmp_path, "directory")
    meddler = Meddler(monkeypatch, path, "list", lambda: CHANGES[change][0](path), later=True)
    assert "d/x/below" not in list(tree(root))
    assert meddler.struck


def test_a_work_directory_that_is_gone_is_no_empty_one(tmp_path: Path) -> None:
    """An empty checkpoint would be taken for the job's state."""
    with pytest.raises(Unreadable, match="No such file or directory"):
        list(tree(tmp_path / "gone"))
    with pytest.raises(Unreadable, match="No such file or directory"):
        pack(tmp_path / "gone", ["x"], lambda _: None, nothing)


def test_patterns_are_matched_while_directories_come_and_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One that vanishes right before it is listed is looked past."""
    root, path = work_dir(tmp_path, "directory")
    real, struck = os.scandir, list[str]()

    def scandir(place: Path) -> object:
        if str(place) == str(path) and not struck:
            struck.append(str(place))
            vanish(path)
        return real(place)

    monkeypatch.setattr(os, "scandir", scandir)
    assert matching(root, ["**/*"]).paths == ["a", "d", "z"]
    assert struck


def test_the_agents_own_link_may_vanish(tmp_path: Path) -> None:
    """It is one while it leads to its own directory, and nothing else is."""
    root = tmp_path / "work"
    root.mkdir()
    assert not is_self_link("work", root)
    (root / "work").symlink_to(".")
    assert is_self_link("work", root)
    assert not is_self_link("other", root)
    (root / "work").unlink()
    (root / "work").mkdir()
    assert not is_self_link("work", root)


def refuse(monkeypatch: pytest.MonkeyPatch, path: Path, call: str, number: int, times: int = 5) -> None:
    """The system refuses to do this with the entry, with this number, so often; "read" is of a file that could be
    opened.
    """

    def act() -> None:
        raise OSError(number, os.strerror(number), path.name)

    if call == "read":
        Meddler(monkeypatch, path, "open", lambda: None, flags=os.O_WRONLY)
        return
    for _ in range(times):
        Meddler(monkeypatch, path, call, act)


UNREADABLE = [
    ("file", "walk", errno.EACCES),
    ("file", "stat", errno.EACCES),
    ("file", "open", errno.EACCES),
    ("file", "open", errno.EIO),
    ("file", "open", errno.ESTALE),
    ("file", "open", errno.ELOOP),
    ("file", "read", errno.EBADF),
    ("directory", "list", errno.EACCES),
    ("link", "readlink", errno.EIO),
]
"""What cannot be read, at which call, and what the system says."""


@pytest.mark.parametrize(("kind", "call", "number"), UNREADABLE)
@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (Options(engine="workdir"), "name in checkpoint.paths what a checkpoint needs"),
        (Options(paths=("d",)), "name it neither in checkpoint.paths nor in outputs"),
    ],
    ids=["workdir", "paths"],
)
def test_what_cannot_be_read_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: Options, advice: str, kind: str, call: str, number: int
) -> None:
    """The checkpoint fails, for it is whole or none, and the reason is one for the timeline; the next one is made once
    the entry can be read.
    """
    world = World()
    _, attempt = world.running()
    agent = Agent(tmp_path / "m", connect(monkeypatch, Wire(world, attempt)), options)
    (agent.work / "d").mkdir()
    KINDS[kind][0](agent.work / "d" / "x")
    with monkeypatch.context() as patched:
        refuse(patched, agent.work / "d" / "x", call, number)
        with pytest.raises(Unreadable) as failed:
            agent.checkpoint()
    said = f"'d/x' cannot be read ({os.strerror(number)}): make it readable or delete it, or {advice}"
    assert str(failed.value).startswith(said)
    assert isinstance(failed.value, FAILURES)
    assert agent.checkpoint() == 1


def test_outputs_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the key of the job file that can leave them out."""
    world = World()
    _, attempt = world.running()
    agent = Agent(tmp_path / "m", connect(monkeypatch, Wire(world, attempt)))
    (agent.work / "x").write_bytes(b"old")
    refuse(monkeypatch, agent.work / "x", "open", errno.EACCES)
    with pytest.raises(Unreadable, match=r"'x' cannot be read .*or leave it out of outputs"):
        agent.saving.send_outputs(("x",), nothing)


def test_outputs_that_are_not_there_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The commit names the patterns that matched nothing, as many as it takes and as far as they are text."""
    world = World()
    _, attempt = world.running(outputs=["x"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    wire = connect(monkeypatch, Wire(world, attempt))
    agent = Agent(tmp_path / "m", wire)
    (agent.work / "x").write_bytes(b"there")
    agent.saving.send_outputs(("x", "\udce4", *(f"no{n}" for n in range(150))), nothing)
    assert wire.commits[0]["missed"] == [f"no{n}" for n in range(100)]


@pytest.mark.parametrize("path", ["d/" + "x" * 5000, "d/\udce4", "d/a\nb"])
def test_a_reason_is_short_and_text(path: str) -> None:
    """Whatever a path is: it travels in a report, and the timeline has it in one line."""
    reason = str(Unreadable(path, OSError(errno.EIO, "Input/output error")))
    assert len(reason) < 400
    assert reason.isprintable()
    assert reason.encode()
