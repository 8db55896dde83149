"""The bus: notices from any cloud; malformed ones are set aside, unknown machines get a second hearing."""

import json

import pytest

from spotferry.types import JobState
from tests.functions.deployment import Deployment, Json, event, sqs_event

ABOUT = "i-0123456789abcdef0"


def about(what: Json, allocated_id: str) -> Json:
    """The event, about another machine."""
    loaded: Json = json.loads(json.dumps(what).replace(ABOUT, allocated_id))
    return loaded


def heard_again(what: Json) -> Json:
    """The message that brings an event back."""
    return {"version": 1, "kind": "hear_notice", "event": what}


def hear(deployment: Deployment, case: str, allocated_id: str) -> None:
    """The stored event arrives, about this machine."""
    deployment.invoke("handle_interruption", about(event("handle_interruption", case), allocated_id))


@pytest.mark.parametrize("case", ["spot_warning", "capacity_reservation_warning"])
def test_a_warning_interrupts_the_job(deployment: Deployment, case: str) -> None:
    """The stored warning, about a job's machine: INTERRUPTED, and a successor is asked for."""
    job_id, attempt = deployment.running()
    hear(deployment, case, attempt.allocated_id)
    assert deployment.job(job_id).state is JobState.INTERRUPTED
    answer = deployment.agent(attempt, "heartbeat", {"phase": "running", "log": None})
    assert answer.json["directive"]["kind"] == "release"
    hear(deployment, case, attempt.allocated_id)
    assert deployment.job(job_id).interruptions == 1


def test_a_machine_that_terminated_passes_the_job_on(deployment: Deployment) -> None:
    """The stored state change, about a job's machine: the job waits for another."""
    job_id, attempt = deployment.running()
    hear(deployment, "state_change_terminated", attempt.allocated_id)
    assert deployment.job(job_id).state is JobState.PENDING
    assert deployment.agent(attempt, "heartbeat", {"phase": "running", "log": None}).status == 410


def test_the_region_of_an_event_is_the_machines(deployment: Deployment) -> None:
    """An event that another region forwarded is about that region's machines, and no other with the same id."""
    job_id, attempt = deployment.running()
    hear(deployment, "state_change_elsewhere", attempt.allocated_id)
    assert deployment.job(job_id).state is JobState.RUNNING


@pytest.mark.parametrize("case", ["rebalance", "health"])
def test_forecasts_change_nothing(deployment: Deployment, case: str) -> None:
    """Recommendations and maintenance far ahead leave the job running."""
    job_id, attempt = deployment.running()
    before = deployment.queued("placement")
    hear(deployment, case, attempt.allocated_id)
    assert deployment.job(job_id).state is JobState.RUNNING
    assert deployment.queued("placement") == before


def test_a_foreign_machine_is_heard_twice_then_dropped(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once more after a pause, in case its launch's answer was not saved yet; then it is foreign."""
    what = event("handle_interruption", "foreign")
    deployment.invoke("handle_interruption", what)
    assert "UnknownEvents" in capsys.readouterr().out
    assert len(deployment.queued("placement")) == 1
    deployment.invoke("create_instance", sqs_event(heard_again(what)))
    assert "ForeignEvents" in capsys.readouterr().out
    assert len(deployment.queued("placement")) == 1


def test_the_second_hearing_acts(deployment: Deployment) -> None:
    """By then the machine is known, and its job is told."""
    job_id, attempt = deployment.running()
    what = about(event("handle_interruption", "spot_warning"), attempt.allocated_id)
    deployment.invoke("create_instance", sqs_event(heard_again(what)))
    assert deployment.job(job_id).state is JobState.INTERRUPTED


@pytest.mark.parametrize(
    "what",
    [
        event("handle_interruption", "malformed"),
        {**event("handle_interruption", "spot_warning"), "detail": None},
        {**event("handle_interruption", "spot_warning"), "time": "yesterday"},
        {
            **event("handle_interruption", "state_change_terminated"),
            "detail": {"instance-id": ABOUT, "state": "flying"},
        },
    ],
)
def test_a_malformed_event_is_counted_and_set_aside(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], what: Json
) -> None:
    """Nothing is raised, so the bus does not deliver it for ever."""
    before = deployment.written()
    deployment.invoke("handle_interruption", what)
    printed = capsys.readouterr().out
    assert '"EventsSetAside":[1.0]' in printed
    assert "event set aside" in printed
    assert deployment.written() == before


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "7", '{"kind": "hear_notice", "event": 7}'])
def test_a_malformed_second_hearing_does_not_stop_the_next(deployment: Deployment, body: str) -> None:
    """Each record is heard by itself."""
    job_id, attempt = deployment.running()
    what = about(event("handle_interruption", "spot_warning"), attempt.allocated_id)
    deployment.invoke("create_instance", sqs_event(body, heard_again(what)))
    assert deployment.job(job_id).state is JobState.INTERRUPTED


def test_an_event_of_no_clouds_kind_is_let_be(deployment: Deployment) -> None:
    """Whatever else comes over the bus changes nothing."""
    before = deployment.written()
    deployment.invoke("handle_interruption", {"source": "some.thing", "detail-type": "Else", "detail": {}})
    assert deployment.written() == before
