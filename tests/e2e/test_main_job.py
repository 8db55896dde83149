"""The main job's story over HTTP, the queues, the bus and real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.demo import Wish, play, read_object
from local.demo_verdict import verdict
from local.stack import Options, Stack, running

pytestmark = pytest.mark.e2e

STEPS = 30
JOB = """
name: count
work_dir: work
instance_specs: {cpu_cores: 2, memory_gb: 4}
setup: {run: "echo setting up"}
task:
  run: python3 count.py
"""
COUNT = f"""
import pathlib, signal, time
ending = []
signal.signal(signal.SIGTERM, lambda *_: ending.append(True))
at = pathlib.Path("at.txt")
step = int(at.read_text()) if at.exists() else 0
while step < {STEPS} and not ending:
    step += 1
    at.write_text(str(step))
    print(f"step {{step}} of {STEPS}", flush=True)
    time.sleep(0.4)
raise SystemExit(1 if ending else 0)
"""


@pytest.fixture(scope="module")
def enforcing_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A local cloud whose functions may do what their roles say, and nothing else."""
    with running(tmp_path_factory.mktemp("iam"), Options(tied=True, auth=True)) as stack:
        yield stack


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A counting job with its work directory."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "count.py").write_text(COUNT)
    path = tmp_path / "job.yml"
    path.write_text(JOB)
    return path


def _runs_through(stack: Stack, job: Path) -> None:
    story = play(stack, Wish(job, interrupt_at=3, seed=1))
    assert verdict(story, 3, lambda key: read_object(stack, key)) == []
    assert story.steps() == list(range(1, STEPS + 1))
    summary = story.summary()
    assert summary["state"] == "DONE"
    assert len(summary["instances"]) == 2
    assert 0 < summary["cost_usd"] < summary["on_demand_cost_usd"]


def test_an_interrupted_job_loses_nothing(local_cloud: Stack, job: Path) -> None:
    """A job that is interrupted in the middle is done on a second machine, each step printed exactly once."""
    _runs_through(local_cloud, job)


def test_it_does_so_within_its_permissions(enforcing_cloud: Stack, job: Path) -> None:
    """The same story holds while the emulator enforces every function's role."""
    _runs_through(enforcing_cloud, job)
