"""Process trees dumped and brought back with the real CRIU, and what is said where that cannot be."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotferry.agent import criu as module
from spotferry.agent.criu import Criu, accelerator_of, find, prefer_high_pids, tidy
from spotferry.agent.errors import CriuFailed
from spotferry.agent.processes import table
from tests.contract.waiting import wait_until
from tests.criu_here import criu_here, needs_criu

_PR_SET_CHILD_SUBREAPER = 36

COUNT = """
import os, sys, time
reader, writer = os.pipe()
if os.fork() == 0:
    number = 0
    while True:
        number += 1
        os.write(writer, b"%d\\n" % number)
        time.sleep(0.02)
for line in os.fdopen(reader):
    print(line.strip(), flush=True)
"""


class Task:
    """A task that counts in the memory of a child and prints through a pipe, as the agent starts its tasks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "task.log"
        self.log.touch()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["/bin/bash", "-c", f"{sys.executable} -c '{COUNT}'; echo over"],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def numbers(self) -> list[int]:
        """What was printed."""
        return [int(line) for line in self.log.read_text().splitlines()]

    def tree(self) -> list[int]:
        """Everything in its session."""
        return [p.pid for p in table().values() if p.session == self.pid and p.state not in "ZX"]

    def kill(self) -> None:
        """End all of it, and see it gone."""
        for pid in self.tree():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: _reaped(self))

    def go_on(self) -> None:
        """Let what is stopped run."""
        for pid in self.tree():
            os.kill(pid, signal.SIGCONT)


def _reaped(task: Task) -> bool:
    if task.process.poll() is None:
        return False
    for process in table().values():
        if process.session == task.pid and process.state == "Z" and process.parent == os.getpid():
            os.waitpid(process.pid, os.WNOHANG)
    return not [p for p in table().values() if p.session == task.pid]


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Task]:
    """A task that counts, whose orphans are ours, gone afterwards."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        running = Task(tmp_path)
        yield running
        running.kill()
    finally:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@pytest.fixture
def criu() -> Criu:
    """The program."""
    here = criu_here()
    assert here is not None
    return here


@needs_criu
def test_a_tree_goes_on_where_it_was(task: Task, criu: Criu, tmp_path: Path) -> None:
    """Children, pipe and memory come back under their own ids, and print to the end of another log."""
    wait_until(lambda: len(task.numbers()) > 3)
    criu.dump(task.pid, tmp_path / "images")
    counted = task.numbers()
    before = set(task.tree())
    task.kill()
    task.log.write_text("0\n")
    assert criu.restore(tmp_path / "images", task.log) == task.pid
    assert set(task.tree()) == before
    task.go_on()
    wait_until(lambda: len(task.numbers()) > 3)
    assert task.numbers()[:3] == [0, counted[-1] + 1, counted[-1] + 2]


@needs_criu
def test_a_dump_leaves_the_tree_stopped_and_it_goes_on(task: Task, criu: Criu, tmp_path: Path) -> None:
    """Nothing is written while the rest of a checkpoint is made; afterwards the same tree counts on."""
    wait_until(lambda: len(task.numbers()) > 3)
    criu.dump(task.pid, tmp_path / "images")
    assert {table()[pid].state for pid in task.tree()} <= {"T", "t"}
    counted = task.numbers()
    tidy(tmp_path / "images")
    assert not list((tmp_path / "images").glob("*.log"))
    task.go_on()
    wait_until(lambda: len(task.numbers()) > len(counted) + 2)
    assert task.numbers() == list(range(1, len(task.numbers()) + 1))


@needs_criu
def test_a_taken_id_fails_the_restore(task: Task, criu: Criu, tmp_path: Path) -> None:
    """Where the tree still lives it cannot be brought back a second time: the reason is CRIU's own."""
    wait_until(lambda: bool(task.numbers()))
    criu.dump(task.pid, tmp_path / "images")
    with pytest.raises(CriuFailed, match=r"criu restore: .*File exists"):
        criu.restore(tmp_path / "images", task.log)


@needs_criu
def test_what_cannot_be_dumped_runs_on(task: Task, criu: Criu, tmp_path: Path) -> None:
    """A tree that holds what CRIU does not know fails the dump with a reason, and counts on."""
    wait_until(lambda: bool(task.numbers()))
    with pytest.raises(CriuFailed, match="criu dump: "):
        criu.dump(task.tree()[-1], tmp_path / "images")
    counted = len(task.numbers())
    wait_until(lambda: len(task.numbers()) > counted)


@needs_criu
def test_high_ids_are_preferred() -> None:
    """The next processes get ids from the upper half, which another machine hardly uses."""
    prefer_high_pids()
    most = int(Path("/proc/sys/kernel/pid_max").read_text())
    with subprocess.Popen(["/bin/true"]) as process:
        assert process.pid >= most // 2


def _program(tmp_path: Path, script: str) -> Criu:
    path = tmp_path / "criu"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Criu(str(path))


def test_only_root_dumps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is not root says so instead of trying."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert _program(tmp_path, "exit 0").refusal() == "criu needs an agent that is root"


def test_a_kernel_that_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What CRIU's own check says is the reason."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    criu = _program(tmp_path, "echo no ptrace here >&2; exit 1")
    assert criu.refusal() == "criu does not work on this kernel: no ptrace here"
    assert not criu.tracks_memory()


def test_a_dump_after_a_pre_dump_is_told_of_it(tmp_path: Path) -> None:
    """The pre-dump runs beside the task; the dump then takes its directory, relative to its own."""
    criu = _program(tmp_path, f'echo "$@" >> {tmp_path}/said')
    criu.pre_dump(7, tmp_path / "before")
    criu.dump(7, tmp_path / "images", tmp_path / "before")
    first, second = (tmp_path / "said").read_text().splitlines()
    assert first.startswith("pre-dump ")
    assert "--track-mem" in first
    assert "--leave-stopped" not in first
    assert "--prev-images-dir ../before" in second


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("exit 1", "criu dump: it said nothing"),
        ("echo odd >&2; exit 1", "criu dump: odd"),
        ('echo "Error (a.c:12): no such thing" > "$3/$5"; exit 1', "criu dump: no such thing"),
    ],
)
def test_a_failure_has_a_reason(tmp_path: Path, script: str, why: str) -> None:
    """The first errors of its log, else what it printed, else that it said nothing."""
    with pytest.raises(CriuFailed, match=why):
        _program(tmp_path, script).dump(7, tmp_path / "images")


def test_a_program_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for ever."""
    monkeypatch.setattr(module, "DUMP_SECONDS", 0.1)
    with pytest.raises(CriuFailed, match="timed out"):
        _program(tmp_path, "exec sleep 60").dump(7, tmp_path / "images")


def test_it_is_found_on_the_tasks_path(tmp_path: Path) -> None:
    """The job's setup may bring it; without one anywhere there is none."""
    _program(tmp_path, "exit 0")
    assert find(str(tmp_path)) == Criu(str(tmp_path / "criu"))


def test_no_device_is_no_accelerator() -> None:
    """A process that computes on the processor alone has no accelerator, nor has one that is gone."""
    assert accelerator_of([os.getpid(), 2**22 + 1]) == ""


@pytest.mark.parametrize("device", ["/dev/nvidia0", "/dev/kfd", "/dev/dri/renderD128"])
def test_an_accelerator_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """A device that is open, or mapped after it was closed, is named."""
    opened, mapped = tmp_path / "11", tmp_path / "12"
    for process in (opened, mapped):
        (process / "fd").mkdir(parents=True)
        (process / "maps").write_text("00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/python3\n")
    (opened / "fd" / "5").symlink_to(device)
    (mapped / "maps").write_text(f"7f00-7f01 rw-s 0 00:06 1 {device}\n")
    monkeypatch.setattr(module, "_PROC", tmp_path)
    assert accelerator_of([11]) == device
    assert accelerator_of([12]) == device
