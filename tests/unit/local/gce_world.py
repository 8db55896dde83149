"""The local Google Cloud in this process: a market on a clock that tests move, and its API."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from werkzeug.test import Client, TestResponse

from local.gce import GceFace
from local.gce_launch import read
from local.gcp_pricing import TOKEN
from local.market import Market
from local.market_faults import Faults
from local.market_model import Machine

ZONE, REGION = "us-central1-a", "us-central1"
ROOT = "/_gcp/compute/v1/projects/local"
UBUNTU = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"
# Any, here and below: JSON as the API has it.
RESOURCE: dict[str, Any] = {
    "name": "i-1",
    "machineType": f"zones/{ZONE}/machineTypes/n2-standard-2",
    "labels": {"spotferry-deployment": "test"},
    "disks": [{"boot": True, "initializeParams": {"sourceImage": UBUNTU, "diskSizeGb": "20"}}],
    "networkInterfaces": [{"network": "global/networks/default", "accessConfigs": [{"type": "ONE_TO_ONE_NAT"}]}],
    "metadata": {"items": [{"key": "startup-script", "value": "#!/bin/sh\ntrue\n"}]},
    "scheduling": {
        "provisioningModel": "SPOT",
        "instanceTerminationAction": "DELETE",
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
    },
}


def a_market() -> Market:
    """A market whose time is real."""
    return Market(lambda: datetime.now(UTC), seed=1)


def a_resource(**changes: Any) -> dict[str, Any]:
    """A machine to make."""
    return {**copy.deepcopy(RESOURCE), **changes}


def sold(market: Market, **changes: Any) -> Machine:
    """A machine that was sold."""
    return market.launch(read(ZONE, a_resource(**changes)))


@dataclass
class World:
    """One Compute Engine."""

    now: datetime = datetime(2026, 12, 1, tzinfo=UTC)
    faults: Faults = field(default_factory=Faults)
    market: Market = field(init=False)
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        """Start it."""
        self.market = Market(lambda: self.now, seed=7)
        self.client = Client(GceFace(self.market, self.faults))

    def wait(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
        self.market.advance()

    def ask(self, method: str, path: str, body: object = None, **asked: str) -> TestResponse:
        """One call with a good token."""
        return self.client.open(
            f"{ROOT}/{path}",
            method=method,
            query_string=asked,
            data=None if body is None else json.dumps(body),
            headers={"Authorization": f"Bearer {TOKEN}"},
        )

    def get(self, path: str, **asked: str) -> dict[str, Any]:
        """The answer to a question that succeeds."""
        answer = self.ask("GET", path, **asked)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.get_json()
        return found

    def insert(self, request_id: str = "", **changes: Any) -> TestResponse:
        """Ask for a machine."""
        asked = {"requestId": request_id} if request_id else {}
        return self.ask("POST", f"zones/{ZONE}/instances", a_resource(**changes), **asked)

    def made(self, **changes: Any) -> dict[str, Any]:
        """A machine that runs."""
        operation = self.insert(**changes).get_json()
        self.wait()
        return self.get(f"zones/{ZONE}/instances/{operation['targetLink'].rpartition('/')[2]}")

    def refusal(self, answer: TestResponse) -> tuple[int, str]:
        """How a call was refused."""
        return answer.status_code, answer.get_json()["error"]["errors"][0]["reason"]

    def operations(self, kind: str) -> list[dict[str, Any]]:
        """The zone's operations of a type."""
        found: list[dict[str, Any]] = self.get(f"zones/{ZONE}/operations", filter=f'operationType eq "{kind}"')["items"]
        return found
