"""The local cloud itself: it comes up with the deployed template, is found again, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest

from local.packaging import ROOT
from local.stack import Options, Stack, down, poll, read_stack, running, services, up

pytestmark = pytest.mark.e2e

DEADLINE_SECONDS = 30
STARTER = """
import sys, time
from pathlib import Path
from local.stack import Options, up
stack = up(Path(sys.argv[1]), Options(tied=sys.argv[2] == "tied"))
print(stack.api_url, flush=True)
time.sleep(600)
"""


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true before the deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def processes_of(folder: Path) -> list[psutil.Process]:
    """The living processes that work for the local cloud in this folder: by command line or working directory."""
    found = []
    for process in psutil.process_iter():
        try:
            words = " ".join([*process.cmdline(), process.cwd()])
            if str(folder) in words and process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def start_elsewhere(folder: Path, mode: str) -> subprocess.Popen[bytes]:
    """Bring a local cloud up from a process of its own, and wait until it is up."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "layers" / "shared")])
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder), mode],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert starter.stdout is not None
    assert starter.stdout.readline().startswith(b"http://127.0.0.1:")
    return starter


def test_the_deployed_api_answers(local_cloud: Stack) -> None:
    """Requests go through the API's routes into the real functions, over the real tables."""
    listed = httpx.get(f"{local_cloud.api_url}/jobs", timeout=DEADLINE_SECONDS)
    assert listed.status_code == 200
    assert isinstance(listed.json()["jobs"], list)
    missing = httpx.get(f"{local_cloud.api_url}/jobs/j-0000000000000000", timeout=DEADLINE_SECONDS)
    assert missing.status_code == 404
    assert missing.headers["content-type"].startswith("application/problem+json")


def test_the_poll_can_be_had_at_once(local_cloud: Stack) -> None:
    """poll_status runs under the deployed template, and finds nothing amiss."""
    poll(local_cloud)


def test_market_and_catalogue_ask_one_price(local_cloud: Stack) -> None:
    """What the plan promises is what the market charges at the start."""
    job_file = "task:\n  run: echo hello\ninstance_specs:\n  memory_gb: 1\n"
    answer = httpx.post(
        f"{local_cloud.api_url}/plan", json={"job_file": job_file}, timeout=DEADLINE_SECONDS
    ).raise_for_status()
    assert answer.json()["chosen"]["region"] in {"us-east-1", "us-west-2", "eu-west-1"}


def test_a_second_up_finds_the_first(local_cloud: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Bringing up what is up says so, and returns it."""
    assert up(local_cloud.state_dir) == local_cloud
    assert "is up already" in capsys.readouterr().err


def test_down_leaves_nothing_and_may_be_repeated(tmp_path: Path) -> None:
    """After `down` no process and no record is left; ending what is not there succeeds."""
    stack = up(tmp_path)
    httpx.get(f"{stack.api_url}/jobs", timeout=DEADLINE_SECONDS)  # a function's worker is among what has to go
    assert len(processes_of(tmp_path)) >= 5
    down(tmp_path)
    assert processes_of(tmp_path) == []
    assert read_stack(tmp_path) is None
    down(tmp_path)


def test_a_failed_start_leaves_nothing(tmp_path: Path) -> None:
    """When the template cannot be deployed, the processes that were started for it are ended."""
    function = {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "functions/there_is_none"}}
    options = Options(tied=True, template={"Resources": {"Broken": function}})
    with pytest.raises(FileNotFoundError, match="there_is_none"), running(tmp_path, options):
        pass
    assert processes_of(tmp_path) == []


def test_a_cloud_in_the_foreground_dies_with_its_starter(tmp_path: Path) -> None:
    """When the process that holds it is killed outright, the local cloud ends by itself, machines and workers too."""
    with start_elsewhere(tmp_path, "tied") as starter:
        starter.kill()
    assert eventually(lambda: processes_of(tmp_path) == [])


def test_a_cloud_in_the_background_outlives_its_starter(tmp_path: Path) -> None:
    """The shell that brought it up may go, with all of its processes; `down` from anywhere ends the cloud."""
    with start_elsewhere(tmp_path, "untied") as starter:
        os.killpg(starter.pid, signal.SIGHUP)
    try:
        stack = read_stack(tmp_path)
        assert stack is not None
        assert stack.is_alive()
    finally:
        down(tmp_path)
    assert processes_of(tmp_path) == []
    assert not any(service.is_alive() for service in services(tmp_path))
