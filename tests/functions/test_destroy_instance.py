"""The destroy queue: one machine to end per message."""

import pytest

from spotferry.types import JobState
from tests.functions.deployment import Deployment, event, sqs_event

NOTHING: dict[str, list[dict[str, str]]] = {"batchItemFailures": []}


@pytest.mark.parametrize("case", ["destroy", "malformed"])
def test_the_events_of_nothing_are_acknowledged(deployment: Deployment, case: str) -> None:
    """A machine that nobody knows, and a message that cannot be read, end nothing and block nothing."""
    assert deployment.invoke("destroy_instance", event("destroy_instance", case)) == NOTHING
    assert deployment.cloud.destroyed == []


def test_a_machine_of_a_finished_job_is_ended_and_the_job_settles(deployment: Deployment) -> None:
    """The order that the job's end queued ends the machine; a poll closes it."""
    job_id, attempt = deployment.running()
    deployment.agent(attempt, "report", {"event": "task_exited", "data": {"exit_code": 0}})
    (order,) = deployment.queued("destroy")
    assert deployment.invoke("destroy_instance", sqs_event(order)) == NOTHING
    deployment.cloud.finish_ending()
    deployment.invoke("poll_status", event("poll_status", "schedule"))
    assert deployment.job(job_id).state is JobState.DONE
    assert deployment.job(job_id).is_settled
