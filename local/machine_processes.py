"""Finds every process of a machine and ends it: by descent, by the marker in the environment, by the machine's user."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

MARKER = "SPOTFERRY_MACHINE"
FIRST_UID = 60001
LAST_UID = 60999
_LINUX = sys.platform.startswith("linux")
_POLL_SECONDS = 0.01


def processes_of(allocated_id: str, *, uid: int | None = None) -> list[int]:
    """The living processes of one machine; `uid` is its user when no other machine has that user."""
    found = [pid for pid, owner in _owners() if (uid is not None and owner == uid) or _marker(pid) == allocated_id]
    return _living_with_descendants(found)


def all_machine_processes() -> list[int]:
    """The living processes of all machines of all local clouds on this computer."""
    uids = range(FIRST_UID, LAST_UID + 1) if os.geteuid() == 0 else range(0)
    return _living_with_descendants([pid for pid, owner in _owners() if owner in uids or _marker(pid) is not None])


def users_in_use() -> set[int]:
    """The users that some process runs as now."""
    return {owner for _, owner in _owners()}


def end_processes_of(allocated_id: str, *, uid: int | None, deadline_seconds: float) -> list[int]:
    """Kill every process of the machine; answer what is still left at the deadline.

    A user of its own is killed at once, by the kernel, whatever its processes do meanwhile. Else they are found one by
    one and frozen first, so that none of them can start another behind the finder's back.
    """
    deadline = time.monotonic() + deadline_seconds
    if uid is None:
        return _end_one_by_one(allocated_id, deadline)
    while True:
        _kill_user(uid)
        left = [pid for pid, owner in _owners() if owner == uid and _is_living(pid)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(_POLL_SECONDS)


def _kill_user(uid: int) -> None:
    assert uid > 0, "this would end the computer"
    subprocess.run(
        ["/bin/sh", "-c", "kill -KILL -1"],
        user=uid,
        group=uid,
        extra_groups=[],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def _end_one_by_one(allocated_id: str, deadline: float) -> list[int]:
    frozen: set[int] = set()
    while True:
        pids = processes_of(allocated_id)
        fresh = [pid for pid in pids if pid not in frozen]
        if fresh:
            _send(fresh, signal.SIGSTOP)
            frozen.update(fresh)
            continue
        if not pids or time.monotonic() > deadline:
            return pids
        _send(pids, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)


def _owners() -> Iterator[tuple[int, int]]:
    """Every process with its user; read the cheap way where there is one, as boots and ends wait for it."""
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if pid != os.getpid():
                yield pid, Path(f"/proc/{pid}").stat().st_uid if _LINUX else psutil.Process(pid).uids().effective


def _marker(pid: int) -> str | None:
    try:
        return psutil.Process(pid).environ().get(MARKER)
    except (psutil.Error, OSError):
        return None


def _living_with_descendants(pids: Iterable[int]) -> list[int]:
    found: set[int] = set()
    for pid in pids:
        if pid not in found:
            found.add(pid)
            with contextlib.suppress(psutil.Error):
                found.update(child.pid for child in psutil.Process(pid).children(recursive=True))
    return sorted(pid for pid in found if _is_living(pid))


def _is_living(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.Error:
        return False


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
