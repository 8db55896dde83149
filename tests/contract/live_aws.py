"""The contract for aws against a real account: `make contract-live PROVIDER=aws`; no other run collects this file."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import boto3
import pytest

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.retries import Timing
from spotferry.types.instance import Attempt, Candidate
from tests.contract.aws_cloud import AwsCloud, an_m5
from tests.contract.live_cloud import LiveCloud, nothing_left
from tests.contract.provider_contract import ProviderContract

MOST_MACHINES = 40
MOST_MINUTES = 15
"""How many machines one run starts, and how long each lives, at most; the first is enforced."""
USD_HOUR = Decimal("0.0116")
"""More than a t3.micro on demand and its disk of 8 GB cost an hour in both regions."""
INSTANCE_TYPE = "t3.micro"


class LiveAws(LiveCloud, AwsCloud):
    """The account of the environment's credentials, its default networks, and the smallest machine."""

    regions = ("us-east-1", "us-west-2")

    def __init__(self) -> None:
        super().__init__(boto3.session.Session(), None)
        self._launches = 0

    def _timing(self) -> Timing:
        return Timing()

    def _on_launch(self, **_sent: object) -> None:
        self._launches += 1
        if self._launches > MOST_MACHINES:
            pytest.exit(f"more than {MOST_MACHINES} launches: the run would cost more than it said", returncode=3)

    def candidate(self, region: int = 0) -> Candidate:
        """The smallest spot machine, with the smallest disk that holds the image."""
        return an_m5(self.regions[region], "a", INSTANCE_TYPE).model_copy(update={"disk_gb": 8})

    def settings(self, candidate: Candidate) -> RegionSettings:
        """Nothing is set."""
        return RegionSettings(provider="aws", region=candidate.offer.region)

    def bought(self, attempt: Attempt) -> Sequence[str]:
        """By the client token."""
        return [machine["InstanceId"] for machine in self._of(attempt)]

    def billing(self, attempt: Attempt) -> Sequence[str]:
        """Those that are not terminated, nor on their way there: EC2 bills until it begins."""
        over = {"shutting-down", "terminated"}
        return [machine["InstanceId"] for machine in self._of(attempt) if machine["State"]["Name"] not in over]

    def _of(self, attempt: Attempt) -> Sequence[Mapping[str, Any]]:  # Any: machines as the SDK gives them
        filters = [{"Name": "client-token", "Values": [attempt.cedana_id]}]
        answer = self._shared("ec2", attempt.region).describe_instances(Filters=filters)
        return [machine for reservation in answer["Reservations"] for machine in reservation["Instances"]]


@pytest.fixture(scope="module")
def cloud() -> Iterator[LiveAws]:
    """The account, in which nothing is left."""
    account = LiveAws()
    with nothing_left(account):
        yield account


class TestAwsLive(ProviderContract):
    """aws keeps the contract where it is real."""
