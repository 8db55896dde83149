"""The HTTP way in for clouds' signals: who is let in, what each sender hears, and that it ends as from the bus."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from spotferry.providers import registry
from spotferry.types import InvalidInput, JobState, Problem
from spotferry.types.events import Notice, NoticeKind, ProviderEvent
from tests.functions.deployment import Answer, Deployment, Json, as_base64, event

BOTH = pytest.mark.parametrize("case", ["gcp_preemption", "azure_preempted"])


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Any cloud says {"machine": id} of a machine that it takes back; which cloud was asked is recorded."""
    asked: list[str] = []

    def parse(envelope: Mapping[str, Any], cloud: str = "") -> tuple[Notice, ...] | None:  # Any: JSON
        asked.append(cloud)
        if "machine" not in envelope:
            return None
        if not isinstance(envelope["machine"], str):
            raise InvalidInput([Problem("machine", "must be a text")])
        said = ProviderEvent(instance_id=envelope["machine"], fault_code="preempted", marked_for_termination=True)
        return (Notice(kind=NoticeKind.TAKE_BACK, provider="aws", region="us-east-1", event=said),)

    monkeypatch.setattr(registry, "parse_notice", parse)
    return asked


def saying(case: str, body: object) -> Json:
    """The stored call with another body; text goes as it is, a list of one as the event itself where one is sent."""
    return {**event("handle_interruption", case), "body": body if isinstance(body, str) else json.dumps(body)}


def sent(deployment: Deployment, call: Json) -> Answer:
    """What the function answers."""
    return deployment.answer("handle_interruption", call)


def settle(deployment: Deployment, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Other settings of the deployment."""
    monkeypatch.setattr(deployment.wiring, "settings", deployment.wiring.settings.model_copy(update=settings))


@BOTH
def test_a_cloud_takes_a_machine_back(deployment: Deployment, parsed: list[str], case: str) -> None:
    """The job is interrupted as by a notice from the bus; the same once more changes nothing."""
    job_id, attempt = deployment.running()
    call = saying(case, {"machine": attempt.allocated_id})
    assert (sent(deployment, call).status, sent(deployment, as_base64(call)).status) == (204, 204)
    assert deployment.job(job_id).state is JobState.INTERRUPTED
    assert deployment.job(job_id).interruptions == 1
    assert set(parsed) == {case.partition("_")[0]}


@BOTH
def test_a_machine_that_nobody_knows_is_heard_of_again(deployment: Deployment, parsed: list[str], case: str) -> None:
    """As from the bus: once more after a pause. The sender need not repeat it."""
    assert sent(deployment, saying(case, {"machine": "m-1"})).status == 204
    assert parsed
    assert len(deployment.queued("placement")) == 1


@BOTH
def test_an_event_of_another_kind_is_let_be(deployment: Deployment, parsed: list[str], case: str) -> None:
    """The sender hears that all is well, and nothing is written."""
    before = deployment.written()
    assert sent(deployment, saying(case, {"type": "party"})).status == 204
    assert parsed
    assert deployment.written() == before


@pytest.mark.parametrize(
    "claims",
    [
        {"email": "somebody@demo-project.iam.gserviceaccount.com", "email_verified": "true"},
        {"email": "relay@demo-project.iam.gserviceaccount.com", "email_verified": "false"},
        {"email": "relay@demo-project.iam.gserviceaccount.com"},
        {"sub": "113774264463038321964"},
        None,
    ],
)
def test_only_the_relay_speaks_for_google_cloud(deployment: Deployment, parsed: list[str], claims: Json | None) -> None:
    """Any account of Google gets a token for this audience: the one that was named is let in, its address verified."""
    call = saying("gcp_preemption", {"machine": "m-1"})
    call["requestContext"]["authorizer"] = {"jwt": {"claims": claims}} if claims is not None else None
    assert sent(deployment, call).status == 401
    assert parsed == []


def test_an_open_deployment_asks_nobody(
    deployment: Deployment, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With Auth=NONE, on a laptop, no gateway checks tokens."""
    settle(deployment, monkeypatch, auth="NONE")
    call = saying("gcp_preemption", {"machine": "m-1"})
    del call["requestContext"]["authorizer"]
    assert sent(deployment, call).status == 204
    assert parsed == ["gcp"]


@pytest.mark.parametrize("case", ["azure_preempted", "azure_validation", "azure_greeting"])
@pytest.mark.parametrize("query", [None, {}, {"code": ""}, {"code": "open-sesam"}, {"code": "ü"}])
def test_event_grid_brings_the_code(deployment: Deployment, parsed: list[str], case: str, query: Json | None) -> None:
    """Without it nothing is heard, and no subscription is validated."""
    call = {**event("handle_interruption", case), "queryStringParameters": query}
    assert sent(deployment, call).status == 401
    assert parsed == []


@pytest.mark.parametrize("case", ["gcp_preemption", "azure_preempted", "azure_greeting"])
def test_a_way_that_was_not_opened_is_not_there(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """No account and no code is no way in for everybody."""
    settle(deployment, monkeypatch, gcp_relay_account="", azure_events_code_sha256="", auth="NONE")
    assert sent(deployment, event("handle_interruption", case)).status == 404


def test_event_grids_question_is_answered(deployment: Deployment, parsed: list[str]) -> None:
    """The validation code goes back, and nothing is taken for a notice."""
    answer = sent(deployment, event("handle_interruption", "azure_validation"))
    assert (answer.status, answer.json) == (200, {"validationResponse": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"})
    assert parsed == []


def test_a_question_without_a_code_is_malformed(deployment: Deployment) -> None:
    """The field is named."""
    call = saying("azure_validation", [{"eventType": "Microsoft.EventGrid.SubscriptionValidationEvent", "data": {}}])
    answer = sent(deployment, call)
    assert (answer.status, answer.fields) == (400, ["0.data.validationCode"])


def test_event_grid_may_send_cloud_events(deployment: Deployment) -> None:
    """The handshake of CloudEvents' webhooks: who asked may, as often as it likes."""
    call = event("handle_interruption", "azure_greeting")
    answer = sent(deployment, call)
    assert answer.status == 200
    assert answer.headers["webhook-allowed-origin"] == "eventgrid.azure.net"
    assert answer.headers["webhook-allowed-rate"] == "*"
    del call["headers"]["webhook-request-origin"]
    assert (sent(deployment, call).status, sent(deployment, call).fields) == (400, ["WebHook-Request-Origin"])


@BOTH
@pytest.mark.parametrize(
    "body", ["", "{", "null", "7", "[7]", '["a"]', '{"machine": NaN}', {"machine": 7}, {"machine": "m" * 200_000}]
)
def test_what_is_malformed_is_refused_once(
    deployment: Deployment, parsed: list[str], capsys: pytest.CaptureFixture[str], case: str, body: object
) -> None:
    """400, which neither sender repeats; nothing is written, and events that were set aside are counted."""
    before = deployment.written()
    assert sent(deployment, saying(case, body)).status == 400
    assert deployment.written() == before
    assert ("EventsSetAside" in capsys.readouterr().out) == isinstance(body, dict)
    assert len(parsed) <= 1


@BOTH
def test_a_body_beyond_every_batch_is_too_large(deployment: Deployment, case: str) -> None:
    """413, which neither sender repeats."""
    assert sent(deployment, saying(case, {"machine": "m" * 1024 * 1024})).status == 413


@BOTH
def test_nobody_speaks_for_ec2_by_http(deployment: Deployment, case: str) -> None:
    """An event of the bus that comes this way is refused, whatever else it says it is."""
    job_id, attempt = deployment.running()
    call = saying(case, json.dumps(event("handle_interruption", "spot_warning")).replace(
        "i-0123456789abcdef0", attempt.allocated_id
    ))  # fmt: skip
    answer = sent(deployment, call)
    assert (answer.status, answer.fields) == (400, ["0.detail-type"])
    assert deployment.job(job_id).state is JobState.RUNNING


def test_one_bad_event_of_a_batch_stops_no_other(deployment: Deployment, parsed: list[str]) -> None:
    """The good ones are heard; the answer names the bad one, so that Event Grid keeps the batch for a person."""
    job_id, attempt = deployment.running()
    batch = [{"machine": 7}, {"machine": attempt.allocated_id}, {"type": "party"}]
    answer = sent(deployment, saying("azure_preempted", batch))
    assert (answer.status, answer.fields) == (400, ["0.machine"])
    assert deployment.job(job_id).state is JobState.INTERRUPTED
    assert parsed == ["azure"] * 3


@pytest.mark.parametrize("batch", [[], [{"machine": "m-1"}, {"machine": "m-2"}]])
def test_the_relay_sends_one_event_at_a_time(deployment: Deployment, parsed: list[str], batch: list[Json]) -> None:
    """It says so rather than take a part."""
    assert sent(deployment, saying("gcp_preemption", batch)).status == 400
    assert parsed == []


def test_a_repeat_is_asked_for_when_the_broker_fails(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is the broker's own trouble raises, so that the gateway answers 5xx and the sender comes again."""

    def fail(envelope: Mapping[str, object], cloud: str = "") -> None:
        raise OSError(f"no store for {cloud}: {len(envelope)}")

    monkeypatch.setattr(registry, "parse_notice", fail)
    with pytest.raises(OSError, match="no store"):
        sent(deployment, event("handle_interruption", "gcp_preemption"))
