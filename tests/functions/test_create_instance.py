"""The placement queue: each message by itself; what is hopeless is set aside, what is worth a try goes back."""

from datetime import timedelta

import pytest

from spotferry.domain import asking
from spotferry.types import JobState, ProviderUnavailable, SpotferryError, TryNextZone
from tests.functions.deployment import JOB_FILE, Deployment, event, sqs_event

NOTHING: dict[str, list[dict[str, str]]] = {"batchItemFailures": []}
JOB_ID = "j-0123456789abcdef"


def counts(capsys: pytest.CaptureFixture[str]) -> str:
    """What the functions printed: their counts are in it."""
    return capsys.readouterr().out


def test_a_placement_makes_a_machine(deployment: Deployment) -> None:
    """The message is acknowledged, the intent is saved, the agent is published, the check is queued."""
    job_id, attempt = deployment.launched()
    assert deployment.job(job_id).state is JobState.PROVISIONING
    assert attempt.allocated_id
    assert attempt.launch is not None
    assert attempt.launch.broker_url == "https://broker.example"
    assert deployment.wiring.objects.head(f"agent/{attempt.launch.agent_sha256}.pyz")


@pytest.mark.parametrize(("case", "counted"), [("placement", "MessagesSetAside"), ("malformed", "MessagesSetAside")])
def test_the_events_of_nothing_are_set_aside(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], case: str, counted: str
) -> None:
    """A message about a job that does not exist, or that cannot be read, is acknowledged and counted."""
    assert deployment.invoke("create_instance", event("create_instance", case)) == NOTHING
    assert counted in counts(capsys)


def test_the_event_of_a_check_about_nothing_does_nothing(deployment: Deployment) -> None:
    """A launch that nobody knows of is settled."""
    assert deployment.invoke("create_instance", event("create_instance", "check_launch")) == NOTHING
    assert deployment.cloud.calls == {}


def test_a_check_finds_the_machine_whose_answer_was_lost(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second message of a launch settles it."""
    monkeypatch.setattr(asking, "LAUNCH_LEASE", timedelta(0))
    deployment.cloud.lose_answer()
    job_id, attempt = deployment.launched()
    assert attempt.allocated_id == ""
    check = {"kind": "check_launch", "job_id": job_id, "instance_id": attempt.cedana_id}
    assert deployment.invoke("create_instance", sqs_event(check)) == NOTHING
    assert deployment.attempts(job_id)[0].allocated_id == "i-00000000000000001"


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "null", '{"kind": "party", "job_id": "j"}', '{"kind": "place_job"}', '{"job_id": 7}']
)
def test_a_malformed_message_is_set_aside_and_the_others_go_on(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], body: str
) -> None:
    """It is logged, counted and acknowledged; it blocks nothing."""
    job_id = deployment.submitted()
    answer = deployment.invoke("create_instance", sqs_event(body, {"kind": "place_job", "job_id": job_id}))
    assert answer == NOTHING
    assert deployment.job(job_id).state is JobState.PROVISIONING
    printed = counts(capsys)
    assert '"MessagesSetAside":[1.0]' in printed
    assert "message set aside" in printed


def test_a_message_without_a_body_is_set_aside(deployment: Deployment) -> None:
    """Whatever SQS hands over, nothing crashes."""
    assert deployment.invoke("create_instance", {"Records": [{"messageId": "m"}]}) == NOTHING
    assert deployment.invoke("create_instance", {}) == NOTHING


def test_a_stockout_is_an_outcome(deployment: Deployment) -> None:
    """Acknowledged, saved with the cloud's words, and the next candidate asked for: no retry of the queue is eaten."""
    deployment.cloud.refuse(TryNextZone("InsufficientInstanceCapacity", "none left"))
    job_id, attempt = deployment.launched()
    assert attempt.failure_code == "InsufficientInstanceCapacity"
    assert deployment.job(job_id).state is JobState.PENDING
    assert {"version": 1, "kind": "place_job", "job_id": job_id, "instance_id": ""} in deployment.queued("placement")


def test_nothing_free_is_an_outcome(deployment: Deployment) -> None:
    """The job waits with its next try time, and the message is acknowledged."""
    deployment.cloud.refuse(TryNextZone("ZoneIsFull", "none", scope="provider"), times=9)
    job_id = deployment.submitted()
    for _ in range(2):
        answer = deployment.invoke("create_instance", sqs_event({"kind": "place_job", "job_id": job_id}))
        assert answer == NOTHING
    assert deployment.job(job_id).next_try_at is not None


def test_what_fails_goes_back_alone(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unforeseen error returns its own message to the queue, and no other."""
    first = deployment.submitted()
    second = deployment.submit(JOB_FILE + "labels: {a: b}\n").json["job"]["job_id"]
    store = deployment.wiring.store
    load = store.load

    def broken(job_id: str, instance_id: str | None = None) -> object:
        if job_id == first:
            raise RuntimeError("a bug")
        return load(job_id, instance_id)

    monkeypatch.setattr(store, "load", broken)
    messages = [{"kind": "place_job", "job_id": job_id} for job_id in (first, second)]
    answer = deployment.invoke("create_instance", sqs_event(*messages))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    assert deployment.job(second).state is JobState.PROVISIONING
    assert "MessagesFailed" in counts(capsys)


@pytest.mark.parametrize("error", [ProviderUnavailable("Timeout", "no answer"), SpotferryError("odd")])
def test_a_destroy_that_was_not_taken_goes_back(deployment: Deployment, error: SpotferryError) -> None:
    """The order is tried again by the queue."""
    job_id, attempt = deployment.running()
    deployment.agent(attempt, "report", {"event": "task_exited", "data": {"exit_code": 0}})
    deployment.cloud.dead_regions[attempt.region] = error
    order = {"kind": "destroy_instance", "job_id": job_id, "instance_id": attempt.cedana_id}
    answer = deployment.invoke("destroy_instance", sqs_event(order))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    deployment.cloud.dead_regions.clear()
    assert deployment.invoke("destroy_instance", sqs_event(order)) == NOTHING
    assert deployment.cloud.destroyed == [attempt.cedana_id]
