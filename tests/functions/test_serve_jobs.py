"""The API for people: read, list, cancel, retry; logs, outputs, machines."""

import json

import pytest

from spotferry.domain.events import CheckpointCommitted
from spotferry.runtime.people import People
from spotferry.types import Attempt, JobState
from tests.builders import a_manifest
from tests.functions.deployment import Deployment, Json, event

JOB = "j-0123456789abcdef"
MACHINE = "si-0123456789abcdef0123456789abcdef"
ORDERS = ("cancel", "checkpoint", "retry", "restore")
MARY = "arn:aws:iam::123456789012:user/mary"


def about(case: str, job_id: str, instance_id: str = "") -> Json:
    """The stored event, about this job and machine."""
    text = json.dumps(event("serve_jobs", case)).replace(JOB, job_id).replace(MACHINE, instance_id or MACHINE)
    loaded: Json = json.loads(text)
    return loaded


@pytest.mark.parametrize(
    "case",
    ["show", "timeline", "instances", "checkpoints", "logs", "outputs", *ORDERS, "destroy"],
)
def test_the_events_of_an_unknown_id_are_not_found(deployment: Deployment, case: str) -> None:
    """404 that says which id, and nothing is written."""
    before = deployment.written()
    answer = deployment.answer("serve_jobs", event("serve_jobs", case))
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")
    assert (MACHINE if case == "destroy" else JOB) in answer.json["detail"]
    assert deployment.written() == before


@pytest.mark.parametrize(
    ("case", "keys"),
    [
        ("show", {"job_id", "state", "instances", "cost_usd", "job_file", "machine"}),
        ("timeline", {"entries"}),
        ("instances", {"instances"}),
        ("checkpoints", {"checkpoints"}),
        ("logs", {"chunks", "cursor", "more", "finished"}),
        ("cancel", {"job"}),
        ("checkpoint", {"job"}),
        ("destroy", {"instance"}),
        ("list_instances", {"instances"}),
    ],
)
def test_the_events_are_answered(deployment: Deployment, case: str, keys: set[str]) -> None:
    """Each stored event, about a job that runs, gets its JSON, with numbers as numbers."""
    job_id, attempt = deployment.running()
    answer = deployment.answer("serve_jobs", about(case, job_id, attempt.cedana_id))
    assert answer.status == 200, answer.raw
    assert set(answer.json) >= keys
    if case in {"instances", "list_instances"}:
        (machine,) = answer.json["instances"]
        assert isinstance(machine["seconds"], float)
        assert machine["instance_id"] == attempt.cedana_id


def test_the_event_of_a_list_shows_the_callers_jobs(deployment: Deployment) -> None:
    """Jobs of other people are not in it."""
    body = {"job_file": "name: mine\ntask:\n  run: x\n"}
    mine = {**event("submit_job", "plan"), "rawPath": "/jobs", "routeKey": "POST /jobs", "body": json.dumps(body)}
    mine["requestContext"]["http"]["path"] = "/jobs"
    assert deployment.answer("submit_job", mine).status == 201
    deployment.submit()
    answer = deployment.answer("serve_jobs", event("serve_jobs", "list"))
    assert [(job["name"], job["owner"]) for job in answer.json["jobs"]] == [("mine", MARY)]
    assert answer.json["cursor"] is None


def test_the_event_of_the_costs_adds_up_the_callers_jobs(deployment: Deployment) -> None:
    """By project; one job by its id, with its machines; a wrong question is a 422 that names the field."""
    job_id, attempt = deployment.running()
    asked = event("serve_jobs", "costs")
    mine = deployment.answer("serve_jobs", asked)
    assert (mine.status, mine.json["by"], mine.json["groups"]) == (200, "project", [])
    of_job = deployment.answer("serve_jobs", {**asked, "queryStringParameters": {"job": job_id}})
    assert [machine["instance_id"] for machine in of_job.json["instances"]] == [attempt.cedana_id]
    assert of_job.json["total"]["machine_usd"] > 0
    wrong = deployment.answer("serve_jobs", {**asked, "queryStringParameters": {"by": "owner"}})
    assert (wrong.status, wrong.json["errors"][0]["field"]) == (422, "by")


def test_a_cancel_names_who_asked(deployment: Deployment) -> None:
    """The stored event cancels, in the caller's name."""
    job_id, _ = deployment.running()
    answer = deployment.answer("serve_jobs", about("cancel", job_id))
    assert answer.json["job"]["state"] == "CANCELLING"
    assert MARY in answer.json["job"]["reason"]


def test_a_checkpoint_that_is_asked_for_has_a_number(deployment: Deployment) -> None:
    """The answer tells which; the agent is told in its next heartbeat."""
    job_id, attempt = deployment.running()
    answer = deployment.answer("serve_jobs", about("checkpoint", job_id))
    assert (answer.json["job"]["checkpoint"], answer.json["job"]["checkpoint_wanted"]) == (0, 1)
    said = deployment.agent(attempt, "heartbeat", {"phase": "running", "log": None})
    assert said.json["directive"] == {"kind": "checkpoint", "reason": "heartbeat"}


@pytest.mark.parametrize(("case", "word"), [("checkpoint", "PENDING"), ("restore", "PENDING")])
def test_what_the_state_does_not_allow_is_a_conflict(deployment: Deployment, case: str, word: str) -> None:
    """409 that says where the job is, and nothing is written."""
    job_id = deployment.submitted()
    before = deployment.written()
    answer = deployment.answer("serve_jobs", about(case, job_id))
    assert (answer.status, answer.json["kind"]) == (409, "NotPossibleNow")
    assert word in answer.json["detail"]
    assert deployment.written() == before


def with_checkpoint(deployment: Deployment, attempt: Attempt) -> None:
    """The attempt has committed a checkpoint."""
    manifest = a_manifest().model_copy(update={"job_id": attempt.job_id})
    deployment.wiring.objects.put(manifest.parts[0].key, b"x" * 10)
    committed = CheckpointCommitted(attempt.cedana_id, manifest, "manifest.json")
    People(deployment.wiring).change(attempt.job_id, committed, attempt.cedana_id)


def test_a_restore_makes_one_job_for_one_key(deployment: Deployment) -> None:
    """The stored event twice: the new job, which begins with its parent's checkpoint, and the same job again."""
    job_id, attempt = deployment.running()
    with_checkpoint(deployment, attempt)
    deployment.agent(attempt, "report", {"event": "task_exited", "data": {"exit_code": 3}})
    answer = deployment.answer("serve_jobs", about("restore", job_id))
    assert answer.status == 200, answer.raw
    new = answer.json["job"]
    assert (new["parent_job_id"], new["restored_from"], new["checkpoint"]) == (job_id, 1, 1)
    assert deployment.answer("serve_jobs", about("restore", job_id)).json["job"]["job_id"] == new["job_id"]
    listed = deployment.answer("serve_jobs", about("checkpoints", new["job_id"])).json["checkpoints"]
    assert [(point["number"], point["made_by"]) for point in listed] == [(1, job_id)]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ('{"checkpoint": 0}', 422, "checkpoint"),
        ('{"checkpoint": "x"}', 422, "checkpoint"),
        ('{"checkpoint": "1"}', 422, "checkpoint"),
        ('{"checkpoint": true}', 422, "checkpoint"),
        ('{"number": 1}', 422, "number"),
        ("[1]", 400, ""),
        ("{", 400, ""),
    ],
)
def test_a_wish_that_is_none_is_refused(deployment: Deployment, body: str, status: int, field: str) -> None:
    """It names the field, and nothing is written."""
    job_id, attempt = deployment.running()
    deployment.agent(attempt, "report", {"event": "task_exited", "data": {"exit_code": 3}})
    before = deployment.written()
    answer = deployment.call("serve_jobs", f"POST /jobs/{job_id}/restore", body)
    assert (answer.status, answer.fields) == (status, [field])
    assert deployment.written() == before


def test_a_retry_of_a_job_under_way_is_a_conflict(deployment: Deployment) -> None:
    """409 that says where the job is."""
    job_id, _ = deployment.running()
    answer = deployment.answer("serve_jobs", about("retry", job_id))
    assert (answer.status, answer.json["kind"]) == (409, "NotPossibleNow")
    assert "RUNNING" in answer.json["detail"]


def test_a_retry_of_a_job_that_is_over_is_a_new_job(deployment: Deployment) -> None:
    """The stored event makes a job that names its parent."""
    job_id, attempt = deployment.running()
    deployment.agent(attempt, "report", {"event": "task_exited", "data": {"exit_code": 1}})
    answer = deployment.answer("serve_jobs", about("retry", job_id))
    assert answer.status == 200
    assert answer.json["job"]["parent_job_id"] == job_id
    assert answer.json["job"]["job_id"] != job_id


def test_outputs_that_are_not_there_say_why(deployment: Deployment) -> None:
    """404 with the reason."""
    job_id, _ = deployment.running()
    answer = deployment.answer("serve_jobs", about("outputs", job_id))
    assert answer.status == 404
    assert "names no outputs" in answer.json["detail"]


def test_the_log_is_followed(deployment: Deployment) -> None:
    """What the agent brought is read, and the machine is asked for more at once."""
    job_id, attempt = deployment.running()
    deployment.agent(attempt, "heartbeat", {"phase": "running", "log": {"offset": 0, "text": "step 1\n"}})
    answer = deployment.answer("serve_jobs", about("logs", job_id))
    assert [chunk["text"] for chunk in answer.json["chunks"]] == ["step 1\n"]
    said = deployment.agent(attempt, "heartbeat", {"phase": "running", "log": None})
    assert said.json["heartbeat_seconds"] == 2


@pytest.mark.parametrize(
    ("route", "query", "field"),
    [
        ("GET /jobs", {"limit": "0"}, "limit"),
        ("GET /jobs", {"limit": "201"}, "limit"),
        ("GET /jobs", {"limit": "many"}, "limit"),
        ("GET /jobs", {"limit": "-1"}, "limit"),
        ("GET /jobs", {"cursor": "made-up"}, "cursor"),
        ("GET /jobs/{job}/logs", {"cursor": "made-up"}, "cursor"),
        ("GET /jobs", {"limit": ""}, "limit"),
        ("GET /jobs/{job}/logs", {"follow": ""}, "follow"),
        ("GET /costs", {"job": ""}, "job"),
        ("GET /costs", {"by": ""}, "by"),
    ],
)
def test_a_wrong_query_is_refused(deployment: Deployment, route: str, query: dict[str, str], field: str) -> None:
    """422 that names the field; an empty parameter, as an unset variable makes one, is neither all nor none."""
    job_id = deployment.submitted()
    answer = deployment.call("serve_jobs", route.replace("{job}", job_id), query=query)
    assert (answer.status, answer.fields) == (422, [field])


@pytest.mark.parametrize("route", ["GET /jobs", "GET /jobs/{job}/logs", "GET /costs"])
def test_an_empty_cursor_is_the_beginning(deployment: Deployment, route: str) -> None:
    """A loop over pages begins with one."""
    asked = route.replace("{job}", deployment.submitted())
    first = deployment.call("serve_jobs", asked, query={"cursor": ""})
    assert first.status == 200
    assert first.json == deployment.call("serve_jobs", asked).json


@pytest.mark.parametrize("route", ["GET /jobs/{job}/secrets", "POST /jobs/{job}/explode", "GET /nothing"])
def test_what_does_not_exist_is_not_found(deployment: Deployment, route: str) -> None:
    """404 as a problem document, and the job is left as it is."""
    job_id = deployment.submitted()
    answer = deployment.call("serve_jobs", route.replace("{job}", job_id))
    assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json")
    assert deployment.job(job_id).state is JobState.PENDING
