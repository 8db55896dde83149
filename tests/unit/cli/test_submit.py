"""`spotferry submit`: what goes to the broker, and what the person hears."""

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

PLAN = {
    "chosen": {
        "provider": "aws",
        "region": "us-east-1",
        "zone": "us-east-1a",
        "instance_type": "m5.large",
        "market": "spot",
        "price_usd_hour": 0.035,
        "total_usd_hour": 0.0383,
    },
    "considered": 100,
    "excluded": {},
    "next": [],
}
ACCEPTED = httpx.Response(201, json={"job": {"job_id": "j-1", "state": "PENDING"}, "plan": PLAN})
JOB = "work_dir: work\ntask: {run: ls}\n"


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    """A job file with a work directory beside it."""
    folder = tmp_path / "mine"
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "data.txt").write_text("hello")
    (folder / "job.yml").write_text(JOB)
    return folder / "job.yml"


@pytest.fixture
def bucket(broker: "FakeBroker") -> "FakeBroker":
    """A broker that wants the upload and takes the job."""
    where = {"exists": False, "url": "https://bucket.example/key?signed=1", "headers": {"x-amz-meta": "1"}}
    broker.on("POST /uploads", where)
    broker.on("PUT /key", httpx.Response(200))
    broker.on("POST /jobs", ACCEPTED)
    return broker


def test_the_work_directory_goes_first_then_the_job(run: "Run", bucket: "FakeBroker", job_file: Path) -> None:
    """The bucket has the bytes before a job names them; the job's id is all of stdout."""
    result = run("submit", job_file)
    assert (result.exit_code, result.stdout) == (0, "j-1\n")
    assert "1 file, " in result.stderr
    assert "aws us-east-1a m5.large spot at $0.0383 an hour with its disk" in result.stderr
    assert bucket.calls() == ["POST /uploads", "PUT /key", "POST /jobs"]
    put, archive = bucket.asked[1], bucket.bodies[1]
    assert (put.headers["x-amz-meta"], put.headers["content-length"]) == ("1", str(len(archive)))
    assert "transfer-encoding" not in put.headers
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        assert tar.getnames() == ["data.txt"]
    sent = json.loads(bucket.bodies[2])
    assert sent == {"job_file": JOB, "job_file_path": str(job_file), "upload": json.loads(bucket.bodies[0])}
    assert sent["upload"]["size_bytes"] == len(archive)
    assert len(bucket.asked[2].headers["Idempotency-Key"]) == 32


def test_what_the_bucket_has_is_not_sent_again(run: "Run", bucket: "FakeBroker", job_file: Path) -> None:
    """A second submission of the same content sends no bytes."""
    bucket.on("POST /uploads", {"exists": True, "url": None, "headers": {}})
    assert run("submit", job_file, "--idempotency-key", "mine").exit_code == 0
    assert bucket.calls() == ["POST /uploads", "POST /jobs"]
    assert bucket.asked[1].headers["Idempotency-Key"] == "mine"


def test_a_job_without_a_work_directory_sends_none(run: "Run", bucket: "FakeBroker", tmp_path: Path) -> None:
    """No directory, no upload."""
    (tmp_path / "job.yml").write_text("task: {run: ls}\n")
    assert run("submit", "job.yml").exit_code == 0
    assert bucket.calls() == ["POST /jobs"]
    assert json.loads(bucket.bodies[0])["upload"] is None


def test_json_is_the_brokers_answer(run: "Run", bucket: "FakeBroker", job_file: Path) -> None:
    """`--json` prints one document, with the plan."""
    assert json.loads(run("submit", job_file, "--json").stdout) == ACCEPTED.json()
    assert bucket.calls()[-1] == "POST /jobs"


def test_a_job_that_waits_says_why(run: "Run", bucket: "FakeBroker", job_file: Path) -> None:
    """When nothing is free now the person hears it at once."""
    answer = {"job": {"job_id": "j-1"}, "plan": {"chosen": None, "why": "all pools are banned"}}
    bucket.on("POST /jobs", httpx.Response(201, json=answer))
    assert "no machine yet: all pools are banned" in run("submit", job_file).stderr


def test_an_upload_survives_a_stumble(run: "Run", bucket: "FakeBroker", job_file: Path) -> None:
    """A failed PUT is sent again from its first byte."""
    bucket.on("PUT /key", httpx.Response(503), httpx.WriteError("broken pipe"), httpx.Response(200))
    assert run("submit", job_file).exit_code == 0
    assert bucket.bodies[1] == bucket.bodies[3] != b""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(403, text="expired"), "refused the upload (403): expired"),
        (httpx.WriteError("gone"), "broke off"),
    ],
)
def test_an_upload_that_fails_makes_no_job(
    run: "Run", bucket: "FakeBroker", job_file: Path, answer: httpx.Response | Exception, words: str
) -> None:
    """Without its bytes no job is asked for."""
    bucket.on("PUT /key", answer)
    result = run("submit", job_file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert words in result.stderr
    assert "POST /jobs" not in bucket.calls()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task: {run: ls}\nwrok_dir: x\n", "job.yml:2: wrok_dir: is not a key of a job file; did you mean work_dir?"),
        ("work_dir: nowhere\ntask: {run: ls}\n", "work_dir: {folder}/nowhere does not exist"),
        ("work_dir: job.yml\ntask: {run: ls}\n", "work_dir: {folder}/job.yml is not a directory"),
        (None, "no such file"),
    ],
)
def test_bad_input_asks_the_broker_nothing(
    run: "Run", broker: "FakeBroker", job_file: Path, text: str | None, words: str
) -> None:
    """What is wrong here is said here: status 2, the field, and nothing was sent."""
    if text is None:
        job_file.unlink()
    else:
        job_file.write_text(text)
    result = run("submit", job_file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words.format(folder=job_file.parent) in result.stderr
    assert broker.asked == []


@pytest.mark.parametrize(
    "options", [["--json", "--follow"], ["--idempotency-key", "x" * 256], ["--idempotency-key", "ü"]]
)
def test_options_that_make_no_sense_are_refused(
    run: "Run", broker: "FakeBroker", job_file: Path, options: list[str]
) -> None:
    """Options are checked before anything is packed or sent."""
    result = run("submit", job_file, *options)
    assert result.exit_code == 2
    assert options[0 if "key" in options[0] else 1] in result.stderr
    assert broker.asked == []


def test_the_brokers_refusal_is_status_2(
    run: "Run", bucket: "FakeBroker", job_file: Path, make_problem: Callable[..., httpx.Response]
) -> None:
    """An impossible specification is bad input, with the field that excludes everything."""
    error = {"field": "instance_specs.memory_gb", "message": "no machine has 9999 GiB"}
    bucket.on("POST /jobs", make_problem(422, "impossible", error))
    result = run("submit", job_file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "instance_specs.memory_gb: no machine has 9999 GiB" in result.stderr


def test_follow_goes_on_with_the_log(run: "Run", bucket: "FakeBroker", job_file: Path, job: dict[str, object]) -> None:
    """`--follow` prints the log after the id and ends with the job's outcome."""
    bucket.on(
        "GET /jobs/j-1/logs", {"chunks": [{"epoch": 1, "offset": 0, "text": "hi\n"}], "cursor": "1", "finished": True}
    )
    bucket.on("GET /jobs/j-1", {**job, "state": "FAILED", "reason": "exit status 3"})
    result = run("submit", job_file, "-f")
    assert (result.exit_code, result.stdout) == (1, "j-1\nhi\n")
    assert "job j-1 is FAILED: exit status 3" in result.stderr


def test_a_path_that_is_no_text_does_not_hinder(run: "Run", bucket: "FakeBroker", job_file: Path) -> None:
    """A folder whose name is not UTF-8 is no reason to refuse a job."""
    moved = job_file.parent.rename(job_file.parent.with_name("odd-\udcff"))
    assert run("submit", moved / "job.yml").exit_code == 0
    assert json.loads(bucket.bodies[-1])["job_file_path"].endswith("odd-?/job.yml")
