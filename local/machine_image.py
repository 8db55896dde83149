"""What all machines have in common: programs, and whether each is as alike to the others as a cloud's machines are."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.machine_home import MachineHome

_BIND = 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"'


@dataclass(frozen=True, slots=True)
class MachineImage:
    """What machines come with.

    Attributes:
        alike: each finds itself at the same place and is root, in a mount namespace of its own: what one
            machine's files are called is what the next one's are. Needs root on Linux. Otherwise each lives in a folder
            with a name of its own, as a user of its own.
        programs: commands that every machine has, by their paths on this computer.
    """

    alike: bool = False
    programs: Sequence[Path] = ()

    def where(self, home: MachineHome) -> MachineHome:
        """The machine's folders, as it sees them itself."""
        return MachineHome(_place(home)) if self.alike else home

    def environment(self, home: MachineHome) -> Mapping[str, str]:
        """What its first process needs beside the ordinary: who is root must not change this computer's accounts."""
        return {"SPOTFERRY_BASE": str(self.where(home).home / ".spotferry")} if self.alike else {}

    def command(self, home: MachineHome, command: Sequence[str]) -> Sequence[str]:
        """The command of its first process, which becomes that process."""
        if not self.alike:
            return command
        namespace = ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", _BIND, "machine"]
        return [*namespace, str(home.folder), str(_place(home)), *command]

    def install(self, home: MachineHome) -> None:
        """Give the machine its programs."""
        for program in self.programs:
            (home.folder / "bin" / program.name).symlink_to(program)
        if self.alike:
            _place(home).mkdir(mode=0o700, exist_ok=True)

    def check(self) -> None:
        """Find out whether such machines can be.

        Raises:
            ValueError: they cannot; the words say why.
        """
        if self.alike and os.geteuid() != 0:
            raise ValueError("machines that are alike need a local cloud that is root")
        for program in self.programs:
            if not program.is_file():
                raise ValueError(f"there is no program {program}")


def _place(home: MachineHome) -> Path:
    """Where a machine that is like all others finds itself: beside the folders of them all."""
    return home.folder.with_name("machine")
