"""A machine for tests: the real agent as a real process, with its own home, beside programs that end the machine."""

import contextlib
import hashlib
import io
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spotferry.domain.boot import agent_token, instance_id, user_data
from spotferry.runtime.agent_bundle import agent_bundle
from tests.unit.agent.fake_broker import FakeBroker, Json

COUNT = """\
import os, pathlib, signal, sys, time
stop = []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
file = pathlib.Path("step")
done = int(file.read_text()) if file.exists() else 0
for step in range(done + 1, int(sys.argv[1]) + 1):
    time.sleep(0.1)
    print("step", step, flush=True)
    file.with_suffix(".new").write_text(str(step))
    os.replace("step.new", "step")
    if stop:
        sys.exit(0)
"""

INSTANCE_ID = instance_id("tests", "j-1", 1)
TOKEN = agent_token(b"secret of the deployment", INSTANCE_ID, 1)


def tar_gz(files: Mapping[str, str | bytes]) -> bytes:
    """An archive of files by path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in files.items():
            content = text.encode() if isinstance(text, str) else text
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def count_upload() -> bytes:
    """The upload of a job that counts."""
    return tar_gz({"count.py": COUNT, "data/model.txt": "weights"})


def with_upload(fake: FakeBroker, content: bytes, name: str = "count") -> None:
    """Give the plan a work directory."""
    fake.plan["work_dir"] = {"name": name, **fake.store(content)}


def plan(**changes: Any) -> Json:  # Any: fields of the plan
    """A plan for a fresh job without a work directory."""
    return {
        "mode": "fresh",
        "work_dir": None,
        "setup": [],
        "task": ["true"],
        "restored_task": [],
        "env": {},
        "secrets": {},
        "outputs": [],
        "checkpoints": [],
        "exit_code": None,
        **changes,
    }


def broker(**changes: Any) -> FakeBroker:  # Any: fields of the plan
    """A broker for one job."""
    return FakeBroker(plan(**changes), instance_id=INSTANCE_ID, token=TOKEN, agent=agent_bundle().content)


class Machine:
    """A machine that boots from its user data when it is entered and is gone when it is left.

    Its python3 is the tests' own, or what SPOTFERRY_TEST_AGENT_PYTHON names: the agent runs on older ones too.

    Attributes:
        base: the agent's directory.
        console: what the boot printed, once it is over.
    """

    def __init__(self, directory: Path, fake: FakeBroker) -> None:
        self.base = directory / "base"
        self._bin = directory / "bin"
        self._down = directory / "down"
        self._console = directory / "console"
        self._fake = fake
        self._bin.mkdir(parents=True)
        for name in ("shutdown", "poweroff", "systemctl", "sudo"):
            shim = self._bin / name
            shim.write_text(f"#!/bin/sh\necho {name} $* >> {self._down}\n")
            shim.chmod(0o755)
        (self._bin / "python3").symlink_to(os.environ.get("SPOTFERRY_TEST_AGENT_PYTHON", sys.executable))

    @property
    def environment(self) -> dict[str, str]:
        """Of the boot: nothing of the tests' own."""
        return {
            "PATH": f"{self._bin}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self._bin.parent),
            "SPOTFERRY_BASE": str(self.base),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self._fake.url,
            "MACHINE_SECRET": "of the machine",
        }

    def __enter__(self) -> Self:
        script = self._bin.parent / "user-data"
        script.write_text(
            user_data(
                broker_url=self._fake.url,
                agent_sha256=agent_bundle().sha256,
                instance_id=INSTANCE_ID,
                epoch=self._fake.epoch,
                token=TOKEN,
                provider="aws",
            )
        )
        with self._console.open("wb") as console:
            self.boot = subprocess.Popen(
                ["/bin/bash", str(script)], env=self.environment, stdout=console, stderr=console, start_new_session=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.boot.pid, signal.SIGKILL)
        self.boot.wait(10)
        while left := self.strays():
            for pid in left:
                kill(pid)
        if error is not None:
            sys.stderr.write(self.console)

    @property
    def console(self) -> str:
        """What boot and agent printed."""
        return self._console.read_text(errors="replace")

    def over(self, seconds: float = 15.0) -> list[str]:
        """Wait until the boot has ended; the calls that were to end the machine."""
        self.boot.wait(seconds)
        return self._down.read_text().splitlines() if self._down.exists() else []

    def agent_pid(self) -> int:
        """The agent's process."""
        return next(pid for pid in self.processes() if b"agent.pyz" in command_line(pid))

    def processes(self) -> list[int]:
        """Everything that lives below the boot's script or in the agent's directory, but not the tests."""
        return [pid for pid in pids() if pid == self.boot.pid or self._is_mine(pid)]

    def strays(self) -> list[int]:
        """What still runs of the job."""
        return [pid for pid in self.processes() if pid != self.boot.pid]

    def _is_mine(self, pid: int) -> bool:
        try:
            if str(self.base).encode() in command_line(pid):
                return True
            return str(self.base) in str(Path(f"/proc/{pid}/cwd").readlink())
        except OSError:
            return False


def pids() -> list[int]:
    """Every process that is not a zombie."""
    found = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [pid for pid in found if not _is_zombie(pid)]


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def command_line(pid: int) -> bytes:
    """A process's arguments; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def send(pid: int, number: int) -> None:
    """Signal a process, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def kill(pid: int) -> None:
    """SIGKILL, if it is still there."""
    send(pid, signal.SIGKILL)


def digest(content: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(content).hexdigest()
