"""The schedule: a sweep over all jobs that are not settled."""

import json

import pytest

from spotferry.types import JobState, ProviderUnavailable
from tests.functions.deployment import Deployment, event

SCHEDULE = event("poll_status", "schedule")


def test_a_quiet_deployment_is_told_in_figures(deployment: Deployment) -> None:
    """The answer is plain JSON that says what was looked at."""
    deployment.running()
    polled = deployment.invoke("poll_status", SCHEDULE)
    assert json.loads(json.dumps(polled)) == {
        "jobs": 1,
        "machines": 1,
        "events": {},
        "effects": 0,
        "problems": [],
        "reaper": {"regions": 1, "machines": 1, "ownerless": 0, "ended": [], "problems": []},
    }


def test_a_lost_machine_is_found(deployment: Deployment) -> None:
    """What the bus did not tell, the poll sees."""
    job_id, attempt = deployment.running()
    deployment.cloud.terminate(attempt.cedana_id)
    polled = deployment.invoke("poll_status", SCHEDULE)
    assert polled["events"] == {"MachineGone": 1}
    assert deployment.job(job_id).state is JobState.PENDING


def test_problems_are_counted_and_do_not_fail_the_call(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cloud that is away is reported as a figure that an alarm can watch."""
    _, attempt = deployment.running()
    deployment.cloud.dead_regions[attempt.region] = ProviderUnavailable("Timeout", "no answer")
    polled = deployment.invoke("poll_status", SCHEDULE)
    assert len(polled["problems"]) == len(polled["reaper"]["problems"]) == 1
    assert '"PollProblems":[2.0]' in capsys.readouterr().out


def test_an_empty_deployment_costs_nothing(deployment: Deployment) -> None:
    """No job, no call to a cloud."""
    assert deployment.invoke("poll_status", SCHEDULE)["jobs"] == 0
    assert deployment.cloud.calls == {}
