"""Users for machines: one each when the local cloud runs as root, also between several local clouds on one computer."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from local.machine_processes import FIRST_UID, LAST_UID, users_in_use

_PROBE = "import sys; sys.exit(sys.version_info < (3, 9))"
_FIRST_ORDINARY_UID = 1000
_SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class MachineUser:
    """Who a machine runs as; `uid` is None for the user the local cloud runs as."""

    uid: int | None
    lock: IO[str] | None = None


class MachineUsers:
    """Hands out users that nobody else has, and takes them back; with `root`, none: machines are to be root."""

    def __init__(self, first_uid: int = FIRST_UID, *, root: bool = False) -> None:
        if first_uid < _FIRST_ORDINARY_UID:
            # All of a machine's user is killed with the machine: that must never be the system.
            raise ValueError(f"machines cannot run as user {first_uid}: name one from {_FIRST_ORDINARY_UID} up")
        self._first_uid = first_uid
        self._lock = threading.Lock()
        self.python = _python_for(first_uid if os.geteuid() == 0 else None)
        self.separate = os.geteuid() == 0 and self.python is not None and not root
        if os.geteuid() == 0 and self.python is None:
            sys.stderr.write(
                f"local cloud: {_SEARCH_PATH} has no Python >= 3.9 that other users can run: machines run as root. "
                "Install python3 from the system's packages to change that.\n"
            )

    def take(self) -> MachineUser:
        """A user for one machine.

        Raises:
            OSError: all are taken.
        """
        if not self.separate:
            return MachineUser(None)
        locks = Path(tempfile.gettempdir()) / "spotferry-machine-users"
        locks.mkdir(mode=0o700, exist_ok=True)
        with self._lock:
            busy = users_in_use()
            for uid in range(self._first_uid, max(LAST_UID, self._first_uid) + 1):
                lock = _lock(locks / str(uid)) if uid not in busy else None
                if lock is not None:
                    return MachineUser(uid, lock)
        raise OSError(f"all users from {self._first_uid} to {LAST_UID} have a machine already")

    def give_back(self, user: MachineUser) -> None:
        """Let another machine have the user; nothing may run as it any more."""
        if user.lock is not None:
            user.lock.close()


def _lock(path: Path) -> IO[str] | None:
    handle = path.open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        return None
    return handle


def _python_for(uid: int | None) -> str | None:
    candidates = [os.path.realpath(sys.executable), shutil.which("python3", path=_SEARCH_PATH)]
    for candidate in candidates:
        if candidate is not None and (uid is None or _runs(candidate, uid)):
            return candidate
    return None


def _runs(python: str, uid: int) -> bool:
    try:
        probe = subprocess.run(  # noqa: S603 - an interpreter of this computer
            [python, "-I", "-c", _PROBE], user=uid, group=uid, extra_groups=[], cwd="/", env={}, timeout=20, check=False
        )
    except OSError:
        return False
    return probe.returncode == 0
