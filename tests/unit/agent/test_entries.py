"""A work directory that somebody outside the task changes while a checkpoint of it is made."""

import errno
import io
import os
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from spotferry.agent.archive import pack, tree
from spotferry.agent.errors import Unreadable
from spotferry.agent.outputs import matching
from spotferry.agent.plan import Options
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
    """A place beside the work directory, which no checkpoint of it may hold."""
    place = path.parents[1] / "outside"
    place.mkdir(exist_ok=True)
    (place / "key").write_bytes(SECRET)
    return place


CHANGES: dict[str, Change] = {
    "vanished": vanish,
    "another file": instead(written(b"new")),
    "link": instead(lambda path: path.symlink_to(_outside(path) / "key")),
    "link to a directory": instead(lambda path: path.symlink_to(_outside(path))),
    "dangling link": instead(lambda path: path.symlink_to("/nowhere")),
    "link to itself": instead(lambda path: path.symlink_to(path.name)),
    "pipe": instead(os.mkfifo),
    "socket": instead(_socket),
    "directory": instead(lambda path: path.mkdir()),
    "directory above it vanished": lambda path: vanish(path.parent),
}
"""What may happen to an entry."""

KINDS: dict[str, Change] = {
    "file": written(b"old"),
    "link": lambda path: path.symlink_to("/old"),
    "directory": _filled,
    "pipe": os.mkfifo,
}
"""What it may have been."""


class Meddler:
    """Changes one entry right before (or after) a system call about it, once.

    Args:
        monkeypatch: replaces the calls.
        path: of the entry.
        change: what is done to it.
        call: before which it happens: "lstat", "open" or "readlink".
        later: it happens after the call instead.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, path: Path, change: Change, call: str, *, later: bool = False
    ) -> None:
        self.struck = False
        real = getattr(os, call)

        def meddled(place: object, *args: object, **options: object) -> object:
            mine = not self.struck and isinstance(place, Path) and place == path
            self.struck = self.struck or mine
            if mine and not later:
                change(path)
            try:
                return real(place, *args, **options)
            finally:
                if mine and later:
                    change(path)

        monkeypatch.setattr(os, call, meddled)


def work_dir(tmp_path: Path, kind: str = "file") -> tuple[Path, Path]:
    """A work directory with an entry of this kind among others; the entry's path."""
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    (root / "a").write_bytes(b"first")
    (root / "z").write_bytes(b"last")
    KINDS[kind](root / "d" / "x")
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


@pytest.mark.parametrize("call", ["lstat", "open"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_archive_is_made_whatever_becomes_of_an_entry(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str, change: str, call: str
) -> None:
    """Between its listing, its status and its opening: the others are there, it is what it is now or nothing, nobody
    waits for a pipe, and nothing outside comes in.
    """
    root, path = work_dir(tmp_path, kind)
    meddler = Meddler(monkeypatch, path, CHANGES[change], call)
    found = contents(packed_and_back(root, tmp_path))
    assert meddler.struck or (call == "open" and kind in {"link", "pipe"})
    assert (found["a"], found["z"]) == (b"first", b"last")
    assert SECRET not in found.values()
    if change == "another file" and kind == "file":
        assert found["d/x"] == b"new"


@pytest.mark.parametrize("change", ["vanished", "another file", "pipe", "directory"])
def test_a_link_that_became_something_else_is_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    """Between its status and its reading."""
    root, path = work_dir(tmp_path, "link")
    assert Meddler(monkeypatch, path, CHANGES[change], "readlink").struck is False
    found = contents(packed_and_back(root, tmp_path))
    assert found.get("d/x") == (b"new" if change == "another file" else None)


@pytest.mark.parametrize("change", CHANGES)
def test_the_paths_engine_skips_it_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str) -> None:
    """It reads while the task runs, so that entries come and go all the time."""
    world = World()
    _, attempt = world.running()
    wire = connect(monkeypatch, Wire(world, attempt))
    agent = Agent(tmp_path / "m", wire, Options(paths=("d", "a")))
    (agent.work / "d").mkdir()
    (agent.work / "a").write_bytes(b"first")
    (agent.work / "d" / "x").write_bytes(b"old")
    meddler = Meddler(monkeypatch, agent.work / "d" / "x", CHANGES[change], "open")
    agent.checkpoint()
    assert meddler.struck
    other = Agent(tmp_path / "other", wire, agent.options)
    assert other.restore() == (1, "")
    assert other.files()["a"] == b"first"
    assert SECRET not in contents(other.work).values()


def test_a_directory_that_vanishes_while_it_is_listed_is_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also after it was opened."""
    root, path = work_dir(tmp_path, "directory")
    Meddler(monkeypatch, path, vanish, "open", later=True)
    assert "d/x/below" not in list(tree(root))


def test_a_work_directory_that_is_gone_is_no_empty_one(tmp_path: Path) -> None:
    """An empty checkpoint would be taken for the job's state."""
    with pytest.raises(Unreadable, match="No such file or directory"):
        list(tree(tmp_path / "gone"))


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
    assert matching(root, ["**/*"]) == ["a", "d", "z"]
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


def refuse(monkeypatch: pytest.MonkeyPatch, path: Path, call: str, number: int) -> None:
    """The system refuses to do this with the entry, with this number; "read" is of a file that could be opened."""
    call, opens = ("open", True) if call == "read" else (call, False)
    real: Callable[..., object] = getattr(os, call)

    def refused(place: object, *args: object, **options: object) -> object:
        if place == path and opens:
            return real(place, os.O_WRONLY)
        if place == path:
            raise OSError(number, os.strerror(number), str(place))
        return real(place, *args, **options)

    monkeypatch.setattr(os, call, refused)


UNREADABLE = [
    ("file", "lstat", errno.EACCES),
    ("file", "open", errno.EACCES),
    ("file", "open", errno.EIO),
    ("file", "open", errno.ESTALE),
    ("file", "open", errno.ELOOP),
    ("file", "read", errno.EBADF),
    ("directory", "open", errno.EACCES),
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
    KINDS[kind](agent.work / "d" / "x")
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


@pytest.mark.parametrize("path", ["d/" + "x" * 5000, "d/\udce4", "d/a\nb"])
def test_a_reason_is_short_and_text(path: str) -> None:
    """Whatever a path is: it travels in a report, and the timeline has it in one line."""
    reason = str(Unreadable(path, OSError(errno.EIO, "Input/output error")))
    assert len(reason) < 400
    assert reason.isprintable()
    assert reason.encode()
