"""Processes that go on in the middle of a line on another machine, through the broker and the real agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.machine_image import MachineImage
from local.stack import Options, running
from tests.criu_here import criu_here, needs_criu
from tests.e2e.broker import Broker, eventually

pytestmark = pytest.mark.e2e

STEPS = 40
COUNT = f"""
import os, time
reader, writer = os.pipe()
if os.fork() == 0:
    for step in range(1, {STEPS} + 1):
        os.write(writer, b"%d\\n" % step)
        time.sleep(0.2)
    os._exit(0)
os.close(writer)
with open("steps", "a") as steps:
    for line in os.fdopen(reader):
        print("step", line.strip(), flush=True)
        steps.write(line)
        steps.flush()
"""

JOB = """
instance_specs: {cpu_cores: 2}
work_dir: work
task: {run: python3 count.py}
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A local cloud whose machines are as alike as a cloud's, with CRIU on each."""
    criu = criu_here()
    assert criu is not None
    folder = tmp_path_factory.mktemp("alike")
    options = Options(tied=True, image=MachineImage(alike=True, programs=(Path(criu.binary),)))
    with running(folder, options) as stack, Broker(stack) as person:
        yield person


@needs_criu
def test_a_counter_in_memory_goes_on_on_the_next_machine(broker: Broker, tmp_path: Path) -> None:
    """Two processes with a pipe between them, and nothing on the disk that says how far they are, count on."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "count.py").write_text(COUNT)
    job_id = broker.submit(JOB, work)
    first = broker.machine_of(job_id)
    eventually("it counts", lambda: "step 5\n" in broker.log(job_id))
    broker.interrupt(first)
    done = broker.wait(job_id, "DONE")
    assert broker.log(job_id).splitlines() == [f"step {step}" for step in range(1, STEPS + 1)]
    assert len(done["instances"]) == 2
    [checkpoint] = broker.get(f"/jobs/{job_id}/checkpoints")["checkpoints"]
    assert checkpoint["engine"] == "criu"
    told = [entry["message"] for entry in broker.get(f"/jobs/{job_id}/timeline")["entries"]]
    assert any("criu" in message for message in told), told
    broker.assert_machines_gone(job_id)
