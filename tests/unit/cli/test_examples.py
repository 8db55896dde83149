"""The examples run as they are: each is read, packed, and found to hold what its job file names."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cli.packing import pack
from spotferry.types import init_job_file

ROOT = Path(__file__).parents[3]
JOB_FILES = sorted((ROOT / "examples").glob("*/*.yml"))


def test_there_are_examples() -> None:
    """Each way that a job can go has one."""
    assert {"hello", "fails", "setup-fails", "stubborn"} <= {path.parent.name for path in JOB_FILES}


@pytest.mark.parametrize(
    "path",
    JOB_FILES,
    ids=lambda path: path.parent.name,
)
def test_an_example_is_a_job_file_with_its_work_directory(path: Path) -> None:
    """What an example's task runs travels with it."""
    job_file = init_job_file(path)
    if not job_file.work_dir:
        return
    archive = io.BytesIO()
    assert pack(path.parent / job_file.work_dir, archive).files > 0
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        names = set(tar.getnames())
    scripts = {word for line in job_file.task.run for word in line.split() if word.endswith((".py", ".sh"))}
    assert {Path(script).name for script in scripts} <= {Path(name).name for name in names}


def test_the_failing_task_fails_as_its_job_file_says(tmp_path: Path) -> None:
    """Exit status 3, after half of its steps, with its report written."""
    script = ROOT / "examples" / "fails" / "work" / "fail.py"
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stdout) == (3, "step 1 of 4\nstep 2 of 4\n")
    assert (tmp_path / "report.txt").read_text() == "came as far as step 2\n"
