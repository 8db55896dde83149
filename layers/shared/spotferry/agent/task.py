"""Runs the job's scripts: a session of its own, both streams in the log, ended with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

from spotferry.agent.clock import Clock
from spotferry.agent.processes import Brood, send
from spotferry.agent.scripts import Outcome, Trace, compose
from spotferry.agent.world import World

TASK = "task"
"""Name of the task's script."""

KILL_SECONDS = 5.0
"""How long processes may take to vanish after SIGKILL before they are given up as stuck in the kernel."""


@dataclass(frozen=True)
class Ending:
    """How a script ended.

    Attributes:
        exit_code: 128 + n where signal n ended it.
        outcome: of its trace.
    """

    exit_code: int
    outcome: Outcome


class Script:
    """A script that runs; made by `Runner.start` and `Runner.adopt`.

    Args:
        pid: of its session's leader.
        wait: returns the leader's exit status once it has one, negative for a signal.
        outcome: what its trace says in the end.
        ended: called once.
    """

    def __init__(
        self, pid: int, wait: Callable[[], int], outcome: Callable[[], Outcome], ended: Callable[[], None]
    ) -> None:
        self.pid = pid
        self._wait_for = wait
        self._outcome = outcome
        self._ended = ended
        self._ending: Optional[Ending] = None
        self._over = threading.Event()
        threading.Thread(target=self._wait, name="script", daemon=True).start()

    def ending(self) -> Optional[Ending]:
        """How it ended; None while it runs."""
        return self._ending

    def over(self, seconds: float) -> bool:
        """Wait at most so long for its end."""
        return self._over.wait(seconds)

    def _wait(self) -> None:
        code = self._wait_for()
        self._ending = Ending(128 - code if code < 0 else code, self._outcome())
        self._over.set()
        self._ended()


class Runner:
    """Starts, stops and ends scripts in the task's world.

    Args:
        world: whose user and home.
        scripts: directory for the script files; readable by that user.
        log: file that both streams are appended to.
        brood: the processes that come of it.
        clock: to wait on.
    """

    def __init__(self, world: World, scripts: Path, log: Path, brood: Brood, clock: Clock) -> None:
        self._world = world
        self._scripts = scripts
        self._log = log
        self._brood = brood
        self._clock = clock
        self._leader: Optional[int] = None
        self._ending_it = threading.Lock()

    def start(
        self,
        name: str,
        lines: Sequence[str],
        work_dir: Path,
        environment: Dict[str, str],
        ended: Callable[[], None],
        *,
        leads: bool = True,
    ) -> Script:
        """Run the lines in the work directory; `ended` is called from another thread when their shell has ended.

        Args:
            name: of the script's file.
            lines: run in one bash.
            work_dir: current directory.
            environment: all of it.
            ended: called once.
            leads: it is the setup or the task, not lines beside it.

        Raises:
            OSError, ValueError: it could not be started.
        """
        trace = Trace()
        try:
            process = self._popen(name, compose(lines, trace.fd), work_dir, environment, trace.fd)
        except BaseException:
            os.close(trace.fd)
            raise
        if leads:
            self._leader = process.pid
        self._brood.leaders.add(process.pid)
        return Script(process.pid, process.wait, trace.outcome, ended)

    def adopt(self, pid: int, ended: Callable[[], None]) -> Script:
        """Look after a stopped process tree that another machine's agent started, and let it go on.

        Args:
            pid: of its session's leader, a child of this process.
            ended: called once, from another thread, when the leader has ended.
        """
        self._leader = pid
        self._brood.leaders.add(pid)
        script = Script(pid, lambda: _status_of(pid), lambda: Outcome(None, None), ended)
        self.resume()
        return script

    @property
    def leader(self) -> Optional[int]:
        """The process that setup or task began with; None before there was one."""
        return self._leader

    @property
    def log(self) -> Path:
        """What both streams are appended to."""
        return self._log

    def script_file(self, name: str) -> Path:
        """The file that a script of this name is read from while it runs."""
        return self._scripts / f"{name}.sh"

    def living(self) -> List[int]:
        """Every process of the job."""
        return [process.pid for process in self._brood.living()]

    def strays(self) -> bool:
        """Whether a process of the job is no descendant of the leader, since who started it has ended."""
        return self._leader is None or bool(self._brood.outside({self._leader}))

    def _popen(
        self, name: str, script: str, work_dir: Path, environment: Dict[str, str], trace_fd: int
    ) -> subprocess.Popen[bytes]:
        path = self.script_file(name)
        path.write_text(script, encoding="utf-8")
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603  (running the user's lines is the purpose)
                ["/bin/bash", str(path)],
                cwd=work_dir,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(trace_fd,),
                **self._world.identity(),
            )

    def ask(self, number: int) -> int:
        """Send a signal to the processes of the job that have a handler for it, and to none below those: a shell
        between them, or a worker that got the handler at its birth, would die of it, or do the work again.

        Returns:
            How many got it.
        """
        asked = self._brood.catchers(number)
        for pid in asked:
            send(pid, number)
        return len(asked)

    def drop(self, script: Script) -> None:
        """Kill the session of a script that takes too long."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(script.pid, signal.SIGKILL)

    def lives(self) -> bool:
        """Whether a process of the job is left."""
        return bool(self._brood.living())

    def freeze(self) -> List[int]:
        """Stop every process of the job; the ids for `thaw`."""
        return self._brood.stop()

    def thaw(self, pids: Sequence[int]) -> None:
        """Let stopped processes go on."""
        for pid in pids:
            send(pid, signal.SIGCONT)

    def resume(self) -> None:
        """Let every process of the job go on."""
        self._brood.signal(signal.SIGCONT)

    def end(self, grace_seconds: float, check: Callable[[], None] = lambda: None) -> None:
        """SIGTERM to every process of the job, SIGKILL to what is left after the grace; returns when none is.

        Args:
            grace_seconds: 0 kills at once.
            check: called several times a second during the grace; when it raises, the rest is killed before it goes on.
        """
        with self._ending_it:
            try:
                if grace_seconds > 0:
                    self._signal(signal.SIGTERM)
                    self._brood.signal(signal.SIGCONT)
                    self._gone(grace_seconds, check)
            finally:
                self._kill()

    def kill(self) -> None:
        """SIGKILL to every process of the job; also while another thread is in `end`."""
        self._kill()

    def _kill(self) -> None:
        give_up_at = self._clock.monotonic() + KILL_SECONDS
        while self._clock.monotonic() < give_up_at:
            self._signal(signal.SIGKILL)
            if self._gone(0.05, lambda: None):
                return

    def _signal(self, number: int) -> None:
        """To the leader's group in one stroke, then to whoever left it."""
        living = self._brood.living()
        in_group = {p.pid for p in living if self._leader is not None and _group(p.pid) == self._leader}
        if in_group and self._leader is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, number)
        for process in living:
            if process.pid not in in_group or number == signal.SIGKILL:
                send(process.pid, number)

    def _gone(self, seconds: float, check: Callable[[], None]) -> bool:
        """Whether none is left, waiting at most so long."""
        until = self._clock.monotonic() + seconds
        while self._brood.living():
            if self._clock.monotonic() >= until:
                return False
            check()
            self._clock.sleep(0.05 if seconds > 1 else 0.01)
        return True


def _status_of(pid: int) -> int:
    """Wait for a child that no object stands for; one that somebody else waited for was killed."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return -signal.SIGKILL


def _group(pid: int) -> Optional[int]:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None
