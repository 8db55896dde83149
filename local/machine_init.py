"""The first process of a machine: runs its user data once, then stays up until the machine is switched off.

    python3 -I init.py USER_DATA RUN_DIRECTORY [--own-user]

Standard input is the machine's mains: when its other end closes, the machine is gone at once, whatever runs on it.
SIGUSR1 asks it to look at RUN_DIRECTORY/power: `now`, `+MINUTES` or `cancel`. With --own-user no other machine has this
user, so everything of the user is ended with the machine. Standard library only, Python 3.9 and newer.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform.startswith("linux")
_GRACE_SECONDS = 0.3
_POLL_SECONDS = 0.02


def _say(message: str) -> None:
    sys.stdout.write(f"[init] {message}\n")
    sys.stdout.flush()


def _adopt_orphans() -> None:
    if _LINUX:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wakeup_pipe() -> int:
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A handler and not SIG_IGN: what the machine runs must not inherit deaf ears.
        signal.signal(number, lambda _number, _frame: None)
    return reader


def _command(user_data: Path) -> list[str]:
    with user_data.open("rb") as script:
        first = script.readline().decode("utf-8", "replace").rstrip("\n")
    # The interpreter is named here, so that user data runs also where files may not be executed.
    return [*shlex.split(first[2:]), str(user_data)] if first.startswith("#!") else []


def _start(user_data: Path) -> subprocess.Popen[bytes] | None:
    command = _command(user_data)
    if not command:
        _say("the user data is empty or has no #! line: nothing to run")
        return None
    try:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603 - that is its job
    except OSError as error:
        _say(f"the user data could not be started: {error}")
        return None


def _reap(script: subprocess.Popen[bytes] | None) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if script is not None and pid == script.pid:
                script.returncode = os.waitstatus_to_exitcode(status)
                _say(f"the user data ended with status {script.returncode}")


def _parents() -> dict[int, int]:
    if _LINUX:
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        return found
    listing = subprocess.run(["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return {int(line.split()[0]): int(line.split()[1]) for line in listing.splitlines()}


def _descendants() -> set[int]:
    parents, found, before = _parents(), {os.getpid()}, 0
    while len(found) != before:
        before = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return found - {os.getpid()}


def _signal_all(number: int, *, own_user: bool) -> bool:
    """Signal every process of the machine but this one; tell whether there was any."""
    if own_user:
        try:
            os.kill(-1, number)
        except ProcessLookupError:
            return False
        return bool(_descendants())
    pids = _descendants()
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)
    return bool(pids)


def _end_all(*, own_user: bool, grace_seconds: float) -> None:
    patience = time.monotonic() + grace_seconds
    if grace_seconds:
        _signal_all(signal.SIGTERM, own_user=own_user)
    while time.monotonic() < patience and _descendants():
        _reap(None)
        time.sleep(_POLL_SECONDS)
    while True:
        _signal_all(signal.SIGSTOP, own_user=own_user)
        if not _signal_all(signal.SIGKILL, own_user=own_user):
            return
        time.sleep(_POLL_SECONDS)
        _reap(None)


def _requested_off_at(run: Path, current: float | None) -> float | None:
    try:
        wish = (run / "power").read_text().strip()
    except OSError:
        return current
    with contextlib.suppress(OSError):
        (run / "power").unlink()
    if wish == "cancel":
        return None
    return time.monotonic() + (60.0 * int(wish[1:]) if wish.startswith("+") else 0.0)


def _stay_up(run: Path, script: subprocess.Popen[bytes] | None, wakeup: int) -> float:
    """Wait for the end; answer the grace in seconds that the machine's processes still have."""
    off_at: float | None = None
    while True:
        patience = None if off_at is None else max(0.0, off_at - time.monotonic())
        ready, _, _ = select.select([0, wakeup], [], [], patience)
        if 0 in ready and not os.read(0, 64):
            return 0.0
        with contextlib.suppress(BlockingIOError):
            os.read(wakeup, 4096)
        _reap(script)
        off_at = _requested_off_at(run, off_at)
        if off_at is not None and time.monotonic() >= off_at:
            return _GRACE_SECONDS


def main() -> None:
    """Be the machine."""
    user_data, run = Path(sys.argv[1]), Path(sys.argv[2])
    own_user = "--own-user" in sys.argv[3:] and os.geteuid() != 0
    _adopt_orphans()
    wakeup = _wakeup_pipe()
    (run / "init.pid").write_text(f"{os.getpid()}\n")
    script = _start(user_data)
    grace_seconds = _stay_up(run, script, wakeup)
    _say("power off")
    _end_all(own_user=own_user, grace_seconds=grace_seconds)


if __name__ == "__main__":
    main()
