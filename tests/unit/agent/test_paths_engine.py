"""The `paths` engine: what is named travels, what did not change does not, and a restore brings exactly that back."""

import os
import random
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings

from spotferry.agent import paths as paths_module
from spotferry.agent.entries import Entries, Found
from spotferry.agent.errors import ArchiveInvalid, StepFailed, TransferFailed
from spotferry.agent.outputs import Matched, matching
from spotferry.agent.pieces import MOST_PACKS, PIECE_BYTES, Entry, piece_bytes
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Options
from spotferry.agent.subject import Fate
from tests.unit.agent.grown_trees import PATTERNS, TREES, grown
from tests.unit.agent.in_process import Agent, Wire, connect
from tests.unit.usecases.world import World

MIB = 1024 * 1024
NAMED = Options(paths=("state", "*.pt"))


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were just written count as settled, so that tests need not wait."""
    monkeypatch.setattr(paths_module, "_SETTLED_SECONDS", -1.0)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    """A broker with a running job."""
    world = World()
    _, attempt = world.running()
    return connect(monkeypatch, Wire(world, attempt))


@pytest.fixture
def machine(wire: Wire, tmp_path: Path) -> Callable[..., Agent]:
    """Makes machines of the job."""
    numbers = iter(range(10))
    return lambda **more: Agent(tmp_path / f"m{next(numbers)}", wire, **{"options": NAMED, **more})


def filled(agent: Agent, **sizes: int) -> dict[str, bytes]:
    """Random files in `state`."""
    (agent.work / "state").mkdir(exist_ok=True)
    contents = {f"state/{name}": random.Random(name).randbytes(size) for name, size in sizes.items()}  # noqa: S311
    for path, content in contents.items():
        (agent.work / path).write_bytes(content)
    return contents


def test_what_is_named_comes_back_and_the_rest_is_left_alone(machine: Callable[..., Agent]) -> None:
    """Files, modes, times, links, pipes; what the work directory has beside them stays, what the paths had goes."""
    first = machine()
    contents = filled(first, a=3 * MIB + 5, b=10, empty=0)
    (first.work / "state" / "sub").mkdir(mode=0o750)
    (first.work / "state" / "sub" / "hard").hardlink_to(first.work / "state" / "b")
    (first.work / "state" / "soft").symlink_to("/nowhere")
    os.mkfifo(first.work / "state" / "pipe")
    (first.work / "best.pt").write_bytes(b"weights")
    (first.work / "code.py").write_text("not named")
    os.utime(first.work / "state" / "b", ns=(5, 1_600_000_000_123_456_789))
    (first.work / "state" / "sub").chmod(0o550)
    assert first.checkpoint() == 1
    second = machine()
    (second.work / "state").mkdir()
    (second.work / "state" / "stale").write_text("of the upload")
    (second.work / "code.py").write_text("of the upload")
    assert second.restore() == (1, "")
    assert second.files() == {
        **contents,
        "state/sub/hard": contents["state/b"],
        "best.pt": b"weights",
        "code.py": b"of the upload",
    }
    state = second.work / "state"
    assert (state / "b").stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert (state / "sub" / "hard").samefile(state / "b")
    assert os.readlink(state / "soft") == "/nowhere"  # noqa: PTH115  (as written)
    assert stat.S_ISFIFO((state / "pipe").stat().st_mode)
    assert stat.S_IMODE((state / "sub").stat().st_mode) == 0o550


def test_unchanged_files_do_not_travel_again(machine: Callable[..., Agent], wire: Wire) -> None:
    """Of a second checkpoint of which a hundredth changed at most a twentieth of the first one's bytes is sent."""
    agent = machine()
    filled(agent, **{f"f{n}": 400_000 for n in range(100)}, big=20 * MIB)
    agent.checkpoint()
    first = wire.sent_bytes
    with (agent.work / "state" / "big").open("r+b") as file:
        file.seek(7 * MIB)
        file.write(b"x" * (200 * 1024))
    (agent.work / "state" / "f7").write_bytes(os.urandom(400_000))
    agent.checkpoint()
    assert wire.sent_bytes - first < first / 20
    third = wire.sent_bytes
    agent.checkpoint()
    assert wire.sent_bytes - third < first / 500
    assert [p.same_as for p in wire.world.store.get_checkpoint(wire.attempt.job_id, 3).manifest.parts] == [None, 2, 2]
    expected = agent.files()
    other = machine()
    assert other.restore()[0] == 3
    assert other.files() == expected


def test_a_state_under_a_new_name_does_not_travel_again(machine: Callable[..., Agent], wire: Wire) -> None:
    """Scripts write a new file a step: what it has in common with the last one is known by its bytes."""
    agent = machine()
    content = bytearray(filled(agent, step1=32 * MIB)["state/step1"])
    agent.checkpoint()
    first = wire.sent_bytes
    content[5 * MIB : 5 * MIB + 1000] = b"y" * 1000
    (agent.work / "state" / "step2").write_bytes(content)
    (agent.work / "state" / "step1").unlink()
    agent.checkpoint()
    assert wire.sent_bytes - first < first / 20


def test_the_next_machine_builds_on_what_it_restored(machine: Callable[..., Agent], wire: Wire) -> None:
    """Its first checkpoint sends what changed since, and reads only that."""
    filled(first := machine(), a=5 * MIB)
    first.checkpoint()
    sent = wire.sent_bytes
    second = machine()
    second.restore()
    (second.work / "state" / "new").write_bytes(b"new")
    assert second.checkpoint() == 2
    assert wire.sent_bytes - sent < 10_000
    expected = second.files()
    third = machine()
    third.restore()
    assert third.files() == expected


def test_packs_of_which_little_is_used_are_sent_anew(machine: Callable[..., Agent], wire: Wire) -> None:
    """However long a job writes new states, no checkpoint drags more than double along, or more than 17 parts."""
    agent = machine()
    for step in range(30):
        filled(agent, **{f"s{step}x{n}": 60_000 for n in range(3)}, steady=100_000)
        for old in (agent.work / "state").glob(f"s{step - 2}x*"):
            old.unlink()
        agent.checkpoint()
        manifest = wire.world.store.checkpoints(wire.attempt.job_id)[0].manifest
        live = sum(len(content) for content in agent.files().values())
        assert len(manifest.parts) <= MOST_PACKS + 1
        assert sum(part.size_bytes for part in manifest.parts) < 2.5 * live
    expected = agent.files()
    other = machine()
    other.restore()
    assert other.files() == expected


def test_old_packs_are_sent_anew(machine: Callable[..., Agent], wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket deletes by age: a checkpoint never rests on an object that is about to go."""
    agent = machine()
    filled(agent, a=MIB)
    agent.checkpoint()
    sent, now = wire.sent_bytes, time.time()
    monkeypatch.setattr(time, "time", lambda: now + 8 * 24 * 3600)
    agent.checkpoint()
    assert wire.sent_bytes - sent > MIB


def test_a_failed_commit_is_built_upon_by_nothing(machine: Callable[..., Agent], wire: Wire) -> None:
    """The next checkpoint is whole by itself."""
    agent = machine()
    filled(agent, a=MIB)
    agent.checkpoint()
    parts = wire.world.store.get_checkpoint(wire.attempt.job_id, 1).manifest.parts
    del wire.world.objects.stored[parts[1].key if parts[1].name.startswith("pack") else parts[0].key]
    with pytest.raises(TransferFailed, match="left the bucket"):
        agent.checkpoint()
    assert agent.checkpoint() == 2
    assert machine().restore() == (2, "")


def test_a_task_that_is_over_leaves_its_outputs_too(machine: Callable[..., Agent]) -> None:
    """Another machine sends them from the checkpoint alone."""
    agent = machine(outputs=("result.txt",))
    filled(agent, a=100)
    (agent.work / "result.txt").write_text("42")
    agent.checkpoint(Fate.IS_OVER, 0)
    other = machine(outputs=("result.txt",))
    other.work.rmdir()
    other.restore()
    assert other.files()["result.txt"] == b"42"


def test_holes_stay_holes(machine: Callable[..., Agent], wire: Wire) -> None:
    """Zeros are in no pack, and take no room after a restore."""
    agent = machine()
    (agent.work / "state").mkdir()
    with (agent.work / "state" / "sparse").open("wb") as file:
        file.truncate(50 * MIB)
    agent.checkpoint()
    assert wire.sent_bytes < 10_000
    other = machine()
    other.restore()
    status = (other.work / "state" / "sparse").stat()
    assert (status.st_size, status.st_blocks * 512 < MIB) == (50 * MIB, True)


@pytest.mark.parametrize("damaged", [0, 1], ids=["the pack", "the index"])
def test_a_damaged_checkpoint_is_passed_over(machine: Callable[..., Agent], wire: Wire, damaged: int) -> None:
    """A restore takes the one before, and says why."""
    agent = machine()
    filled(agent, a=MIB)
    agent.checkpoint()
    expected = agent.files()
    filled(agent, b=MIB)
    agent.checkpoint()
    part = wire.world.store.get_checkpoint(wire.attempt.job_id, 2).manifest.parts[damaged]
    content = bytearray(wire.world.objects.stored[part.key])
    content[len(content) // 2] ^= 1
    wire.world.objects.stored[part.key] = bytes(content)
    other = machine()
    number, why_not = other.restore()
    assert number == 1
    assert why_not.startswith("checkpoint 2: ")
    assert other.files() == expected


def test_nothing_is_restored_of_checkpoints_that_are_all_damaged(machine: Callable[..., Agent], wire: Wire) -> None:
    """The failed start names each."""
    agent = machine()
    filled(agent, a=MIB)
    agent.checkpoint()
    for part in wire.world.store.get_checkpoint(wire.attempt.job_id, 1).manifest.parts:
        wire.world.objects.stored[part.key] = b"other"
    with pytest.raises(StepFailed, match="checkpoint 1: "):
        machine().restore()


def test_files_that_vanish_meanwhile_are_no_failure(
    machine: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The application goes on while its paths are read, and tidies up."""
    agent = machine()
    filled(agent, a=100, b=100)
    lstat = os.lstat

    def racing(path: Path) -> os.stat_result:
        if Path(path).name == "a":
            Path(path).unlink(missing_ok=True)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", racing)
    agent.checkpoint()
    monkeypatch.undo()


def test_a_file_that_was_just_written_is_looked_at_again(
    machine: Callable[..., Agent], wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within one tick of the disk's clock a change shows in no time: such a file is never taken for untouched."""
    monkeypatch.setattr(paths_module, "_SETTLED_SECONDS", 3600.0)
    agent = machine()
    filled(agent, a=100)
    file = agent.work / "state" / "a"
    times = (time.time_ns() - 10**9, time.time_ns() - 10**9)
    os.utime(file, ns=times)
    agent.checkpoint()
    assert agent.paths._known is not None
    assert agent.paths._known.files == {}
    assert wire.commits[0]["engine"] == "paths"


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a//b", "./a", "a\0b"])
def test_an_entry_outside_is_refused(path: str) -> None:
    """Whatever an index says."""
    with pytest.raises(ArchiveInvalid, match="outside"):
        Entry.of(Entry(path, "f").line())
    with pytest.raises(ArchiveInvalid, match="outside"):
        Entry.of(Entry("a", "h", link=path).line())


@pytest.mark.parametrize(
    ("size", "length"), [(0, PIECE_BYTES), (2048 * MIB, PIECE_BYTES), (2049 * MIB, 2 * MIB), (10**13, 8 * MIB)]
)
def test_pieces_grow_with_their_file(size: int, length: int) -> None:
    """So that an index stays small, and a piece fits into memory."""
    assert piece_bytes(size) == length


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES, patterns=PATTERNS)
def test_whatever_is_committed_restores(
    wire: Wire, tmp_path_factory: pytest.TempPathFactory, tree: dict[str, str], patterns: list[str]
) -> None:
    """Whatever patterns and tree, and with the agent's own link in it: what is named is there again."""
    options, home = Options(paths=tuple(patterns)), tmp_path_factory.mktemp("machines")
    first, second = Agent(home / "m0", wire, options=options), Agent(home / "m1", wire, options=options)
    shutil.rmtree(first.work)
    grown(first.work, tree)
    (first.work / first.work.name).symlink_to(".")
    number = first.checkpoint()
    assert second.restore() == (number, "")
    named = [path for path in matching(first.work, patterns).paths if path != first.work.name]
    assert matching(second.work, ["."]).paths == sorted({*named, *_above(named)}, key=lambda path: path.split("/"))


def _above(paths: list[str]) -> set[str]:
    return {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."}


def test_a_file_that_becomes_a_directory_while_it_is_read_holds_nothing(
    machine: Callable[..., Agent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is what it was when it was looked at: an index with entries below a file could not be restored."""
    first = machine(options=Options(paths=("d",)))
    (first.work / "d").write_text("a file")
    look = Entries._found

    def changing(entries: Entries, path: str) -> Found | None:
        found = look(entries, path)
        if path == "d":
            (first.work / "d").unlink()
            (first.work / "d").mkdir()
            (first.work / "d" / "x").write_text("below it")
        return found

    with monkeypatch.context() as patched:
        patched.setattr(Entries, "_found", changing)
        patched.setattr(WorkPlace, "matching", lambda *_: Matched(["d", "d/x"], []))
        first.checkpoint()
    second = machine(options=first.options)
    assert second.restore() == (1, "")
    assert second.files() == {"d": b"a file"}
