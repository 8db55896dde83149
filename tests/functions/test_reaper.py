"""The schedule ends machines that nobody owns: the function, its tables, and EC2 as the local market has it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from spotferry.ports.cloud import CloudProvider
from spotferry.runtime import machines
from spotferry.runtime.aws_clients import client
from spotferry.types import Attempt
from tests.contract.aws_cloud import Ec2Face
from tests.contract.face_cloud import market_process
from tests.contract.provider_contract_world import World, an_attempt
from tests.functions.deployment import REGION, Deployment, Json, event

SCHEDULE = event("poll_status", "schedule")
JOB = {"task": {"run": "./x"}, "instance_specs": {"memory_gb": 8, "regions": [REGION]}}
ENDED = {"shutting-down", "terminated"}


@dataclass
class Clouds:
    """The one cloud of the deployment."""

    cloud: CloudProvider

    def provider(self, name: str) -> CloudProvider:
        """It."""
        assert name == "aws"
        return self.cloud


@dataclass
class Rig:
    """A deployment with its machines in the local market, and the reaper's clock, an hour late at first."""

    deployment: Deployment
    face: Ec2Face
    late: timedelta = field(default_factory=lambda: timedelta(hours=1))

    def clock(self) -> datetime:
        """The reaper's time."""
        return datetime.now(UTC) + self.late

    def poll(self) -> Json:
        """The next minute's poll."""
        self.late += timedelta(minutes=1)
        polled: Json = self.deployment.invoke("poll_status", SCHEDULE)
        return polled

    def provider(self, deployment: str) -> CloudProvider:
        """The adapter of a deployment."""
        return self.face.provider(World(deployment))

    def bought(self, deployment: str) -> Attempt:
        """A machine that carries the deployment's tags and is in no record."""
        provider = self.provider(deployment)
        made = provider.create_instance(an_attempt(self.face, provider, deployment=deployment))
        assert isinstance(made, Attempt)
        return made

    def launched(self) -> Attempt:
        """The machine of a job."""
        job_id = str(self.deployment.submit(JOB).json["job"]["job_id"])
        placed = {"kind": "place_job", "job_id": job_id}
        event = {"Records": [{"messageId": "1", "body": json.dumps(placed)}]}
        assert self.deployment.invoke("create_instance", event) == {"batchItemFailures": []}
        return self.deployment.attempts(job_id)[-1]

    def ended(self) -> set[str]:
        """The machines that are at their end."""
        return {m["allocated_id"] for m in self.face.machines() if m["state"] in ENDED}


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ec2Face]:
    """The market's EC2 face, for all tests here."""
    with market_process(tmp_path_factory.mktemp("market")) as port:
        yield Ec2Face(port)


@pytest.fixture
def rig(deployment: Deployment, face: Ec2Face, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """The deployment over the face, everything plentiful; its machines end with the test."""
    face.calm()
    rig = Rig(deployment, face)
    settings = face.settings(face.candidate()).model_dump_json()
    client("ssm", REGION).put_parameter(
        Name=f"/spotferry/test/regions/aws/{REGION}", Value=settings, Type="String", Overwrite=True
    )
    monkeypatch.setitem(vars(deployment.wiring), "clouds", Clouds(rig.provider("test")))
    monkeypatch.setattr(machines, "utc_now", rig.clock)
    yield rig
    face.calm()
    provider = rig.provider("test")
    for machine in provider.owned_instances(REGION):
        provider.destroy_instance(machine)


def test_a_machine_that_nobody_owns_is_ended_and_others_are_not(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    """Of three machines that look alike the one without an owner goes: not a job's, not another deployment's."""
    owned, orphan, foreign = rig.launched(), rig.bought("test"), rig.bought("other")
    before = rig.ended()
    first = rig.poll()["reaper"]
    assert (first["machines"], first["ownerless"], first["ended"], first["problems"]) == (2, 1, [], [])
    second = rig.poll()["reaper"]
    assert second["ended"] == [f"aws {REGION} {orphan.allocated_id}: there is no record of it"]
    assert rig.ended() - before == {orphan.allocated_id}
    assert not {owned.allocated_id, foreign.allocated_id} & rig.ended()
    told = capsys.readouterr().out
    assert '"MachinesReaped":[1.0]' in told
    assert "nobody owns" in told
    assert rig.poll()["reaper"]["ended"] == []


def test_a_restart_between_two_polls_loses_nothing(rig: Rig) -> None:
    """The function that ends the machine need not be the one that saw it first."""
    rig.launched()
    orphan = rig.bought("test")
    rig.poll()
    del vars(rig.deployment.wiring)["reaper_rounds"]
    rig.poll()
    assert orphan.allocated_id in rig.ended()


def test_a_listing_that_fails_proves_nothing(rig: Rig) -> None:
    """While EC2 answers nothing, nothing is ended; afterwards what was seen before still counts."""
    owned, orphan = rig.launched(), rig.bought("test")
    rig.poll()
    rig.face.pull("fail", operation="DescribeInstances", times=1000, **rig.face.throttled)
    away = rig.poll()
    assert (away["reaper"]["regions"], away["reaper"]["ended"], len(away["reaper"]["problems"])) == (0, [], 1)
    assert not {owned.allocated_id, orphan.allocated_id} & rig.ended()
    rig.face.calm()
    assert len(rig.poll()["reaper"]["ended"]) == 1
    assert orphan.allocated_id in rig.ended()
    assert owned.allocated_id not in rig.ended()
