"""The real agent as a real process: booted from its user data, against a broker that checks the protocol strictly."""

import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotferry.agent.members import unzip
from spotferry.agent.saving import OUTPUTS_PART
from spotferry.agent.workdir import WORKDIR_PART
from tests.e2e import machine as m

NOTICE = {"action": "terminate", "time": "2030-01-01T00:02:00Z"}


def plain(content: bytes) -> io.BytesIO:
    """The tar of an archive."""
    with unzip(io.BytesIO(content)) as stream:
        return io.BytesIO(stream.read())


def names_in(content: bytes) -> dict[str, tarfile.TarInfo]:
    """Entries of an archive."""
    with tarfile.open(fileobj=plain(content)) as tar:
        return {entry.name: entry for entry in tar}


def read_from(content: bytes, name: str) -> bytes:
    """One file of an archive."""
    with tarfile.open(fileobj=plain(content)) as tar:
        file = tar.extractfile(name)
        assert file is not None
        return file.read()


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    """Fresh directories for machines."""
    return iter(tmp_path / f"machine-{number}" for number in range(10))


def test_fresh_job_runs_from_upload_to_shutdown(tmp_path: Path) -> None:
    """Setup and task run in the upload, one environment for both; the log is whole; the machine ends itself."""
    fake = m.broker(
        setup=["cd data && test -f model.txt", "export FROM_SETUP=yes", "cd /"],
        task=["cd count && cat data/model.txt", "echo; echo $FROM_SETUP $GIVEN $HIDDEN; echo to stderr >&2", "exit 0"],
        env={"GIVEN": "given"},
        secrets={"HIDDEN": "hidden"},
    )
    m.with_upload(fake, m.count_upload())
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        assert machine.over()[0] == "shutdown -h now"
    assert fake.problems == []
    assert [event for event, _ in fake.reports] == ["setup_finished", "task_started", "task_exited"]
    assert fake.reported("task_exited") == [{"exit_code": 0, "outputs": False}]
    assert fake.log.decode() == "weights\nyes given hidden\nto stderr\n"


def test_environment_of_the_machine_does_not_leak(tmp_path: Path) -> None:
    """The task sees the world that is written down, and nothing of the machine's own environment."""
    fake = m.broker(task=["env"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        machine.over()
        home = f"{machine.base}/home"
    seen = dict(line.partition("=")[::2] for line in fake.log.decode().splitlines())
    assert "MACHINE_SECRET" not in seen
    assert (seen["HOME"], seen["PWD"], seen["LANG"]) == (home, f"{home}/work", "C.UTF-8")
    assert (seen["SPOTFERRY_JOB_ID"], seen["SPOTFERRY_EPOCH"], seen["SPOTFERRY_RESTORED_FROM"]) == ("j-1", "1", "")


def test_failing_setup_names_its_line_and_waits_for_a_retry(tmp_path: Path) -> None:
    """The report names the line that failed; those behind it do not run; a retry runs setup again, then the task."""
    fake = m.broker(setup=["echo first", "test -f ../../mended && true", "echo last"], task=["echo task"])
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: fake.reported("setup_failed"))
        fake.until(lambda: fake.phase() == "held")
        assert fake.reported("setup_failed") == [{"exit_code": 1, "line": "test -f ../../mended && true"}]
        assert fake.log == b"first\n"
        (machine.base / "mended").touch()
        fake.directive = {"kind": "retry", "reason": "asked for"}
        machine.over()
    assert fake.log.decode() == "first\nfirst\nlast\ntask\n"
    assert fake.reported("task_exited") == [{"exit_code": 0, "outputs": False}]


def test_damaged_upload_is_a_startup_failure(tmp_path: Path) -> None:
    """A work directory that is not what was promised is never unpacked; the machine is held."""
    fake = m.broker()
    m.with_upload(fake, m.count_upload())
    fake.plan["work_dir"]["sha256"] = "0" * 64
    fake.bucket.objects["0" * 64] = m.count_upload()
    fake.plan["work_dir"]["url"] = f"{fake.url}/bucket/{'1' * 64}"
    with fake, m.Machine(tmp_path / "m", fake):
        fake.until(lambda: fake.reported("startup_failed"))
    assert "404" in fake.reported("startup_failed")[0]["reason"]


def test_interrupted_count_goes_on_elsewhere_with_every_step_once(places: Iterator[Path]) -> None:
    """A notice in the metadata service: task ended, work directory committed, released; a second machine goes on."""
    first = m.broker(setup=["echo setup >&2"], task=["python3 count.py 40"])
    m.with_upload(first, m.count_upload())
    with first, m.Machine(next(places), first) as machine:
        first.until(lambda: b"step 3\n" in first.log)
        first.imds["spot/instance-action"] = NOTICE
        first.until(lambda: first.reported("notice"))
        noticed_at = time.monotonic()
        first.until(lambda: first.commits)
        assert time.monotonic() - noticed_at < 6
        machine.over()
        assert machine.strays() == []
    assert first.problems == []
    assert first.reported("notice") == [{"kind": "take_back", "code": "terminate", "deadline": NOTICE["time"]}]
    assert first.reported("released") == [{"checkpoint": 1, "reason": "instance_termination"}]
    assert first.reported("task_exited") == []
    commit = first.commits[0]
    assert (commit["engine"], commit["reason"], commit["task_over"]) == ("workdir", "instance_termination", False)
    assert "count" not in names_in(commit["content"])

    second = m.broker(**{**first.plan, "mode": "restore"})
    second.bucket.objects.update(first.bucket.objects)
    for part in (second.plan["work_dir"], second.plan["checkpoints"][0]["parts"][0]):
        part["url"] = part["url"].replace(first.url, second.url)
    with second, m.Machine(next(places), second) as machine:
        machine.over()
    assert second.reported("task_started") == [{"restored_from": 1, "why_not": ""}]
    assert second.reported("task_exited") == [{"exit_code": 0, "outputs": False}]
    steps = [line for line in (first.log + second.log).decode().splitlines() if line != "setup"]
    assert steps == [f"step {number}" for number in range(1, 41)]


def test_restore_falls_back_to_the_checkpoint_before(tmp_path: Path) -> None:
    """A checkpoint that does not verify is passed over, and the report says why; restored_task runs."""
    fake = m.broker(mode="restore", task=["echo task"], restored_task=["cat state; echo $SPOTFERRY_RESTORED_FROM"])
    good, bad = fake.store(m.tar_gz({"state": "good "})), fake.store(m.tar_gz({"state": "bad "}))
    del fake.bucket.objects[bad["sha256"]]
    fake.plan["checkpoints"] = [
        {"number": 4, "engine": "unheard-of", "parts": [{"name": WORKDIR_PART, **good}]},
        {"number": 3, "engine": "workdir", "parts": [{"name": WORKDIR_PART, **bad}]},
        {"number": 2, "engine": "workdir", "parts": [{"name": WORKDIR_PART, **good}]},
    ]
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        machine.over()
    (started,) = fake.reported("task_started")
    assert started["restored_from"] == 2
    assert "unheard-of" in started["why_not"]
    assert "checkpoint 3" in started["why_not"]
    assert fake.log == b"good 2\n"


def test_directive_checkpoint_lets_the_task_go_on(tmp_path: Path) -> None:
    """A checkpoint on request stops the task for the archive only: it then ends as it would have."""
    fake = m.broker(task=["python3 count.py 12"])
    m.with_upload(fake, m.count_upload())
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        fake.until(lambda: b"step 2\n" in fake.log)
        fake.directive = {"kind": "checkpoint", "reason": "heartbeat"}
        fake.until(lambda: fake.commits)
        machine.over()
    (commit,) = fake.commits
    assert commit["reason"] == "heartbeat"
    assert 2 <= int(read_from(commit["content"], "step")) < 12
    assert fake.log.decode().splitlines() == [f"step {number}" for number in range(1, 13)]


def test_outputs_are_sent_after_the_finished_work_directory(tmp_path: Path) -> None:
    """Task over: its work directory is committed, its status reported, its outputs sent, with their digests."""
    fake = m.broker(
        task=["mkdir -p out/deep; head -c 300000 /dev/urandom > out/deep/big.bin; echo x > note.txt; exit 3"],
        outputs=["out", "*.txt", "missing"],
    )
    with fake, m.Machine(tmp_path / "m", fake) as machine:
        machine.over()
    assert fake.problems == []
    checkpoint, outputs = fake.commits
    assert (checkpoint["task_over"], checkpoint["exit_code"]) == (True, 3)
    assert fake.reported("task_exited") == [{"exit_code": 3, "outputs": True}]
    assert outputs["parts"][0]["name"] == OUTPUTS_PART
    assert [file["path"] for file in outputs["files"]] == ["note.txt", "out/deep/big.bin"]
    big = read_from(outputs["content"], "out/deep/big.bin")
    assert m.digest(big) == outputs["files"][1]["sha256"]
    assert len(big) == 300000


def test_notice_while_outputs_are_sent_never_runs_the_task_again(places: Iterator[Path]) -> None:
    """The finished work directory is safe, so the agent lets go at once; mode finalize sends the outputs elsewhere."""
    first = m.broker(task=["echo once; head -c 200000 /dev/urandom > out.bin"], outputs=["out.bin"])
    first.refuse_outputs = 1000
    with first, m.Machine(next(places), first) as machine:
        first.until(lambda: first.reported("task_exited"))
        first.imds["spot/instance-action"] = NOTICE
        machine.over()
    assert [commit["kind"] for commit in first.commits] == ["checkpoint"]
    assert first.reported("released") == [{"checkpoint": 1, "reason": "instance_termination"}]
    second = m.broker(**{**first.plan, "mode": "finalize", "exit_code": 0})
    second.bucket.objects.update(first.bucket.objects)
    part = second.plan["checkpoints"][0]["parts"][0]
    part["url"] = part["url"].replace(first.url, second.url)
    with second, m.Machine(next(places), second) as machine:
        machine.over()
    assert second.problems == []
    assert [event for event, _ in second.reports] == ["task_exited"]
    (outputs,) = second.commits
    assert second.log == b""
    assert read_from(outputs["content"], "out.bin") == read_from(first.commits[0]["content"], "out.bin")
