"""Services on leashes: they start, end with all that they started, and never take a stranger with them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from local.leash import Pid, end_session, start_of
from local.packaging import ROOT
from local.services import Service, StartError, clean_environment, free_port

# A service that starts a process of its own, which ignores SIGTERM, and writes down that process's number.
PARENT = """
import subprocess, sys, time
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", stubborn])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(60)
"""
STARTER = """
import sys
from pathlib import Path
from local.services import Service, clean_environment
folder = Path(sys.argv[1])
command = [sys.executable, "-c", "import time; time.sleep(60)"]
Service("sleeper", folder).start(command, clean_environment(folder), tied=sys.argv[2] == "tied")
print("started", flush=True)
sys.stdin.read()
"""
DEADLINE_SECONDS = 15


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service of this test, ended after it."""
    sleeper = Service("sleeper", tmp_path)
    yield sleeper
    sleeper.end()


def start_parent(service: Service, folder: Path) -> int:
    """Start a service that has a child; the child's number."""
    note = folder / "child"
    service.start([sys.executable, "-c", PARENT, str(note)], clean_environment(folder), tied=False)
    assert eventually(lambda: note.exists() and note.read_text() != "" and service.is_alive())
    return int(note.read_text())


def test_end_takes_the_services_children_along(service: Service, tmp_path: Path) -> None:
    """Ending a service leaves no process of its session, not even one that ignores SIGTERM; a second end is fine."""
    child = Pid.of(start_parent(service, tmp_path))
    processes = service.processes()
    service.end()
    service.end()
    assert processes is not None
    assert not any(process.is_alive() for process in (*processes, child))


def test_a_leash_that_was_killed_does_not_hide_the_service(service: Service, tmp_path: Path) -> None:
    """The service's own number is on record, so that its end needs no leash."""
    child = Pid.of(start_parent(service, tmp_path))
    processes = service.processes()
    assert processes is not None
    leash, parent = processes
    os.kill(leash.number, signal.SIGKILL)
    service.end()
    assert not parent.is_alive()
    assert not child.is_alive()


def test_a_recycled_number_is_spared(service: Service) -> None:
    """A record whose number belongs to another process by now ends nothing."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as stranger:
        theirs = Pid(stranger.pid, start_of(stranger.pid) - 1000)
        record = {"leash": asdict(theirs), "service": asdict(theirs)}
        service.record.write_text(json.dumps(record), encoding="utf-8")
        alive_for_us = service.is_alive()
        end_session(theirs)
        spared = stranger.poll() is None
        stranger.kill()
    service.record.unlink()
    assert not alive_for_us
    assert spared


@pytest.mark.parametrize(("mode", "survives"), [("tied", False), ("untied", True)])
def test_only_a_tied_service_dies_with_its_starter(
    service: Service, tmp_path: Path, mode: str, *, survives: bool
) -> None:
    """When the starter is killed outright, a tied service ends by itself and a background one lives on."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path), mode],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == b"started\n"
        assert eventually(service.is_alive)
        starter.kill()
    assert survives or eventually(lambda: not service.is_alive())
    assert service.is_alive() == survives


def test_a_service_that_cannot_start_says_why(service: Service, tmp_path: Path) -> None:
    """A failed start is noticed when it happens, and the error holds what the service had to say."""
    complaint = "import sys; sys.exit('no such flag')"
    service.start([sys.executable, "-c", complaint], clean_environment(tmp_path), tied=False)
    with pytest.raises(StartError, match="no such flag"):
        service.wait_until_it_answers(f"http://127.0.0.1:{free_port()}/")


def test_services_inherit_nothing_of_the_callers_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles, tokens and proxies of the caller stay out of the local cloud."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "HTTPS_PROXY", "PYTHONPATH"):
        monkeypatch.setenv(name, "theirs")
    environment = clean_environment(tmp_path)
    assert "theirs" not in environment.values()
    assert environment["AWS_ACCESS_KEY_ID"] == "test"
