"""The `criu` engine over real processes and a dumper that only stops and starts them: what is around a dump."""

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from spotferry.agent.clock import Clock
from spotferry.agent.engines import Engine
from spotferry.agent.errors import AgentError
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import Options
from spotferry.agent.processes import Brood, table
from spotferry.agent.saving import Saving
from spotferry.agent.settings import Places
from spotferry.agent.subject import Fate, Subject, Wanted
from spotferry.agent.task import Runner
from spotferry.agent.tree import TreeEngine
from spotferry.agent.uploads import Uploader
from spotferry.agent.workdir import WorkdirEngine
from spotferry.agent.world import World as Home
from tests.unit.agent.in_process import Wire, connect, nothing, offered
from tests.unit.usecases.world import World

OPTIONS = Options(engine="criu")


class FakeDumper:
    """Stops what it should dump; brings back another process that stands still."""

    def __init__(self) -> None:
        self.says = ""
        self.fails = False
        self.restored: list[str] = []

    def refusal(self, pids: Iterable[int]) -> str:
        """As the test says."""
        assert list(pids)
        return self.says

    def dump(self, pid: int, images: Path) -> None:
        """One image."""
        if self.fails:
            raise AgentError("criu dump: a socket")
        images.mkdir(mode=0o700)
        (images / "core.img").write_text(str(pid))
        os.kill(pid, signal.SIGSTOP)

    def restore(self, images: Path, log: Path) -> int:
        """A process of its own session, stopped."""
        if self.fails:
            raise AgentError("criu restore: pid is taken")
        self.restored.append((images / "core.img").read_text())
        with log.open("ab") as stream:
            process = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True, stdout=stream)
        process.send_signal(signal.SIGSTOP)
        process.returncode = 0  # the agent waits for it, not this object
        return process.pid


class Machine:
    """The saving side of a machine whose task is a shell that sleeps."""

    def __init__(self, directory: Path, wire: Wire) -> None:
        places = Places(directory, privileged=False)
        places.make()
        places.log.touch()
        self.dumper, self.clock, self.wire, home = FakeDumper(), Clock(), wire, Home(places)
        self.runner = Runner(home, places.scripts, places.log, Brood(None), self.clock)
        self.place = WorkPlace(home, home.work_dir("work"), self.clock)
        self.place.work_dir.mkdir()
        self.engine = TreeEngine(self.place, self.runner, self.dumper, places.spool, places.log)
        engines: dict[str, Engine] = {"workdir": WorkdirEngine(self.place), "criu": self.engine}
        uploader = Uploader(wire, self.clock, places.spool)  # type: ignore[arg-type]  # as much of a link as it uses
        self.saving = Saving(self.place, engines, {"criu": self.engine.refusal}, uploader, self.clock)

    def start(self) -> int:
        """Start the task; its leader."""
        lines = ["echo state > file", "sleep 60; true"]
        return self.runner.start("task", lines, self.place.work_dir, {"PATH": os.environ["PATH"]}, lambda: None).pid

    def checkpoint(self, fate: Fate) -> str:
        """Make one; why its engine was taken."""
        subject = Subject(self.runner, Wanted("heartbeat", fate, grace_seconds=1), self.clock, nothing)
        self.saving.checkpoint(subject, OPTIONS, self.clock.monotonic(), nothing)
        return str(self.wire.commits[-1]["why"])


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    """A machine with a task that runs; nothing of it is left afterwards."""
    world = World()
    _, attempt = world.running()
    made = Machine(tmp_path / "m", connect(monkeypatch, Wire(world, attempt)))
    made.start()
    yield made
    made.runner.end(0)


def test_a_dumped_task_goes_on(machine: Machine) -> None:
    """Images and work directory are the checkpoint; the tree stands still only meanwhile."""
    assert machine.checkpoint(Fate.GOES_ON) == "criu: it works for this process tree"
    commit = machine.wire.commits[-1]
    assert [part["name"].split(".")[0] for part in commit["parts"]] == ["tree", "workdir"]
    assert commit["paused_seconds"] > 0
    assert all(table()[pid].state not in "Tt" for pid in machine.runner.pids())
    assert not machine.engine._images.exists()


def test_a_task_that_leaves_is_dumped_and_gone(machine: Machine) -> None:
    """It ends without a signal that it would see."""
    machine.checkpoint(Fate.LEAVES)
    assert machine.wire.commits[-1]["engine"] == "criu"
    assert machine.runner.pids() == []


@pytest.mark.parametrize("fate", [Fate.GOES_ON, Fate.LEAVES])
def test_a_tree_that_cannot_be_dumped_is_archived_instead(machine: Machine, fate: Fate) -> None:
    """Also where that shows only in the dump; the checkpoint says why."""
    machine.dumper.fails = True
    assert machine.checkpoint(fate) == "workdir: criu dump: a socket"
    assert machine.wire.commits[-1]["engine"] == "workdir"
    assert bool(machine.runner.pids()) is (fate is Fate.GOES_ON)


def test_what_criu_refuses_is_asked_before(machine: Machine) -> None:
    """A GPU, a task that is over, processes beside the task's tree."""
    machine.dumper.says = "a process uses /dev/nvidia0"
    assert machine.checkpoint(Fate.GOES_ON) == "workdir: a process uses /dev/nvidia0"
    machine.dumper.says = ""
    machine.runner.start("pre_checkpoint", ["sleep 60"], machine.place.work_dir, {}, lambda: None, leads=False)
    assert machine.checkpoint(Fate.GOES_ON).startswith("workdir: criu: ")
    machine.runner.end(0)
    assert machine.engine.refusal() == "criu: the task does not run"


def test_a_tree_comes_back_and_is_the_task(machine: Machine, tmp_path: Path) -> None:
    """It goes on once it is adopted; its end has a status."""
    machine.checkpoint(Fate.LEAVES)
    other = Machine(tmp_path / "other", machine.wire)
    assert other.saving.restore(offered(machine.wire), nothing, fresh=True) == (1, "")
    assert (other.place.work_dir / "file").read_text() == "state\n"
    leader = other.engine.take_leader()
    assert leader is not None
    assert other.engine.take_leader() is None
    script = other.runner.adopt(leader, lambda: None)
    assert other.runner.leader == leader
    assert other.engine.refusal() == ""
    os.kill(leader, signal.SIGKILL)
    assert script.over(10)
    ending = script.ending()
    assert ending is not None
    assert ending.exit_code == 128 + signal.SIGKILL


def test_a_tree_that_does_not_come_back_is_passed_over(machine: Machine, tmp_path: Path) -> None:
    """Its own files are next; nothing of the images stays."""
    machine.dumper.says = "not now"
    machine.checkpoint(Fate.GOES_ON)
    machine.dumper.says = ""
    machine.checkpoint(Fate.LEAVES)
    other = Machine(tmp_path / "other", machine.wire)
    other.dumper.fails = True
    number, why_not = other.saving.restore(offered(machine.wire), nothing, fresh=True)
    assert (number, why_not) == (2, "checkpoint 2: criu restore: pid is taken")
    assert other.engine.take_leader() is None
    assert not other.engine._images.exists()
