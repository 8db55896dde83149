"""Keeps one service of the local cloud on a leash: `python -m local.leash --record FILE [--tied] -- COMMAND ...`.

The service runs as the leader of a session of its own. When it ends, when the leash is told to end, or (tied) when the
process at the other end of the leash's standard input is gone, everything in that session is ended, first by SIGTERM.
The record names both processes with their start times, so that nobody ends a stranger that got the number later.
"""

import argparse
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

POLL_SECONDS = 0.2
PATIENCE_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Pid:
    """A process that no later one can be mistaken for: its number, and its start (see `start_of`)."""

    number: int
    started: float

    @classmethod
    def of(cls, number: int) -> "Pid":
        """The living process of this number.

        Raises:
            psutil.NoSuchProcess: there is none.
        """
        return cls(number, start_of(number))

    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        try:
            return (
                start_of(self.number) == self.started and psutil.Process(self.number).status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False

    def was_recycled(self) -> bool:
        """Whether another process has the number by now."""
        try:
            return start_of(self.number) != self.started
        except psutil.NoSuchProcess:
            return False


def start_of(number: int) -> float:
    """When a process started: on Linux in ticks since the boot, which no clock change moves; else as psutil says.

    Raises:
        psutil.NoSuchProcess: there is none of this number.
    """
    stat = Path(f"/proc/{number}/stat")
    try:
        # The name in the second field may hold spaces and brackets; the start is the 20th field after it.
        return float(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return float(psutil.Process(number).create_time())


def end_session(leader: Pid, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """End a process and all others of the session that it leads; done when they are gone."""
    if leader.is_alive():
        _signal(leader.number, signal.SIGTERM)
        _wait_until_gone(leader, patience_seconds)
    if leader.was_recycled():
        return  # a number is given away only when its whole session is gone
    members = _session(leader.number)
    for pid in members:
        if pid.is_alive():
            _signal(pid.number, signal.SIGKILL)
    for pid in members:
        _wait_until_gone(pid, patience_seconds)


def _session(leader: int) -> list[Pid]:
    members = []
    for number in psutil.pids():
        with contextlib.suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            if os.getsid(number) == leader:
                members.append(Pid.of(number))
    return members


def _signal(number: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(number, which)


def _wait_until_gone(pid: Pid, patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    while pid.is_alive() and time.monotonic() < deadline:
        time.sleep(0.02)


class Leash:
    """One service and what it takes to end it."""

    def __init__(self, command: list[str], record: Path, *, tied: bool) -> None:
        self._command = command
        self._record = record
        self._tied = tied
        self._told_to_end = False

    def hold(self) -> int:
        """Run the service until it ends or is to end; its exit status."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._tell)
        with subprocess.Popen(  # noqa: S603 - the command of our own starter
            self._command, stdin=subprocess.DEVNULL, start_new_session=True
        ) as service:
            leader = Pid.of(service.pid)
            self._write_record(leader)
            try:
                while service.poll() is None and not self._told_to_end and self._is_held():
                    pass
            finally:
                service.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    service.wait(PATIENCE_SECONDS)
                end_session(leader)
        return service.returncode

    def _tell(self, _number: int, _frame: object) -> None:
        self._told_to_end = True

    def _is_held(self) -> bool:
        """Wait a moment; whether the other end of the leash is still there."""
        if not self._tied:
            time.sleep(POLL_SECONDS)
            return True
        readable, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
        return not readable or os.read(sys.stdin.fileno(), 1024) != b""

    def _write_record(self, leader: Pid) -> None:
        record = {"leash": asdict(Pid.of(os.getpid())), "service": asdict(leader)}
        partial = self._record.with_suffix(".partial")
        partial.write_text(json.dumps(record), encoding="utf-8")
        partial.replace(self._record)


def main() -> None:
    """Run the command given after `--`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    sys.exit(Leash(options.command, options.record, tied=options.tied).hold())


if __name__ == "__main__":
    main()
