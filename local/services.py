"""Starts the two processes of the local cloud, each on a leash, and ends them by what was recorded about them."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from local.leash import Pid, end_session
from local.packaging import ROOT

START_SECONDS = 30
END_SECONDS = 20
POLL_SECONDS = 0.05
PROBE_SECONDS = 2
LOG_TAIL_LINES = 15


class StartError(RuntimeError):
    """A service did not start; the text holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the local cloud in a state folder."""

    name: str
    state_dir: Path

    @property
    def record(self) -> Path:
        """Where its leash writes who runs it."""
        return self.state_dir / f"{self.name}.pids.json"

    @property
    def log(self) -> Path:
        """Its output and its errors."""
        return self.state_dir / f"{self.name}.log"

    def start(self, command: Sequence[str], env: Mapping[str, str], *, tied: bool) -> None:
        """Start it on a leash; tied means that it ends when this process does, however this process ends."""
        self.record.unlink(missing_ok=True)
        leash = [sys.executable, "-m", "local.leash", "--record", str(self.record)]
        with self.log.open("wb") as log:
            held = subprocess.Popen(  # noqa: S603 - a command of our own
                [*leash, *(["--tied"] if tied else []), "--", *command],
                stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env=dict(env),
                start_new_session=True,
            )
        _held[self.record] = held

    def processes(self) -> tuple[Pid, Pid] | None:
        """Leash and service as recorded; None before the start and after the end."""
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return Pid(**record["leash"]), Pid(**record["service"])

    def is_alive(self) -> bool:
        """Whether the service itself runs."""
        processes = self.processes()
        return processes is not None and processes[1].is_alive()

    def wait_until_it_answers(self, url: str) -> None:
        """Return when the address answers.

        Raises:
            StartError: the service ended, or did not answer in time.
        """
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if answers(url):
                return
            held = _held.get(self.record)
            if held is not None and held.poll() is not None:
                break
            time.sleep(POLL_SECONDS)
        raise StartError(f"The local {self.name} did not start. The end of {self.log}:\n{self._log_tail()}")

    def end(self) -> None:
        """End service and leash and whatever the service started; succeeds when nothing runs."""
        held = _held.pop(self.record, None)
        if held is not None and held.stdin is not None:
            held.stdin.close()
        if held is not None and held.poll() is None and self.processes() is None:
            held.terminate()
            held.wait(END_SECONDS)
        for process in self.processes() or ():
            end_session(process, END_SECONDS)
        if held is not None:
            held.wait(END_SECONDS)
        self.record.unlink(missing_ok=True)

    def _log_tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])


# What this process started and has to wait for: a leash's standard input is the tie, so it must not be collected.
_held: dict[Path, subprocess.Popen[bytes]] = {}


def answers(url: str) -> bool:
    """Whether an address of this machine answers with a success."""
    try:
        with urllib.request.urlopen(url, timeout=PROBE_SECONDS) as response:  # noqa: S310 - our own http address
            return bool(response.status < 400)  # noqa: PLR2004 - below the client errors
    except (OSError, urllib.error.URLError):
        return False


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def clean_environment(state_dir: Path) -> dict[str, str]:
    """What services inherit: nothing of the caller's own cloud account, and no proxy."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "LOG_LEVEL") if name in os.environ}
    nowhere = str(state_dir / "no-such-file")
    return {
        **kept,
        "PYTHONUNBUFFERED": "1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_CONFIG_FILE": nowhere,
        "AWS_SHARED_CREDENTIALS_FILE": nowhere,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
