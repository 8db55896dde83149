"""The task's processes, wherever they hid: found through /proc, signalled, stopped and reaped."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Set

_PROC = Path("/proc")
_STANDSTILL_LOOKS = 100
_STANDSTILL_SECONDS = 0.005


@dataclass(frozen=True)
class Process:
    """One line of the process table.

    Attributes:
        pid, parent, session: ids.
        state: one letter, as in proc(5).
    """

    pid: int
    parent: int
    session: int
    state: str


def table(proc: Path = _PROC) -> Dict[int, Process]:
    """Every process of the machine, by id; empty where there is no /proc."""
    found = (_read(entry) for entry in (proc.iterdir() if proc.is_dir() else ()) if entry.name.isdigit())
    return {process.pid: process for process in found if process}


def _read(entry: Path) -> Optional[Process]:
    """The process of a directory below /proc; None when it has just ended."""
    try:
        head, _, rest = (entry / "stat").read_text(errors="replace").rpartition(")")
    except OSError:
        return None
    fields = rest.split()
    return Process(int(head.split(" ", 1)[0]), int(fields[1]), int(fields[3]), fields[0])


class Brood:
    """All processes that descend from the agent but are not of its own session: the task's, and those of setup.

    The agent is the subreaper of its descendants, so that whoever daemonizes remains one. Where the task has a user of
    its own on the machine, that user's processes count as well. Descendants from before the brood was made are none of
    it.

    Args:
        user_id: of the task's own user; None where it shares the agent's.

    Attributes:
        leaders: ids of processes that somebody else waits for.
    """

    def __init__(self, user_id: Optional[int]) -> None:
        self._user_id = user_id
        self._agent = os.getpid()
        self._session = os.getsid(0)
        self.leaders: Set[int] = set()
        processes = table()
        self._before = {p.pid for p in processes.values() if self._descends(p, processes, set())}

    def living(self) -> List[Process]:
        """Those that still run or are stopped; reaps the orphans among those that ended."""
        processes = table()
        brood = [p for p in processes.values() if self._is_ours(p, processes)]
        for process in brood:
            if process.state == "Z" and process.parent == self._agent and process.pid not in self.leaders:
                _reap(process.pid)
        return [p for p in brood if p.state not in "ZX"]

    def signal(self, number: int) -> None:
        """Send a signal to each."""
        for process in self.living():
            send(process.pid, number)

    def stop(self) -> List[int]:
        """Stop all, also those that are born meanwhile, and see them stand still; the ids of those that ran."""
        stopped: List[int] = []
        while running := [p.pid for p in self.living() if p.state not in "Tt" and p.pid not in stopped]:
            for pid in running:
                send(pid, signal.SIGSTOP)
            stopped.extend(running)
        for _ in range(_STANDSTILL_LOOKS):
            if not [p for p in self.living() if p.state in "RS"]:
                break
            time.sleep(_STANDSTILL_SECONDS)
        return stopped

    def outside(self, leaders: Set[int]) -> List[int]:
        """Those that neither are nor descend from one of these."""
        processes = table()
        living = [p for p in processes.values() if p.state not in "ZX" and self._is_ours(p, processes)]
        return [p.pid for p in living if p.pid not in leaders and not _is_below(p, leaders, processes)]

    def catchers(self, number: int) -> List[int]:
        """Those that have a handler for a signal, but none below one that has."""
        processes = table()
        ours = [p for p in processes.values() if self._is_ours(p, processes)]
        catching = {p.pid for p in ours if _catches(p.pid, number)}
        return [pid for pid in catching if not _is_below(processes[pid], catching, processes)]

    def _is_ours(self, process: Process, processes: Dict[int, Process]) -> bool:
        if process.session == self._session or process.pid == self._agent:
            return False
        if self._user_id is not None and _owner(process.pid) == self._user_id:
            return True
        return self._descends(process, processes, self._before)

    def _descends(self, process: Process, processes: Dict[int, Process], without: Set[int]) -> bool:
        """Whether a process descends from the agent, and not through one of `without`."""
        seen = process
        for _ in processes:
            if seen.pid in without:
                return False
            if seen.parent == self._agent or seen.parent not in processes:
                break
            seen = processes[seen.parent]
        return seen.parent == self._agent


def send(pid: int, number: int) -> None:
    """Signal a process; one that is gone, or not ours to signal, is left alone."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    try:
        lines = (_PROC / str(pid) / "status").read_text(errors="replace").splitlines()
    except OSError:
        return False
    caught = next((int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:")), 0)
    return bool(caught >> (number - 1) & 1)


def _is_below(process: Process, others: Set[int], processes: Dict[int, Process]) -> bool:
    """Whether a process descends from one of the others."""
    parent = process.parent
    for _ in processes:
        if parent in others:
            return True
        if parent not in processes:
            return False
        parent = processes[parent].parent
    return False


def _owner(pid: int) -> Optional[int]:
    try:
        return (_PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return
