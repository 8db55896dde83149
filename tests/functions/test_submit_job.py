"""POST /jobs, /plan and /uploads: a job file becomes a job, or a problem that names its field."""

import json
import re

import pytest

from spotferry.runtime.machines import Machines
from spotferry.types import JobState
from tests.functions.deployment import JOB_FILE, Deployment, as_base64, event, http_event

LONG = "x" * 5000
OTHER = "name: other\ntask:\n  run: ./other\n"


def test_the_event_makes_a_job(deployment: Deployment) -> None:
    """The stored event, once its upload is there, is answered 201 with job and plan, and asks for a placement."""
    case = event("submit_job", "job")
    upload = json.loads(case["body"])["upload"]
    deployment.wiring.objects.put(f"uploads/{upload['sha256']}.tar.gz", b"x" * upload["size_bytes"])
    answer = deployment.answer("submit_job", case)
    assert answer.status == 201
    job = answer.json["job"]
    assert (job["state"], job["owner"], job["name"]) == ("PENDING", "arn:aws:iam::123456789012:user/mary", "count")
    assert answer.json["plan"]["chosen"]["instance_type"] == "t3.small"
    assert deployment.queued("placement") == [
        {"version": 1, "kind": "place_job", "job_id": job["job_id"], "instance_id": ""}
    ]
    again = deployment.answer("submit_job", case)
    assert (again.status, again.json["job"]["job_id"]) == (200, job["job_id"])


def test_the_event_without_its_bytes_is_refused(deployment: Deployment) -> None:
    """No job exists whose work directory is not in the bucket."""
    before = deployment.written()
    answer = deployment.answer("submit_job", event("submit_job", "job"))
    assert (answer.status, answer.fields) == (422, ["upload.sha256"])
    assert deployment.written() == before


def test_the_event_plans(deployment: Deployment) -> None:
    """The stored event is answered with the plan, and makes no job."""
    before = deployment.written()
    answer = deployment.answer("submit_job", event("submit_job", "plan"))
    assert answer.status == 200
    assert set(answer.json) >= {"chosen", "considered", "excluded", "next"}
    assert deployment.written() == before


def test_the_event_asks_for_an_address(deployment: Deployment) -> None:
    """The stored event is answered with an address that takes the archive."""
    answer = deployment.answer("submit_job", event("submit_job", "upload"))
    assert answer.status == 200
    assert answer.json["exists"] is False
    assert f"/uploads/{'9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'}" in answer.json["url"]


def test_a_job_file_alone_is_a_submission(deployment: Deployment) -> None:
    """A body may be the job file itself, in YAML or in JSON, plain or encoded."""
    assert deployment.submit(JOB_FILE).status == 201
    assert deployment.submit({"task": {"run": "./x"}}).status == 201
    assert deployment.submit({"job_file": {"task": {"run": ["./x"]}}}).status == 201
    encoded = as_base64(http_event("POST", "/jobs", JOB_FILE, {}, {}))
    assert deployment.answer("submit_job", encoded).status == 201


def test_the_same_key_and_body_is_the_same_job(deployment: Deployment) -> None:
    """201 the first time, 200 with the same job after that, also when it is under way."""
    first = deployment.submit(key="k")
    assert first.status == 201
    job_id = first.json["job"]["job_id"]
    Machines(deployment.wiring).create_instance(job_id)
    second = deployment.submit(key="k")
    assert (second.status, second.json["job"]["job_id"]) == (200, job_id)
    assert second.json["job"]["state"] == "PROVISIONING"


def test_the_same_key_with_another_body_is_a_conflict(deployment: Deployment) -> None:
    """409, and nothing is written."""
    deployment.submit(key="k")
    before = deployment.written()
    answer = deployment.submit(OTHER, key="k")
    assert answer.status == 409
    assert answer.json["kind"] == "IdempotencyConflict"
    assert "Idempotency-Key" in answer.json["detail"]
    assert deployment.written() == before


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ("task:\n\trun: x\n", 400, ""),
        ("{", 400, ""),
        ("", 400, ""),
        ("  \n", 400, ""),
        ("just words", 400, ""),
        ("[1, 2]", 400, ""),
        ("null", 400, ""),
        ("task: 3\n", 422, "task"),
        ("name: x\n", 422, "task.run"),
        ("taks:\n  run: x\n", 422, "taks"),
        ("task:\n  run: x\ninstance_specs:\n  memory_gb: lots\n", 422, "instance_specs.memory_gb"),
        ("task:\n  run: x\ninstance_specs:\n  memory_gb: 9000\n", 422, "instance_specs.memory_gb"),
        ("task:\n  run: x\ninstance_specs:\n  max_price_usd_hour: 0.0001\n", 422, "instance_specs.max_price_usd_hour"),
        ("task:\n  run: x\ninstance_specs:\n  disk_gb: 2\n", 422, "instance_specs.disk_gb"),
        ("task:\n  run: x\ninstance_specs:\n  gpu: H100\n", 422, "instance_specs.gpu"),
        ("task:\n  run: x\nretry:\n  max_restarts: -3\n", 422, "retry.max_restarts"),
        ("task:\n  run: x\nwork_dir: work\n", 422, "upload"),
        ('{"job_file": 7}', 422, "job_file"),
        ('{"job_file": "task: {run: x}", "job_file_path": "\\ud800"}', 400, ""),
        ('{"task": {"run": "\\uDFFF"}}', 400, ""),
        ('{"job_file": "task: {run: x}", "party": 1}', 422, "party"),
        ('{"job_file": "task: {run: x}", "upload": {"sha256": "zz", "size_bytes": 1}}', 422, "upload.sha256"),
        ("x" * (128 * 1024 + 1), 413, None),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_bad_input_is_a_problem_that_names_its_field(
    deployment: Deployment, body: str, status: int, field: str | None
) -> None:
    """A 4xx problem document, also for a plan, and nothing is written."""
    before = deployment.written()
    for route in ("POST /jobs", "POST /plan"):
        if route == "POST /plan" and field == "upload":
            continue
        answer = deployment.call("submit_job", route, body)
        assert answer.status == status, answer.raw
        assert answer.headers["content-type"] == "application/problem+json"
        assert (answer.json["status"], answer.json["type"]) == (status, "about:blank")
        assert answer.json["title"]
        assert answer.json["detail"]
        if field is not None:
            assert any(found == field or found.startswith(f"{field}.") for found in answer.fields), answer.raw
    assert deployment.written() == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"job_file": 7}, "job_file"),
        ({"job_file": None}, "job_file"),
        ({"job_file": [LONG]}, "job_file"),
        ({"job_file": "task: {run: x}", "job_file_path": 3}, "job_file_path"),
        ({"job_file": "task: {run: x}", "job_file_path": LONG}, "job_file_path"),
        ({"job_file": "task: {run: x}", "upload": LONG}, "upload"),
        ({"job_file": "task: {run: x}", "upload": {"sha256": LONG, "size_bytes": 1}}, "upload.sha256"),
        ({"job_file": "task: {run: x}", "upload": {"sha256": "ab" * 32, "size_bytes": LONG}}, "upload.size_bytes"),
        ({"job_file": {"task": {"run": "x"}, "name": LONG}}, "name"),
        ({"task": {"run": "x"}, "instance_specs": {"gpu": LONG}}, "instance_specs.gpu"),
        ({"task": {"run": "x"}, "instance_specs": {"instance_type": LONG}}, "instance_specs.instance_type"),
        ({"task": {"run": "x"}, "instance_specs": {"regions": ["r" * 63]}}, "instance_specs.regions"),
        (f"task: {{run: x}}\nname: {LONG}\n", "name"),
        ("task: {run: x}\n" + "".join(f"k{number}: 1\n" for number in range(5000)), "k0"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_problem_document_is_short_and_in_the_authors_words(deployment: Deployment, body: object, field: str) -> None:
    """The field as it was written, a value cut, no name of a library or a type, and no rest of a place in a file."""
    answer = deployment.call("submit_job", "POST /plan", body)
    assert answer.status == 422, answer.raw
    assert answer.fields[0] == field
    assert len(answer.raw) < 50_000
    assert LONG[:200] not in answer.raw
    assert not re.search(r"Input should|pydantic|instance of|\bstr\b|\bdict", answer.raw)
    assert not re.search(r"^:[0-9]", answer.json["detail"], re.MULTILINE)


@pytest.mark.parametrize("path", ["/nothing/" + "x" * 3000, "/jobs/" + "x" * 3000])
def test_a_long_address_is_not_repeated(deployment: Deployment, path: str) -> None:
    """What is not there is named by its beginning."""
    answer = deployment.call("submit_job" if "nothing" in path else "serve_jobs", f"GET {path}")
    assert answer.status == 404
    assert len(answer.raw) < 500


def test_a_problem_of_a_job_file_names_its_line(deployment: Deployment) -> None:
    """The person finds the place; the nearest known key is told."""
    answer = deployment.submit({"job_file": "name: x\ntaks:\n  run: x\n", "job_file_path": "jobs/a.yml"})
    problem = next(e for e in answer.json["errors"] if e["field"] == "taks")
    assert problem["line"] == 2
    assert "task" in problem["message"]
    assert "jobs/a.yml:2" in answer.json["detail"]


@pytest.mark.parametrize("key", ["", "x" * 257, "a\tb"])
def test_a_key_out_of_bounds_is_refused(deployment: Deployment, key: str) -> None:
    """The header is named, and nothing is written."""
    before = deployment.written()
    answer = deployment.submit(key=key)
    assert (answer.status, answer.fields) == (422, ["Idempotency-Key"])
    assert deployment.written() == before


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{", 400),
        ("[]", 400),
        ({"sha256": "x", "size_bytes": 1}, 422),
        ({"sha256": "ab" * 32, "size_bytes": 0}, 422),
        ({"sha256": "ab" * 32}, 422),
        ({"sha256": "ab" * 32, "size_bytes": 6 * 1024**3}, 413),
    ],
)
def test_a_bad_upload_is_refused(deployment: Deployment, body: object, status: int) -> None:
    """No address is given for what cannot be taken."""
    assert deployment.call("submit_job", "POST /uploads", body).status == status


def test_a_body_that_is_not_text_is_refused(deployment: Deployment) -> None:
    """Bytes that are no UTF-8, and broken base64, are malformed."""
    for raw in ("/w==", "%%%"):
        what = {**http_event("POST", "/jobs", raw, {}, {}), "isBase64Encoded": True}
        assert deployment.answer("submit_job", what).status == 400


def test_an_unknown_route_is_not_found(deployment: Deployment) -> None:
    """The answer is a problem document too."""
    answer = deployment.call("submit_job", "GET /nothing")
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")


def test_the_wish_of_the_wise_is_kept(deployment: Deployment) -> None:
    """What was submitted is what is stored: the specification comes back as it was given."""
    answer = deployment.submit("name: a\nlabels: {team: x}\nenv: {A: b}\ntask:\n  run: [a, b]\noutputs: [out]\n")
    job = deployment.job(answer.json["job"]["job_id"])
    assert job.state is JobState.PENDING
    assert (list(job.spec.task.run), dict(job.spec.env), list(job.spec.outputs)) == (["a", "b"], {"A": "b"}, ["out"])


@pytest.mark.parametrize(
    ("size", "words"), [("true", "must be a whole number"), ("9" * 5000, "a number of 5,000 digits is too long")]
)
def test_a_size_that_is_no_number_is_told_in_words(deployment: Deployment, size: str, words: str) -> None:
    """What is true is not 1, and Python's limits are not the caller's business."""
    body = f'{{"sha256": "{"a" * 64}", "size_bytes": {size}}}'
    answer = deployment.answer("submit_job", http_event("POST", "/uploads", body, {}, {}))
    assert 400 <= answer.status < 500
    assert words in answer.json["detail"]
