"""Scripts, and the processes that come of them."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from spotferry.agent.clock import Clock
from spotferry.agent.guard import LEASE_OVER, Guard
from spotferry.agent.lease import Lease
from spotferry.agent.processes import Brood, table
from spotferry.agent.scripts import Outcome, Trace, compose
from spotferry.agent.settings import Places
from spotferry.agent.task import Runner, Script
from spotferry.agent.world import World


def run(lines: Sequence[str]) -> tuple[int, str, Outcome]:
    """Status, output and trace of lines."""
    trace = Trace()
    done = subprocess.run(
        ["/bin/bash", "-c", compose(lines, trace.fd)],
        pass_fds=(trace.fd,),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    return done.returncode, done.stdout, trace.outcome()


def test_lines_share_one_shell() -> None:
    """What one line sets, the next one sees; what is exported is handed back."""
    code, out, outcome = run(["x=1; export Y='two\nlines'", "cd /tmp; echo $x", "pwd"])
    assert (code, out) == (0, "1\n/tmp\n")
    assert outcome.environment == {"PATH": "/usr/bin:/bin", "Y": "two\nlines"}


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("false", 1),
        ("cd /nowhere && true", 1),
        ("false\necho not reached", 1),
        ("exit 7", 7),
        ("set +e; (exit 3)", 3),
        ("kill -9 $BASHPID", 137),
        ("(kill -TERM $BASHPID)", 143),
        ('echo "unclosed', 2),
        ("no-such-command-anywhere", 127),
    ],
)
def test_first_failing_line_stops_the_rest_and_is_named(line: str, status: int) -> None:
    """Also a line that `set -e` alone would let pass, or that bash cannot read; the status is the line's own."""
    code, out, outcome = run(["echo one", line, "echo three"])
    assert code in {status, -9 if status == 137 else status}
    assert "three" not in out
    assert "not reached" not in out
    assert (outcome.line, outcome.environment) == (1, None)


def test_no_lines_succeed() -> None:
    """A job without setup is set up."""
    code, out, outcome = run([])
    assert (code, out, outcome.line) == (0, "", None)
    assert outcome.environment is not None


class Bench:
    """A runner with a place of its own; `start` runs lines."""

    def __init__(self, base: Path) -> None:
        self.places = Places(base, privileged=False)
        self.places.make()
        self.world = World(self.places)
        self.brood = Brood(None)
        self.runner = Runner(self.world, self.places.scripts, self.places.log, self.brood, Clock())

    def start(self, *lines: str) -> Script:
        """Start lines in the home."""
        return self.runner.start("x", lines, self.world.home, self.world.environment({}), lambda: None)

    def printed(self, text: str) -> None:
        """Wait until something is in the log."""
        deadline = time.monotonic() + 5
        while text not in self.places.log.read_text():
            assert time.monotonic() < deadline, self.places.log.read_text()
            time.sleep(0.005)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Ends whatever was started."""
    made = Bench(tmp_path)
    yield made
    made.runner.kill()


def test_script_runs_as_a_session_of_its_own_into_the_log(bench: Bench) -> None:
    """Both streams in order in one file, standard input empty, the exit status kept."""
    script = bench.start("echo out; echo err >&2; cat; exit 4")
    assert script.over(5)
    ending = script.ending()
    assert ending is not None
    assert ending.exit_code == 4
    assert bench.places.log.read_text() == "out\nerr\n"


def test_death_by_signal_is_128_and_its_number(bench: Bench) -> None:
    """As a shell would say it."""
    script = bench.start("kill -KILL $$")
    assert script.over(5)
    ending = script.ending()
    assert ending is not None
    assert ending.exit_code == 137


def test_end_gives_grace_then_kills(bench: Bench) -> None:
    """Whoever ends on SIGTERM may; whoever ignores it is killed after the grace, not before."""
    bench.start("trap '' TERM", "(trap 'echo ended; exit' TERM; while :; do sleep 0.01; done) & echo up", "sleep 100")
    bench.printed("up")
    time.sleep(0.05)
    began_at = time.monotonic()
    bench.runner.end(0.3)
    assert 0.25 < time.monotonic() - began_at < 3
    assert bench.brood.living() == []


def test_end_returns_as_soon_as_all_are_gone(bench: Bench) -> None:
    """The grace is a limit, not a wait."""
    bench.start("echo up; sleep 100")
    bench.printed("up")
    began_at = time.monotonic()
    bench.runner.end(30)
    assert time.monotonic() - began_at < 3


def test_frozen_processes_stand_still_until_thawed(bench: Bench) -> None:
    """Children too; SIGCONT lets them go on."""
    bench.start("(while :; do date +%N >> ticks; echo up; sleep 0.01; done) & wait")
    bench.printed("up")
    pids = bench.runner.freeze()
    before = (bench.world.home / "ticks").read_bytes()
    assert {p.state for p in bench.brood.living()} <= {"T"}
    time.sleep(0.05)
    assert (bench.world.home / "ticks").read_bytes() == before
    bench.runner.thaw(pids)
    deadline = time.monotonic() + 5
    while (bench.world.home / "ticks").read_bytes() == before:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_script_that_cannot_start_says_so(bench: Bench) -> None:
    """A work directory that is not there is an error of the start."""
    with pytest.raises(OSError, match="gone"):
        bench.runner.start("x", [], bench.world.home / "gone", {}, lambda: None)


def test_guard_kills_and_shuts_down_when_the_lease_is_over(bench: Bench) -> None:
    """The task, even one that ignores SIGTERM, then the machine, then the agent."""
    bench.start("trap '' TERM; echo up; while :; do sleep 1; done")
    bench.printed("up")
    done: list[object] = []
    Guard(Lease(Clock(), 0.05), bench.brood, lambda: done.append("down"), Clock(), done.append).run()
    assert done == ["down", LEASE_OVER]
    assert bench.brood.living() == []


def test_processes_from_before_are_not_of_the_job(tmp_path: Path) -> None:
    """What the agent's process already had as descendants is left alone, whatever it starts later."""
    other = subprocess.Popen(["/bin/bash", "-c", "sleep 30 & wait"], start_new_session=True)
    try:
        bench = Bench(tmp_path)
        bench.start("sleep 30")
        bench.runner.kill()
        assert other.poll() is None
        assert bench.brood.living() == []
    finally:
        os.killpg(other.pid, signal.SIGKILL)
        other.wait()


def test_process_table_reads_names_with_brackets(tmp_path: Path) -> None:
    """A program may call itself anything."""
    program = tmp_path / "odd) S 1 (name"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    process = subprocess.Popen([str(program), "30"], start_new_session=True)
    try:
        entry = table()[process.pid]
        assert (entry.parent, entry.session) == (os.getpid(), process.pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
