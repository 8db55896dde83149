"""The agents' API: who may speak, what they are told, and how wrong calls are refused."""

import base64
import hashlib
import json

import pytest

from spotferry.runtime.agent_bundle import agent_bundle
from spotferry.runtime.machines import Machines
from spotferry.types import JobState
from spotferry.usecases.take_archive import FIRST_ADDRESSES, NEXT_ADDRESSES
from tests.functions.deployment import Deployment, event, http_event

BODY = b"the packed work directory"
PART = {"name": "workdir.tar.gz", "size_bytes": len(BODY), "sha256": hashlib.sha256(BODY).hexdigest()}


def test_the_agent_is_served_as_it_is(deployment: Deployment) -> None:
    """The bytes that come over HTTP have the digest under which they were asked for."""
    _, attempt = deployment.launched()
    assert attempt.launch is not None
    digest = attempt.launch.agent_sha256
    said = deployment.invoke("receive_report", http_event("GET", f"/agent/v1/agent/{digest}", None, {}, {}))
    assert said["statusCode"] == 200
    assert said["isBase64Encoded"] is True
    content = base64.b64decode(said["body"])
    assert hashlib.sha256(content).hexdigest() == digest == agent_bundle().sha256


def test_an_agent_that_nobody_published_is_not_found(deployment: Deployment) -> None:
    """The stored event asks for a digest that is not there."""
    answer = deployment.answer("receive_report", event("receive_report", "agent"))
    assert (answer.status, answer.json["kind"]) == (404, "NotFound")


@pytest.mark.parametrize("case", ["hello", "heartbeat", "report", "uploads", "addresses", "commit"])
def test_the_events_of_a_machine_that_nobody_knows_are_refused(deployment: Deployment, case: str) -> None:
    """401 for every call whose token opens nothing, whatever the rest of it says."""
    answer = deployment.answer("receive_report", event("receive_report", case))
    assert answer.status == 401
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("case", ["hello", "heartbeat", "report"])
def test_the_events_of_a_machine_of_ours_are_heard(deployment: Deployment, case: str) -> None:
    """The bodies of the stored events, from a machine whose task runs, are answered with the word."""
    job_id, attempt = deployment.running()
    answer = deployment.agent(attempt, case, json.loads(event("receive_report", case)["body"]))
    assert answer.status == 200, answer.raw
    assert answer.json["protocol"] == 1
    assert answer.json["directive"]["kind"] in {"continue", "shut_down"}
    assert deployment.job(job_id).state is (JobState.DONE if case == "report" else JobState.RUNNING)


def test_the_event_of_an_upload_is_answered_with_addresses(deployment: Deployment) -> None:
    """The stored event's body gets a nonce, and addresses for the first chunks; the next follow where asked for."""
    _, attempt = deployment.running()
    answer = deployment.agent(attempt, "uploads", json.loads(event("receive_report", "uploads")["body"]))
    assert answer.status == 200
    (part,) = answer.json["parts"]
    assert (part["first_chunk"], len(part["urls"])) == (0, FIRST_ADDRESSES)
    more = json.loads(event("receive_report", "addresses")["body"])
    more |= {"nonce": answer.json["nonce"], "upload_id": part["upload_id"]}
    answer = deployment.agent(attempt, "uploads/addresses", more)
    assert (answer.json["first_chunk"], len(answer.json["urls"])) == (more["from_chunk"], NEXT_ADDRESSES)
    assert f"partNumber={more['from_chunk'] + 1}&" in answer.json["urls"][0]
    assert part["upload_id"] in answer.json["urls"][0]


def test_the_event_of_a_commit_that_nobody_prepared_is_refused(deployment: Deployment) -> None:
    """The stored event's body names a nonce that was not given out, or chunks that never came: 422."""
    job_id, attempt = deployment.running()
    answer = deployment.agent(attempt, "uploads/commit", json.loads(event("receive_report", "commit")["body"]))
    assert answer.status == 422
    assert answer.json["errors"]
    assert deployment.job(job_id).checkpoint == 0


def send(deployment: Deployment, where: dict[str, object]) -> list[str]:
    """Put the one chunk where it goes; moto listens to the SDK, not to addresses."""
    part = where["parts"][0]  # type: ignore[index]  # JSON
    address = part["urls"][0]
    key = address.split("?")[0].split(".com/", 1)[1]
    client = deployment.wiring.objects._client()
    made = client.upload_part(Bucket="spotferry-test", Key=key, UploadId=part["upload_id"], PartNumber=1, Body=BODY)
    return [made["ETag"]]


def test_a_checkpoint_goes_all_the_way(deployment: Deployment) -> None:
    """Addresses, bytes, commit; a repeat answers the same; the next machine is handed its address."""
    job_id, attempt = deployment.running()
    where = deployment.agent(attempt, "uploads", {"kind": "checkpoint", "parts": [PART]}).json
    sent = {**PART, "upload_id": where["parts"][0]["upload_id"], "etags": send(deployment, where)}
    commit = {
        "kind": "checkpoint",
        "nonce": where["nonce"],
        "engine": "workdir",
        "reason": "heartbeat",
        "task_over": False,
        "exit_code": None,
        "machine": {"arch": "x86_64"},
        "parts": [sent],
        "files": [],
        "log": None,
    }
    first = deployment.agent(attempt, "uploads/commit", commit)
    assert (first.status, first.json["number"]) == (200, 1)
    assert deployment.agent(attempt, "uploads/commit", commit).json == first.json
    assert deployment.job(job_id).checkpoint == 1
    assert deployment.wiring.objects.get(deployment.wiring.store.checkpoints(job_id)[0].manifest.parts[0].key) == BODY


def test_sizes_that_differ_are_refused(deployment: Deployment) -> None:
    """422 that names the part, and no checkpoint."""
    job_id, attempt = deployment.running()
    where = deployment.agent(attempt, "uploads", {"kind": "checkpoint", "parts": [PART]}).json
    sent = {
        **PART,
        "size_bytes": 1,
        "upload_id": where["parts"][0]["upload_id"],
        "etags": send(deployment, where),
    }
    commit = {"kind": "checkpoint", "nonce": where["nonce"], "parts": [sent]}
    answer = deployment.agent(attempt, "uploads/commit", commit)
    assert (answer.status, answer.fields) == (422, ["parts.size_bytes"])
    assert deployment.job(job_id).checkpoint == 0


def test_chunks_that_never_came_are_refused(deployment: Deployment) -> None:
    """422, not a 5xx that the agent would repeat for ever."""
    _, attempt = deployment.running()
    for etags in ([], ['"made-up"']):
        where = deployment.agent(attempt, "uploads", {"kind": "checkpoint", "parts": [PART]}).json
        sent = {**PART, "upload_id": where["parts"][0]["upload_id"], "etags": etags}
        answer = deployment.agent(
            attempt, "uploads/commit", {"kind": "checkpoint", "nonce": where["nonce"], "parts": [sent]}
        )
        assert answer.status == 422, answer.raw


def test_a_wrong_token_or_key_is_refused(deployment: Deployment) -> None:
    """401 for both, in a problem document; the message does not help."""
    _, attempt = deployment.running()
    assert deployment.agent(attempt, "heartbeat", {}, token="0" * 64).status == 401
    assert deployment.agent(attempt, "heartbeat", {}, key="0" * 64).status == 401
    assert deployment.call("receive_report", "POST /agent/v1/hello", {}).status == 401


def test_an_attempt_that_is_over_is_told_so(deployment: Deployment) -> None:
    """410: stop the task and shut down."""
    job_id, attempt = deployment.running()
    deployment.cloud.terminate(attempt.cedana_id)
    deployment.invoke("poll_status", {})
    answer = deployment.agent(attempt, "heartbeat", {"phase": "running", "log": None})
    assert (answer.status, answer.json["kind"]) == (410, "StaleAttempt")
    assert deployment.job(job_id).state is JobState.PENDING


def test_a_report_that_the_state_cannot_take_is_a_conflict(deployment: Deployment) -> None:
    """409: the call is wrong, and repeating it will not help."""
    _, attempt = deployment.running()
    answer = deployment.agent(attempt, "report", {"event": "outputs_failed", "data": {"reason": "x"}})
    assert (answer.status, answer.json["kind"]) == (409, "IllegalTransition")


@pytest.mark.parametrize(
    ("call", "body", "status"),
    [
        ("heartbeat", "{", 400),
        ("heartbeat", "[]", 400),
        ("heartbeat", "", 400),
        ("heartbeat", {"log": 7}, 422),
        ("heartbeat", {"log": {"offset": -1, "text": "x"}}, 422),
        ("heartbeat", '{"log": {"offset": 0, "text": "\\ud800"}}', 400),
        ("report", {"event": "party", "data": {}}, 422),
        ("report", {"event": "task_exited", "data": {}}, 422),
        ("report", {"event": "task_exited", "data": ["x"]}, 422),
        ("report", {"event": "setup_finished", "data": {"seconds": float("nan")}}, 400),
        ("report", '{"event": "setup_finished", "data": {"seconds": 1e999}}', 422),
        ("uploads", {"kind": "party", "parts": [PART]}, 422),
        ("uploads", {"kind": "checkpoint", "parts": []}, 422),
        ("uploads", {"kind": "checkpoint", "parts": [{**PART, "name": "../x"}]}, 422),
        ("uploads/commit", {"kind": "checkpoint"}, 422),
        ("uploads/commit", "[]", 400),
        ("party", {}, 404),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_call_is_refused(deployment: Deployment, call: str, body: object, status: int) -> None:
    """A 4xx problem document, and the job is left as it is."""
    job_id, attempt = deployment.running()
    revision = deployment.job(job_id).revision
    answer = deployment.agent(attempt, call, body)
    assert answer.status == status, answer.raw
    assert answer.headers["content-type"] == "application/problem+json"
    assert deployment.job(job_id).revision == revision


def test_secrets_travel_once_and_are_logged_nowhere(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """They are in the answer to hello, and neither token, key nor secret is in anything that is printed or stored."""
    ssm = deployment.wiring.parameters._client()
    ssm.put_parameter(Name="/spotferry/test/secrets/TOKEN", Value="s3cr3t-value", Type="SecureString")
    job_id = deployment.submit("task:\n  run: x\nsecrets: [TOKEN]\n").json["job"]["job_id"]
    Machines(deployment.wiring).create_instance(job_id)
    attempt = deployment.attempts(job_id)[-1]
    answer = deployment.agent(attempt, "hello", {})
    assert answer.json["plan"]["secrets"] == {"TOKEN": "s3cr3t-value"}
    deployment.agent(attempt, "report", {"event": "party"})
    token = deployment.wiring.token_of(attempt.cedana_id, attempt.epoch)
    printed = capsys.readouterr()
    text = printed.out + printed.err + caplog.text
    stored = deployment.job(job_id).model_dump_json() + deployment.attempts(job_id)[-1].model_dump_json()
    for secret in ("s3cr3t-value", token, "aa" * 32):
        assert secret not in text
        assert secret not in stored


def test_a_missing_secret_is_the_operators_and_holds_the_job(deployment: Deployment) -> None:
    """500 until it is there; the job says what is missing."""
    job_id = deployment.submit("task:\n  run: x\nsecrets: [TOKEN]\n").json["job"]["job_id"]
    Machines(deployment.wiring).create_instance(job_id)
    answer = deployment.agent(deployment.attempts(job_id)[-1], "hello", {})
    assert (answer.status, answer.json["kind"]) == (500, "Misconfigured")
    assert deployment.job(job_id).state is JobState.STARTUP_FAILED
    assert "TOKEN" in deployment.job(job_id).reason
