"""CRIU: the task's process tree as a directory of images, and back (https://criu.org)."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, List, Optional, Sequence, Tuple

from spotferry.agent.errors import CriuFailed

DUMP_SECONDS = 900
RESTORE_SECONDS = 900
CHECK_SECONDS = 20
SAID_BYTES = 300
"""At most so much of what CRIU said goes into a reason."""

_GHOST_LIMIT_BYTES = 64 * 1024 * 1024
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROC = Path("/proc")
_DEVICES = ("/dev/nvidia", "/dev/dri/", "/dev/kfd", "/dev/davinci", "/dev/accel")
"""What a process has open, or mapped, that computes on an accelerator."""
_OWN_LOGS = ("dump.log", "pre-dump.log", "restore.log")


@dataclass(frozen=True)
class Criu:
    """The program at `binary`; needs root."""

    binary: str

    def refusal(self) -> str:
        """Why it cannot work on this machine; "" when it can."""
        if os.geteuid() != 0:
            return "criu needs an agent that is root"
        done = self._run([self.binary, "check"], CHECK_SECONDS)
        return "" if done.returncode == 0 else f"criu does not work on this kernel: {_tail(done.stderr)}"

    def tracks_memory(self) -> bool:
        """Whether this kernel tells which pages changed, so that a pre-dump spares the dump most of its work."""
        done = self._run([self.binary, "check", "--feature", "mem_dirty_track"], CHECK_SECONDS)
        return done.returncode == 0

    def pre_dump(self, pid: int, images: Path) -> None:
        """Write the tree's memory while it runs; a `dump` that is given the directory writes what changed since.

        Raises:
            CriuFailed: it did not work; the tree runs on.
        """
        images.mkdir(mode=0o700)
        self._on_images("pre-dump", images, ["--tree", str(pid), "--track-mem"], DUMP_SECONDS)

    def dump(self, pid: int, images: Path, before: Optional[Path] = None) -> None:
        """Write the whole tree below `pid`, its open files and pipes included, and leave it stopped.

        Args:
            pid: the leader of the tree's session.
            images: directory that is made.
            before: what `pre_dump` wrote; beside `images`.

        Raises:
            CriuFailed: the tree holds what CRIU cannot dump; it runs on.
        """
        images.mkdir(mode=0o700)
        options = ["--tree", str(pid), "--leave-stopped", "--file-locks", "--link-remap"]
        options += ["--ghost-limit", str(_GHOST_LIMIT_BYTES)]
        if before is not None:
            options += ["--track-mem", "--prev-images-dir", os.path.relpath(before, images)]
        self._on_images("dump", images, options, DUMP_SECONDS)

    def restore(self, images: Path, log: Path) -> int:
        """Bring the tree back, stopped; it becomes this process's child under the pid that it had.

        Args:
            images: what `dump` wrote.
            log: the file that its standard streams were in, at the same path; it goes on at the end of it, whatever
                is there now.

        Raises:
            CriuFailed: a pid is taken, a file is not as it was, or the machine is another one; nothing runs.
        """
        pid_file = images / "leader.pid"
        pid_file.unlink(missing_ok=True)
        with log.open("ab") as stream:
            os.set_inheritable(stream.fileno(), True)
            options = ["--restore-detached", "--restore-sibling", "--leave-stopped", "--file-locks", "--link-remap"]
            options += ["--pidfile", str(pid_file), "--inherit-fd", f"fd[{stream.fileno()}]:{str(log).lstrip('/')}"]
            self._on_images("restore", images, options, RESTORE_SECONDS, (stream.fileno(),))
        return int(pid_file.read_text())

    def _on_images(
        self, action: str, images: Path, options: Sequence[str], seconds: float, fds: Tuple[int, ...] = ()
    ) -> None:
        log = f"{action}.log"
        command = [self.binary, action, "--images-dir", str(images), "--log-file", log, "-v2", *options]
        done = self._run(command, seconds, fds)
        if done.returncode != 0:
            raise CriuFailed(f"criu {action}: {_why(images / log) or _tail(done.stderr) or 'it said nothing'}")

    def _run(self, command: List[str], seconds: float, fds: Tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(  # noqa: S603  (the program that was found, and words of our own)
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
                pass_fds=fds,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CriuFailed(f"criu: {error}") from error


def find(path: str) -> Optional[Criu]:
    """The program, on the task's PATH (the job's setup may have brought it) or among the system's own."""
    found = shutil.which("criu", path=path) or shutil.which("criu", path=_SYSTEM_PATH)
    return Criu(found) if found else None


def accelerator_of(pids: Iterable[int]) -> str:
    """The device through which one of the processes computes on a GPU or the like, whose memory no image holds; ""."""
    for pid in pids:
        for device in _devices(pid):
            return device
    return ""


def memory_bytes(pids: Iterable[int]) -> int:
    """How much memory the processes have in use."""
    return sum(_resident_pages(pid) for pid in pids) * os.sysconf("SC_PAGE_SIZE")


def prefer_high_pids() -> None:
    """Have the next processes get ids that another machine hardly uses, so that a restore there finds them free.

    Needs root; without it nothing changes.
    """
    with contextlib.suppress(OSError, ValueError):
        most = int((_PROC / "sys/kernel/pid_max").read_text())
        start = random.randrange(most // 2, most - most // 16)  # noqa: S311  (spread, no secret)
        (_PROC / "sys/kernel/ns_last_pid").write_text(str(start))


def tidy(images: Path) -> None:
    """Take CRIU's own logs out of the images: they are of this machine."""
    for name in _OWN_LOGS:
        (images / name).unlink(missing_ok=True)


def _resident_pages(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _devices(pid: int) -> Iterable[str]:
    """Accelerators that a process has open or mapped."""
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if target.startswith(_DEVICES):
                    yield target
        for line in (_PROC / str(pid) / "maps").read_text(errors="replace").splitlines():
            mapped = line.split(maxsplit=5)[5:]
            if mapped and mapped[0].startswith(_DEVICES):
                yield mapped[0]


def _why(log: Path) -> str:
    """The first errors in a log of CRIU's, without the places in its source."""
    with contextlib.suppress(OSError):
        lines = [line for line in log.read_text(errors="replace").splitlines() if "Error (" in line]
        words = [line.partition("): ")[2] or line for line in lines if "RLIMIT_NOFILE" not in line]
        return "; ".join(words[:2])[:SAID_BYTES]
    return ""


def _tail(text: str) -> str:
    return " ".join(text.split())[-SAID_BYTES:]
