"""An adapter over stubbed clients: the SDK checks every call against EC2's own model, nothing leaves the process."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import boto3
from botocore.stub import Stubber

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.aws.api import AwsApi, Service
from spotferry.providers.aws.provider import AwsProvider
from spotferry.providers.context import ProviderContext
from spotferry.types.instance import Attempt, Candidate, LaunchRequest, Offer
from tests.unit.providers.fake_timing import FakeTiming

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
REGION = "us-east-1"
IMAGE = "ami-0123456789abcdef0"
TAGS = {"spotferry:deployment": "test", "spotferry:job": "j-1"}
TOKEN = "i-0a1b2c3d"


@lru_cache(maxsize=1)
def session() -> boto3.session.Session:
    """One session, so that EC2's model is read once; its credentials are made up."""
    return boto3.session.Session(aws_access_key_id="AKIATEST", aws_secret_access_key="none", region_name=REGION)


_STUBBED: dict[tuple[Service, str], Stubber] = {}


def stubbed(service: Service, region: str) -> Stubber:
    """A fresh stub over a client that is made once: making one costs more than a test should."""
    last = _STUBBED.get((service, region))
    if last is not None:
        last.deactivate()
    client = last.client if last else session().client(service, region_name=region)
    _STUBBED[service, region] = Stubber(client)
    _STUBBED[service, region].activate()
    return _STUBBED[service, region]


class Rig:
    """The adapter, a stub per service and region, and a clock."""

    def __init__(
        self, user_data: Callable[[Attempt], str] = lambda attempt: f"#!/bin/bash\n# {attempt.cedana_id}\n"
    ) -> None:
        self.now = NOW
        self.time = FakeTiming()
        self.stubs: dict[tuple[Service, str], Stubber] = {}
        context = ProviderContext(deployment="test", user_data=user_data, clock=lambda: self.now)
        self.api = AwsApi(self._client, self.time.timing())
        self.provider = AwsProvider(context, self.api)

    def stub(self, service: Service = "ec2", region: str = REGION) -> Stubber:
        """The stub behind one client."""
        if (service, region) not in self.stubs:
            self.stubs[service, region] = stubbed(service, region)
        return self.stubs[service, region]

    def _client(self, service: Service, region: str) -> Any:  # Any: as the SDK has it
        return self.stub(service, region).client

    def done(self) -> None:
        """Every call that was expected has been made."""
        for stubber in self.stubs.values():
            stubber.assert_no_pending_responses()


def an_offer(**changes: object) -> Offer:
    """A small machine."""
    fields: dict[str, object] = {
        "provider": "aws",
        "region": REGION,
        "zone": "us-east-1a",
        "instance_type": "m5.large",
        "vcpus": 2,
        "memory_gib": 8,
        "spot_usd_hour": Decimal("0.035"),
    }
    return Offer.model_validate(fields | changes)


def a_candidate(disk_gb: int = 20, **changes: object) -> Candidate:
    """An offer on the spot market."""
    offer = an_offer(**changes)
    return Candidate(offer=offer, market="spot", price_usd_hour=Decimal("0.035"), disk_gb=disk_gb)


def a_launch(**changes: object) -> LaunchRequest:
    """A fixed request."""
    fields: dict[str, object] = {
        "image_id": IMAGE,
        "disk_gb": 20,
        "network": {"zone": "us-east-1a", "root_device": "/dev/sda1"},
        "tags": TAGS,
        "agent_sha256": "ab" * 32,
        "broker_url": "https://broker.example",
    }
    return LaunchRequest.model_validate(fields | changes)


def an_attempt(**changes: object) -> Attempt:
    """An attempt about to be launched."""
    fields: dict[str, object] = {
        "cedana_id": TOKEN,
        "job_id": "j-1",
        "epoch": 1,
        "provider": "aws",
        "instance_type": "m5.large",
        "region": REGION,
        "availability_zone": "us-east-1a",
        "price": Decimal("0.035"),
        "launch": a_launch(),
        "requested_at": NOW,
    }
    return Attempt.model_validate(fields | changes)


def settings(network: Mapping[str, str] | None = None, image_ids: Mapping[str, str] | None = None) -> RegionSettings:
    """A launch region."""
    return RegionSettings(provider="aws", region=REGION, network=network or {}, image_ids=image_ids or {})


def machine(instance_id: str, state: str = "running", **changes: object) -> dict[str, object]:
    """A machine as DescribeInstances and RunInstances show it."""
    return {
        "InstanceId": instance_id,
        "State": {"Code": 16, "Name": state},
        "PrivateIpAddress": "10.0.0.7",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "ClientToken": TOKEN,
        "Tags": [{"Key": key, "Value": value} for key, value in TAGS.items()],
    } | changes


def reservations(*machines: Mapping[str, object]) -> dict[str, object]:
    """An answer of DescribeInstances."""
    return {"Reservations": [{"Instances": [m]} for m in machines]}


LONG_AGO = NOW - timedelta(hours=1)
