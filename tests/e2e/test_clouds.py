"""Jobs over several clouds: taken back by one after another, and turned away by an organisation's policy."""

from collections.abc import Iterator

import httpx
import pytest

from local.demo_clouds import SPEED_UP, Journey, judge, travel
from local.other_offers import CLOUDS
from local.stack import Options, Stack, running
from tests.e2e.broker import Broker

pytestmark = pytest.mark.e2e

DENIED, OPEN = "us-west-2", "eu-west-1"
POLICY = "You are not authorized to perform this operation with an explicit deny in a service control policy"
JOB = f"""
name: denied
instance_specs: {{cpu_cores: 2, memory_gb: 4, providers: [aws], regions: [{DENIED}, {OPEN}]}}
task: {{run: "sleep 60"}}
"""


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A local cloud of its own in which all clouds are open; what is learned of one region stays out of the others."""
    with running(tmp_path_factory.mktemp("clouds"), Options(tied=True, speed_up=SPEED_UP, clouds=CLOUDS)) as stack:
        yield stack


def test_a_denied_region_sends_the_job_to_the_next_one(clouds: Stack) -> None:
    """A denial for one region leaves the cloud open: the job lands in its next region, and the plan says why."""
    denial = {"operation": "*", "region": DENIED, "times": 1000, "code": "UnauthorizedOperation", "status": 403}
    pulled = httpx.post(f"{clouds.cloud_url}/_market/fail", json={**denial, "message": POLICY}, timeout=10)
    pulled.raise_for_status()
    with Broker(clouds) as broker:
        job_id = broker.submit(JOB)
        broker.machine_of(job_id)
        machine = broker.job(job_id)["machine"]
        assert (machine["provider"], machine["region"]) == ("aws", OPEN)
        why = machine["plan"]["why"]
        assert "Left alone for now" in why
        assert f"aws {DENIED}" in why
        assert f"because UnauthorizedOperation: {POLICY}" in why
        assert broker.send("POST", f"/jobs/{job_id}/cancel").is_success
        broker.wait(job_id, "CANCELLED")
        broker.assert_machines_gone(job_id)


def test_a_job_goes_over_all_clouds(clouds: Stack) -> None:
    """Taken back by each cloud but the last, a job is done at the last one; every step was made once, in order, and
    where it went was the broker's choice.
    """
    journey = Journey(CLOUDS)
    story = travel(clouds, journey)
    assert judge(clouds, story, journey) == []
    assert story.summary()["providers"] == list(CLOUDS)
