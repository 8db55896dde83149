"""Where a machine lives: its folder with a home, commands for switching itself off, and the first process's program."""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PREFIX = "spotferry-machines-"
_GZIP_MAGIC = b"\x1f\x8b"
_PUBLIC_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - mkdtemp makes a private name in them
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

_SHUTDOWN = """#!/bin/sh
# Switches this machine off: shutdown [-h|-P] [now|+MINUTES], or takes that back: shutdown -c
run="$(dirname "$0")/../run"
when="DEFAULT"
for word in "$@"; do
  case "$word" in
    -c) when=cancel ;;
    -r|--reboot) echo "$(basename "$0"): this machine can be switched off, not rebooted" >&2; exit 1 ;;
    now) when=now ;;
    +[0-9]*) when="$word" ;;
  esac
done
printf '%s\\n' "$when" > "$run/power.new" && mv "$run/power.new" "$run/power" && kill -s USR1 "$(cat "$run/init.pid")"
"""

_SUDO = """#!/bin/sh
# There is nobody else on this machine: runs the command as who you are.
while [ $# -gt 0 ]; do
  case "$1" in
    -u|-g|-h|-p|-C|-D|-R|-T|-U) shift 2 || exit 1 ;;
    --) shift; break ;;
    -*) shift ;;
    *=*) export "$1"; shift ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- bash
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class MachineHome:
    """The folders of one machine."""

    folder: Path

    @property
    def home(self) -> Path:
        """Its user's home."""
        return self.folder / "home"

    @property
    def run(self) -> Path:
        """What only lives while it runs."""
        return self.folder / "run"

    @property
    def user_data(self) -> Path:
        """The script it was launched with."""
        return self.folder / "user-data"

    @property
    def init(self) -> Path:
        """Its own copy of the first process's program, as the sources may be closed to its user."""
        return self.folder / "init.py"

    def environment(self, allocated_id: str, metadata: Mapping[str, str], marker: str) -> dict[str, str]:
        """All its first process gets to know; `metadata` tells where its cloud's metadata service is."""
        return {
            "HOME": str(self.home),
            "PATH": f"{self.folder / 'bin'}:{_SYSTEM_PATH}",
            "USER": "ubuntu",
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.folder / "tmp"),
            **metadata,
            marker: allocated_id,
        }


def build_home(land: Path, allocated_id: str, user_data: bytes, python: str, uid: int | None) -> MachineHome:
    """Make the machine's folders; they belong to its user, its commands and programs do not."""
    machine = MachineHome(land / allocated_id)
    machine.folder.mkdir(parents=True)
    commands = machine.folder / "bin"
    commands.mkdir()
    for name, text in _commands().items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    (commands / "python3").symlink_to(python)
    shutil.copyfile(Path(__file__).with_name("machine_init.py"), machine.init)
    machine.init.chmod(0o644)
    machine.user_data.write_bytes(gzip.decompress(user_data) if user_data.startswith(_GZIP_MAGIC) else user_data)
    machine.user_data.chmod(0o700)
    for folder in (machine.home, machine.run, machine.folder / "tmp"):
        folder.mkdir(mode=0o700)
    if uid is not None:
        for owned in (machine.folder, machine.home, machine.run, machine.folder / "tmp", machine.user_data):
            os.chown(owned, uid, uid)
    machine.folder.chmod(0o700)
    return machine


def prepare_land(state_dir: Path, *, separate_users: bool) -> Path:
    """The folder machines live in: in the state folder, or where other users get at it when that one is closed.

    What is left there of a run before is removed: its machines went with it.
    """
    land, link = state_dir / "machines", state_dir / "land"
    clear_land(state_dir)
    shutil.rmtree(land, ignore_errors=True)
    land.mkdir(parents=True, exist_ok=True)
    if not separate_users or _open_to_others(land):
        return land
    elsewhere = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_open_folder()))
    elsewhere.chmod(0o711)
    link.symlink_to(elsewhere)
    return elsewhere


def clear_land(state_dir: Path) -> None:
    """Remove a folder that `prepare_land` made outside the state folder, also one of a run before."""
    link = state_dir / "land"
    if link.is_symlink():
        target = link.readlink()
        if target.name.startswith(_PREFIX):
            shutil.rmtree(target, ignore_errors=True)
        link.unlink()


def _commands() -> dict[str, str]:
    # Without a time `shutdown` waits a minute, as the real one does; `poweroff` and `halt` do not.
    at_once = _SHUTDOWN.replace("DEFAULT", "now")
    return {"shutdown": _SHUTDOWN.replace("DEFAULT", "+1"), "poweroff": at_once, "halt": at_once, "sudo": _SUDO}


def _open_folder() -> str:
    for folder in (tempfile.gettempdir(), *_PUBLIC_FOLDERS):
        if _open_to_others(Path(folder)):
            return folder
    raise OSError(f"machines need a folder that other users can enter; {tempfile.gettempdir()} and /tmp are closed")


def _open_to_others(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.resolve().parents))
