"""When processes travel, and what happens where they cannot."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from spotferry.agent import criu as program
from spotferry.agent.archive import pack, tree
from spotferry.agent.criu import Criu
from spotferry.agent.criu_engine import IMAGES_PART, CriuEngine
from spotferry.agent.engines import AUTO, CRIU, WORKDIR, choose
from spotferry.agent.errors import ArchiveInvalid, CriuFailed
from spotferry.agent.fingerprint import fingerprint
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Options, Part, Saved
from spotferry.agent.subject import Fate
from spotferry.agent.task import TASK, Runner
from spotferry.agent.workdir import WORKDIR_PART


def nothing() -> None:
    """Nobody gives up."""


class FakeRunner:
    """A task of one process: this one."""

    leader = os.getpid()

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "job.log"
        self.has_strays = False

    def living(self) -> list[int]:
        """Itself."""
        return [self.leader]

    def strays(self) -> bool:
        """As the test says."""
        return self.has_strays

    def script_file(self, name: str) -> Path:
        """Where its lines are."""
        return self.folder / f"{name}.sh"


class FakePlace:
    """A work directory that remembers what took its place."""

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects = objects
        self.replaced: list[str] = []

    def replace_by(self, part: Part, check: object) -> None:
        """Remember it."""
        del check
        self.replaced.append(part.name)

    @contextmanager
    def fetched(self, part: Part, check: object) -> Iterator[Any]:  # Any: as much of an Incoming as unpack uses
        """The part's bytes."""
        del check
        stream: Any = io.BytesIO(self.objects[part.name])
        stream.verify = lambda: None
        yield stream


class Rig:
    """An engine on a machine that has a CRIU of the test's making."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.runner = FakeRunner(folder)
        (folder / "made" / "images").mkdir(parents=True)
        (folder / "made" / TASK).write_text("echo the old machine's lines")
        packed = bytearray()
        pack(folder / "made", tree(folder / "made"), packed.extend, nothing)
        self.place = FakePlace({IMAGES_PART: bytes(packed)})
        self.alone = False
        self.refused = ""
        self.restores: list[Path] = []
        (folder / "spool").mkdir()
        monkeypatch.setattr(program, "find", lambda _path: Criu("/criu"))
        monkeypatch.setattr(Criu, "refusal", lambda _criu: self.refused)
        monkeypatch.setattr(Criu, "restore", lambda _criu, images, _log: self._restored(images))
        self.engine = CriuEngine(
            cast("WorkPlace", self.place),
            cast("Runner", self.runner),
            folder / "spool",
            lambda: "/bin",
            lambda: self.alone,
        )

    def _restored(self, images: Path) -> int:
        self.restores.append(images)
        if self.refused == "at the restore":
            raise CriuFailed("criu restore: Can't fork for 7: File exists")
        return 7

    def saved(self, **machine: str) -> Saved:
        """A checkpoint, made on a machine like this one but for what the test says."""
        parts = tuple(Part(name, "http://x", "", 1) for name in (IMAGES_PART, WORKDIR_PART))
        return Saved(3, CRIU, parts, {**fingerprint(), **machine})


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """The engine."""
    return Rig(tmp_path, monkeypatch)


def test_an_ordinary_tree_can_be_dumped(rig: Rig) -> None:
    """Nothing speaks against it."""
    assert rig.engine.refusal() == ""


def test_what_speaks_against_a_dump(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program, a kernel that cannot, a GPU, a process that left the tree, no room: each is named."""
    monkeypatch.setattr(program, "memory_bytes", lambda _pids: 2**62)
    assert rig.engine.refusal() == "the disk has no room for the task's memory"
    rig.runner.has_strays = True
    assert rig.engine.refusal() == "the task has processes outside its own tree"
    monkeypatch.setattr(program, "accelerator_of", lambda _pids: "/dev/nvidia0")
    assert rig.engine.refusal() == "the task uses /dev/nvidia0, whose memory no image holds"
    monkeypatch.setattr(program, "find", lambda _path: None)
    assert rig.engine.refusal() == "criu is not installed"


def test_a_program_is_tried_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal of the kernel's is asked for anew only when another program is found."""
    rig.refused = "it cannot"
    assert rig.engine.refusal() == "it cannot"
    rig.refused = ""
    assert rig.engine.refusal() == "it cannot"
    monkeypatch.setattr(program, "find", lambda _path: Criu("/other"))
    assert rig.engine.refusal() == ""


def test_processes_come_back_once(rig: Rig) -> None:
    """With their files and the lines that their shell reads; whoever starts the task gets them, and nobody else."""
    assert rig.engine.restore(rig.saved(), nothing) == ""
    assert rig.place.replaced == [WORKDIR_PART]
    assert rig.runner.script_file(TASK).read_text() == "echo the old machine's lines"
    assert (rig.engine.brought(), rig.engine.brought()) == (7, None)


@pytest.mark.parametrize(
    ("machine", "refused", "why"),
    [
        ({"arch": "riscv"}, "", "it was made on riscv, this is "),
        ({"cpu_flags": "telepathy"}, "", "this processor lacks telepathy"),
        ({}, "criu does not work on this kernel", "criu does not work on this kernel"),
        ({}, "at the restore", "criu restore: Can't fork for 7: File exists"),
    ],
)
def test_where_processes_cannot_go_on_their_files_do(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, machine: dict[str, str], refused: str, why: str
) -> None:
    """The task begins anew in its files, with the reason; a job that wants its processes or nothing gets nothing."""
    rig.refused = refused
    if refused == "at the restore":
        monkeypatch.setattr(Criu, "refusal", lambda _criu: "")
    told = rig.engine.restore(rig.saved(**machine), nothing)
    assert told.startswith("its processes could not go on (")
    assert why in told
    assert rig.place.replaced == [WORKDIR_PART]
    assert rig.engine.brought() is None
    rig.alone = True
    with pytest.raises(ArchiveInvalid, match=why.split(" (", maxsplit=1)[0]):
        rig.engine.restore(rig.saved(**machine), nothing)


def test_images_that_do_not_come_leave_the_files(rig: Rig) -> None:
    """A checkpoint whose images are damaged on the way is still one of its files, which are newer than any before."""
    rig.place.objects[IMAGES_PART] = b"torn"
    assert "its processes could not go on (" in rig.engine.restore(rig.saved(), nothing)
    assert rig.place.replaced == [WORKDIR_PART]


def test_auto_takes_what_works(rig: Rig) -> None:
    """The process tree where nothing speaks against it, else the work directory with the reason."""
    refusals = {CRIU: rig.engine.refusal}
    assert choose(Options(engine=AUTO), Fate.LEAVES, refusals)[0] == CRIU
    rig.runner.has_strays = True
    assert choose(Options(engine=AUTO), Fate.LEAVES, refusals) == (
        WORKDIR,
        "workdir: the task has processes outside its own tree",
    )


def test_criu_alone_fails_the_checkpoint(rig: Rig) -> None:
    """A job that asks for it gets no other; a task that is over has no processes to dump."""
    rig.runner.has_strays = True
    refusals = {CRIU: rig.engine.refusal}
    with pytest.raises(CriuFailed, match="outside its own tree"):
        choose(Options(engine=CRIU), Fate.GOES_ON, refusals)
    assert choose(Options(engine=CRIU), Fate.IS_OVER, refusals)[0] == WORKDIR
