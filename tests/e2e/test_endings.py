"""However a job ends, it says so, and its machine is gone within two polls."""

import hashlib
import io
import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from local.machine_processes import processes_of
from local.stack import Options, Stack, running, services
from tests.e2e.broker import Broker, eventually

pytestmark = pytest.mark.e2e

SPECS = "instance_specs: {cpu_cores: 1, memory_gb: 1}\n"
BIG_OUTPUT = f"""{SPECS}
outputs: [big.bin, small.txt]
task:
  run: |
    echo "the task runs"
    python3 -c "import random; random.seed(7); open('big.bin','wb').write(random.randbytes(100_000_000))"
    echo done > small.txt
"""


@pytest.fixture
def broker(local_cloud: Stack) -> Iterator[Broker]:
    """The session's local cloud."""
    with Broker(local_cloud) as broker:
        yield broker


def test_a_task_that_fails(broker: Broker) -> None:
    """A task's own failure is the job's, with its exit status and what it printed."""
    job_id = broker.submit(f"{SPECS}task:\n  run: [echo before, exit 3, echo after]\n")
    job = broker.wait(job_id, "FAILED")
    assert job["exit_code"] == 3
    assert "status 3" in job["reason"]
    assert broker.log(job_id) == "before\n"
    broker.assert_machines_gone(job_id)


def test_a_setup_that_fails_is_held_retried_and_let_go(broker: Broker) -> None:
    """A failed setup names its line and holds the machine; a retry runs it again; without one the machine goes."""
    setup = "setup:\n  run: [echo setting up, test -e ~/ready || (touch ~/ready; exit 7)]\n"
    job_id = broker.submit(f"{SPECS}{setup}task:\n  run: echo ran\n")
    job = broker.wait(job_id, "SETUP_FAILED")
    assert "7" in job["reason"]
    assert "test -e ~/ready" in job["reason"]
    assert job["deadline"]
    assert broker.send("POST", f"/jobs/{job_id}/retry").is_success
    broker.wait(job_id, "DONE")
    assert broker.log(job_id).count("ran\n") == 1
    broker.assert_machines_gone(job_id)

    job_id = broker.submit(f"{SPECS}setup:\n  run: exit 9\ntask:\n  run: echo ran\n")
    broker.wait(job_id, "SETUP_FAILED")

    def let_go() -> bool:
        broker.poll()
        return bool(broker.job(job_id)["state"] == "FAILED")

    eventually("the hold ends", let_go, 60)
    broker.assert_machines_gone(job_id)


def test_a_task_that_outlives_a_cancel(broker: Broker) -> None:
    """A task that ignores SIGTERM is killed after its grace; the job is CANCELLED and says by whom."""
    job_id = broker.submit(f"{SPECS}task:\n  run: |\n    trap '' TERM\n    echo up; while true; do sleep 0.2; done\n")
    eventually("the task runs", lambda: "up\n" in broker.log(job_id))
    assert broker.send("POST", f"/jobs/{job_id}/cancel").json()["job"]["state"] == "CANCELLING"
    broker.wait(job_id, "CANCELLED")
    broker.assert_machines_gone(job_id)


def test_a_cancel_before_there_is_a_machine(broker: Broker) -> None:
    """A job that is cancelled while its machine is being made leaves none."""
    job_id = broker.submit(f"{SPECS}task:\n  run: echo never\n")
    broker.send("POST", f"/jobs/{job_id}/cancel")
    broker.wait(job_id, "CANCELLED")
    broker.assert_machines_gone(job_id, polls=3)
    assert "never" not in broker.log(job_id)


def test_outputs_survive_an_interruption_while_they_are_sent(broker: Broker, tmp_path: Path) -> None:
    """A machine that is taken back while it sends the outputs costs no second run: another one sends the same bytes."""
    job_id = broker.submit(BIG_OUTPUT)
    broker.wait(job_id, "FINALIZING")
    broker.interrupt(broker.machine_of(job_id), notice_seconds=0)
    job = broker.wait(job_id, "DONE")
    assert len(job["instances"]) == 2, job["instances"]
    assert broker.log(job_id).count("the task runs") == 1

    outputs = broker.get(f"/jobs/{job_id}/outputs")
    archive = httpx.get(outputs["url"], timeout=30).content
    assert hashlib.sha256(archive).hexdigest() == outputs["sha256"]
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(tmp_path, filter="data")
    said = {file["path"]: file["sha256"] for file in outputs["files"]}
    assert set(said) == {"big.bin", "small.txt"}
    for path, digest in said.items():
        assert hashlib.sha256((tmp_path / path).read_bytes()).hexdigest() == digest
    broker.assert_machines_gone(job_id)


def test_two_jobs_at_once(broker: Broker) -> None:
    """Jobs do not meet: each has its machine, its log and its end."""
    first = broker.submit(f"{SPECS}task:\n  run: [echo one, sleep 1, echo one more]\n")
    second = broker.submit(f"{SPECS}task:\n  run: [echo two, sleep 1, exit 2]\n")
    assert broker.wait(first, "DONE")["instances"][0]["allocated_id"]
    assert broker.wait(second, "FAILED")["exit_code"] == 2
    assert broker.log(first) == "one\none more\n"
    assert broker.log(second) == "two\n"
    broker.assert_machines_gone(first)
    broker.assert_machines_gone(second)


def command_line_of(pid: int) -> list[str]:
    """How the process was started; empty of one that has ended meanwhile, which its parent may not have noticed."""
    try:
        return psutil.Process(pid).cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def test_an_agent_that_is_killed(broker: Broker) -> None:
    """When the agent dies its machine ends with it, and the job is done on another one."""
    job_id = broker.submit(f"{SPECS}task:\n  run: [echo start, sleep 3, echo end]\n")
    machine = broker.machine_of(job_id)
    broker.wait(job_id, "RUNNING")
    agents = [pid for pid in processes_of(machine) if any("agent.pyz" in word for word in command_line_of(pid))]
    assert agents
    for pid in agents:
        os.kill(pid, signal.SIGKILL)
    eventually("the machine is gone", lambda: processes_of(machine) == [], 20)
    job = broker.wait(job_id, "DONE")
    assert len(job["instances"]) == 2
    broker.assert_machines_gone(job_id)


def test_a_broker_that_is_away_for_longer_than_the_lease(tmp_path: Path) -> None:
    """Without the broker a machine ends itself when its lease is over; the job goes on when the broker is back."""
    options = Options(tied=True, parameters={"LeaseSeconds": "6"})
    with running(tmp_path / "cloud", options) as stack, Broker(stack) as broker:
        job_id = broker.submit(f"{SPECS}task:\n  run: [sleep 8, echo end]\n")
        machine = broker.machine_of(job_id)
        broker.wait(job_id, "RUNNING")
        emulator = [psutil.Process(p.number) for p in services(stack.state_dir)[0].processes() or ()]
        for process in emulator:
            process.suspend()
        try:
            eventually("the machine ended itself", lambda: processes_of(machine) == [], 40)
        finally:
            for process in emulator:
                process.resume()
        broker.poll()
        assert len(broker.wait(job_id, "DONE")["instances"]) >= 2
        broker.assert_machines_gone(job_id)
