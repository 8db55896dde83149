"""The command as a person uses it, over a running local cloud."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.stack import Stack

pytestmark = pytest.mark.e2e

JOB = """
name: letters
project: prose
work_dir: work
instance_specs: {cpu_cores: 1, memory_gb: 1}
env: {WHO: world}
outputs: ["out/*.txt"]
task:
  run:
    - mkdir -p out
    - echo "hello $WHO" | tee out/hello.txt
    - cat given.txt > out/copy.txt
"""


class Command:
    """Runs `spotferry` as a process of its own against one local cloud."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self._environment = {**os.environ, "SPOTFERRY_STATE_DIR": str(stack.state_dir), "HOME": str(folder)}
        self._folder = folder

    def __call__(self, *words: str, status: int = 0) -> str:
        """What it prints on stdout; the exit status has to be this one."""
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *words],
            cwd=Path(__file__).parents[2],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        self.complaint = done.stderr
        return done.stdout

    def json(self, *words: str) -> Any:  # Any: JSON of the command
        """The one document that it prints with --json."""
        return json.loads(self(*words, "--json"))


@pytest.fixture
def spotferry(local_cloud: Stack, tmp_path: Path) -> Command:
    """The command, speaking to the session's local cloud."""
    return Command(local_cloud, tmp_path)


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    """A job with a work directory and outputs."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "given.txt").write_text("as given\n")
    path = tmp_path / "job.yml"
    path.write_text(JOB)
    return path


def test_a_job_from_plan_to_download(spotferry: Command, job_file: Path, tmp_path: Path) -> None:
    """Plan, submit, follow the log, look at it, fetch its outputs: each says what a person wants to know."""
    plan = spotferry.json("plan", str(job_file))
    assert plan["chosen"]["provider"] == "aws"
    assert plan["considered"] == plan["fit"] + sum(plan["excluded"].values())

    job_id = spotferry("submit", str(job_file)).strip()
    assert "hello world\n" in spotferry("logs", "-f", job_id)
    job = spotferry.json("show", job_id)
    assert (job["state"], job["exit_code"], job["project"]) == ("DONE", 0, "prose")
    assert job["cost_usd"] > 0
    assert job_id in spotferry("list")
    assert "the task ended with status 0" in spotferry("show", job_id)

    spotferry("download", job_id, "--into", str(tmp_path / "got"))
    assert (tmp_path / "got" / "out" / "hello.txt").read_text() == "hello world\n"
    assert (tmp_path / "got" / "out" / "copy.txt").read_text() == "as given\n"


def test_a_cancelled_job_says_so(spotferry: Command, tmp_path: Path) -> None:
    """`cancel --wait` returns when the job is over, and `logs -f` of it ends with status 1."""
    path = tmp_path / "long.yml"
    path.write_text("instance_specs: {cpu_cores: 1}\ntask: {run: sleep 300}\n")
    job_id = spotferry("submit", str(path)).strip()
    spotferry("cancel", job_id, "--wait")
    assert spotferry.json("show", job_id)["state"] == "CANCELLED"
    spotferry("logs", "-f", job_id, status=1)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("task: [", "job.yml"),
        ("tusk: {run: ls}", "task"),
        ("task: {run: ls}\ninstance_specs: {memory_gb: 900000}", "memory_gb"),
        ("task: {run: ls}\ninstance_specs: {max_price_usd_hour: 0.0001}", "max_price_usd_hour"),
        ("task: {run: ls}\ninstance_specs: {disk_gb: 4}", "disk_gb"),
    ],
)
def test_bad_input_is_refused_by_name(spotferry: Command, tmp_path: Path, text: str, field: str) -> None:
    """A job file that cannot run ends with status 2 and the field's name, and makes no job."""
    path = tmp_path / "job.yml"
    path.write_text(text)
    before = {job["job_id"] for job in spotferry.json("list")["jobs"]}
    spotferry("submit", str(path), status=2)
    assert field in spotferry.complaint
    assert {job["job_id"] for job in spotferry.json("list")["jobs"]} == before


def test_the_same_key_with_another_body_is_refused(spotferry: Command, job_file: Path) -> None:
    """A key stands for one body: the same again is the same job, another one a conflict with status 2."""
    key = hashlib.sha256(str(job_file).encode()).hexdigest()
    first = spotferry("submit", str(job_file), "--idempotency-key", key)
    assert spotferry("submit", str(job_file), "--idempotency-key", key) == first
    job_file.write_text(f"{JOB}labels: {{a: b}}\n")
    spotferry("submit", str(job_file), "--idempotency-key", key, status=2)
    assert "Idempotency-Key" in spotferry.complaint


def test_unknown_ids_are_status_2(spotferry: Command) -> None:
    """What is not there is wrong input."""
    for words in (("show", "j-none"), ("cancel", "j-none"), ("logs", "j-none"), ("download", "j-none")):
        spotferry(*words, status=2)
        assert "j-none" in spotferry.complaint
