"""The world that setup and task live in: the same on every machine of every cloud."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from spotferry.agent.errors import StepFailed
from spotferry.agent.removal import remove
from spotferry.agent.settings import Places

TASK_USER = "spotferry"
INPUTS_NAME = "spotferry-inputs"
_HELPER_SECONDS = 60
_PASSED_ON = ("PATH", "TMPDIR")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SUDOERS = Path("/etc/sudoers.d/spotferry")


class World:
    """The task's user, home, work directory and environment.

    Where the agent is root on a machine of its own, the user is `spotferry`, made here, with sudo; elsewhere it is
    whoever the agent is, with a home below the agent's directory.

    Attributes:
        home: the task's HOME.
        user_id: of the task's own user; None where it shares the agent's.
    """

    def __init__(self, places: Places) -> None:
        self._name = pwd.getpwuid(os.getuid()).pw_name if _is_known(os.getuid()) else TASK_USER
        self.user_id: Optional[int] = None
        self.group_id: Optional[int] = None
        self.home = places.base / "home"
        if places.privileged:
            account = _account()
            self._name, self.user_id, self.group_id = account.pw_name, account.pw_uid, account.pw_gid
            self.home = Path(account.pw_dir)
        if not self.home.is_dir():  # an image's own user may have come without one
            self.home.mkdir(parents=True)
            self.give(self.home)

    @property
    def owner(self) -> Optional[Tuple[int, int]]:
        """User and group that the task's files belong to; None where everything belongs to the agent's user anyway."""
        return None if self.user_id is None or self.group_id is None else (self.user_id, self.group_id)

    @property
    def inputs_dir(self) -> Path:
        """Where the job's inputs are."""
        return self.home / INPUTS_NAME

    def work_dir(self, name: str) -> Path:
        """Where the work directory of this name is.

        Raises:
            StepFailed: the name is not that of one directory.
        """
        if not name or name in (".", "..", INPUTS_NAME) or "/" in name or "\0" in name:
            raise StepFailed(
                "startup_failed", {"reason": f"the work directory's name {name!r} is not one that it can have"}
            )
        return self.home / name

    def environment(self, given: Mapping[str, str]) -> Dict[str, str]:
        """The environment of setup, and of a task without one; nothing of the machine's own but PATH and TMPDIR."""
        passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        path = passed.pop("PATH", _DEFAULT_PATH)
        return {
            **passed,
            "PATH": f"{self.home}/.local/bin:{path}",
            "HOME": str(self.home),
            "USER": self._name,
            "LOGNAME": self._name,
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            "PIP_BREAK_SYSTEM_PACKAGES": "1",
            "PYTHONUNBUFFERED": "1",
            **given,
        }

    def identity(self) -> Dict[str, Any]:
        """Arguments of Popen that make a process the task user's; Any, as Popen's own."""
        if self.owner is None:
            return {}
        return {"user": self.user_id, "group": self.group_id, "extra_groups": [self.group_id]}

    def give(self, path: Path) -> None:
        """Make a path the task user's."""
        if self.owner:
            os.chown(path, *self.owner, follow_symlinks=False)

    def put_in_place(self, tree: Path, work_dir: Path, *, link: bool) -> None:
        """A finished tree takes the work directory's place, whatever was there; with `link`, `link_self` follows."""
        old = work_dir.with_name(work_dir.name + ".spotferry-old")
        remove(old)
        if os.path.lexists(work_dir):
            work_dir.rename(old)
        tree.rename(work_dir)
        remove(old)
        if link:
            self.link_self(work_dir)

    def link_self(self, work_dir: Path) -> None:
        """Let `cd <name>` work from inside too: a link to the directory itself, unless an entry has that name."""
        link = work_dir / work_dir.name
        if not os.path.lexists(link):
            link.symlink_to(".")
            self.give(link)

    def unpack_place(self, work_dir: Path) -> Path:
        """An empty directory beside the work directory, on the same file system."""
        place = work_dir.with_name(work_dir.name + ".spotferry-new")
        remove(place)
        place.mkdir()
        self.give(place)
        return place


def is_self_link(path: str, work_dir: Path) -> bool:
    """Whether an entry of the work directory, by its relative path, is the link of `World.link_self`."""
    if path != work_dir.name:
        return False
    try:
        return os.readlink(work_dir / path) == "."  # noqa: PTH115  (as it is written)
    except OSError:
        return False  # it is no link, or has vanished


def checked_variables(given: Mapping[str, object]) -> Dict[str, str]:
    """Variables that a process can be given.

    Raises:
        StepFailed: a name is not one, or a value holds a NUL; the value is not shown.
    """
    for name, value in given.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in str(value):
            raise StepFailed("startup_failed", {"reason": f"{name!r} cannot be an environment variable"})
    return {name: str(value) for name, value in given.items()}


def _is_known(user_id: int) -> bool:
    try:
        pwd.getpwuid(user_id)
    except KeyError:
        return False
    return True


def _account() -> pwd.struct_passwd:
    """The task's user, made where the image has none; with sudo without a password either way."""
    try:
        pwd.getpwnam(TASK_USER)
    except KeyError:
        _run(["useradd", "--create-home", "--shell", "/bin/bash", TASK_USER])
    if _SUDOERS.parent.is_dir():
        _SUDOERS.write_text(f"{TASK_USER} ALL=(ALL) NOPASSWD:ALL\n")
        _SUDOERS.chmod(0o440)
    return pwd.getpwnam(TASK_USER)


def _run(command: List[str]) -> None:
    subprocess.run(  # noqa: S603  (a fixed command)
        command, stdin=subprocess.DEVNULL, check=True, timeout=_HELPER_SECONDS
    )
