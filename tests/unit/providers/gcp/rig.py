"""An adapter over Google's own client, whose connections are canned answers: nothing leaves the process."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

from google.oauth2.credentials import Credentials
from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.context import ProviderContext
from spotferry.providers.gcp.api import Clients, GcpApi, clients
from spotferry.providers.gcp.provider import GcpProvider
from spotferry.types.instance import Attempt, Candidate, LaunchRequest, Offer
from tests.unit.providers.fake_timing import FakeTiming

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
REGION, ZONE = "us-central1", "us-central1-a"
IMAGE = "projects/ubuntu-os-cloud/global/images/ubuntu-2404-noble-amd64-v20261120"
TAGS = {"spotferry:deployment": "test", "spotferry:job": "j-1"}
NAME = "i-0a1b2c3d"
HOME = f"https://compute.googleapis.com/compute/v1/projects/p1/zones/{ZONE}"

# Any, here and below: JSON as the API has it.
Json = dict[str, Any]
Answer = Json | bytes | Exception | tuple[int, Json | bytes]


class Wire(BaseAdapter):
    """Answers requests from a list, in order; keeps what was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Answer] = []
        self.asked: list[PreparedRequest] = []

    # Any: requests passes its own settings through.
    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        """The next answer."""
        self.asked.append(request)
        assert self.answers, f"nobody expected {request.method} {request.url}"
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, body = answer if isinstance(answer, tuple) else (200, answer)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        response = Response()
        response.status_code, response.request, response.url = status, request, request.url or ""
        response.headers["Content-Type"] = "application/json"
        response.raw = HTTPResponse(body=BytesIO(raw), preload_content=False, status=status)
        return response

    def close(self) -> None:
        """Nothing is open."""

    def paths(self) -> list[str]:
        """Method and path below the project of every request."""
        return [f"{r.method} {urlsplit(r.url or '').path.partition('/projects/')[2]}" for r in self.asked]

    def query(self, number: int = -1) -> Mapping[str, str]:
        """The query of a request."""
        asked = str(urlsplit(str(self.asked[number].url)).query)
        return {name: values[-1] for name, values in parse_qs(asked).items()}

    def body(self, number: int = -1) -> Json:
        """The body of a request."""
        raw = self.asked[number].body or "{}"
        assert isinstance(raw, str | bytes)
        sent: Json = json.loads(raw)
        return sent


class Rig:
    """The adapter, its wire, and a clock."""

    def __init__(
        self, user_data: Callable[[Attempt], str] = lambda attempt: f"#!/bin/bash\n# {attempt.cedana_id}\n"
    ) -> None:
        self.now = NOW
        self.wire = Wire()
        self.time = FakeTiming()
        self.api = GcpApi(self._connect, self.time.timing())
        context = ProviderContext(deployment="test", user_data=user_data, clock=lambda: self.now)
        self.provider = GcpProvider(context, self.api)

    def answer(self, *answers: Answer) -> "Rig":
        """What comes next."""
        self.wire.answers += answers
        return self

    def done(self) -> None:
        """Every answer was asked for."""
        assert not self.wire.answers

    def _connect(self) -> Clients:
        # The library is typed only in part.
        made = clients(Credentials(token="t"), "p1")  # type: ignore[no-untyped-call]
        for client in (made.instances, made.operations, made.images):
            transport: Any = client.transport  # Any: the SDK's type of it does not know its own session
            transport._session.mount("https://", self.wire)
        return made


def an_offer(**changes: object) -> Offer:
    """A small machine."""
    fields: dict[str, object] = {
        "provider": "gcp",
        "region": REGION,
        "zone": ZONE,
        "instance_type": "n2-standard-2",
        "vcpus": 2,
        "memory_gib": 8,
        "spot_usd_hour": Decimal("0.03"),
    }
    return Offer.model_validate(fields | changes)


def a_candidate(disk_gb: int = 20, **changes: object) -> Candidate:
    """An offer on the spot market."""
    return Candidate(offer=an_offer(**changes), market="spot", price_usd_hour=Decimal("0.03"), disk_gb=disk_gb)


def a_launch(**changes: object) -> LaunchRequest:
    """A fixed request."""
    fields: dict[str, object] = {
        "image_id": IMAGE,
        "disk_gb": 20,
        "network": {"zone": ZONE},
        "tags": TAGS,
        "agent_sha256": "ab" * 32,
        "broker_url": "https://broker.example",
    }
    return LaunchRequest.model_validate(fields | changes)


def an_attempt(**changes: object) -> Attempt:
    """An attempt about to be launched."""
    fields: dict[str, object] = {
        "cedana_id": NAME,
        "job_id": "j-1",
        "epoch": 1,
        "provider": "gcp",
        "instance_type": "n2-standard-2",
        "region": REGION,
        "availability_zone": ZONE,
        "price": Decimal("0.03"),
        "launch": a_launch(),
        "requested_at": NOW,
    }
    return Attempt.model_validate(fields | changes)


def settings(network: Mapping[str, str] | None = None, image_ids: Mapping[str, str] | None = None) -> RegionSettings:
    """A launch region."""
    return RegionSettings(provider="gcp", region=REGION, network=network or {}, image_ids=image_ids or {})


def a_machine(name: str = NAME, status: str = "RUNNING", **changes: object) -> Json:
    """A machine as the API shows it."""
    return {
        "id": "7",
        "name": name,
        "status": status,
        "zone": HOME,
        "machineType": f"{HOME}/machineTypes/n2-standard-2",
        "creationTimestamp": "2026-05-04T03:00:00.000-07:00",
        "labels": {"spotferry-deployment": "test", "spotferry-instance": name},
        "networkInterfaces": [{"networkIP": "10.128.0.2", "accessConfigs": [{"natIP": "198.51.100.7"}]}],
        **changes,
    }


def an_operation(kind: str = "insert", status: str = "DONE", name: str = NAME, **changes: object) -> Json:
    """An operation as the API shows it."""
    return {
        "id": "8",
        "name": f"operation-{kind}",
        "operationType": kind,
        "status": status,
        "targetLink": f"{HOME}/instances/{name}",
        "insertTime": "2026-05-04T04:30:00.000-07:00",
        **changes,
    }


def failed(code: str, message: str = "words", **changes: object) -> Json:
    """A launch that failed."""
    return {**an_operation(), "error": {"errors": [{"code": code, "message": message}]}, **changes}


def refused(status: int, reason: str, message: str = "words", details: Sequence[Json] = ()) -> tuple[int, Json]:
    """A refusal as the API writes it."""
    listed = [{"reason": reason, "message": message, "domain": "global"}] if reason else []
    return status, {"error": {"code": status, "message": message, "errors": listed, "details": list(details)}}


def listed(*machines: Json, token: str = "", **changes: object) -> Json:
    """A page of an aggregated list."""
    items = {f"zones/{ZONE}": {"instances": list(machines)}}
    return {"kind": "compute#instanceAggregatedList", "items": items, "nextPageToken": token, **changes}


def operations(*items: Json, token: str = "") -> Json:
    """A page of a zone's operations."""
    return {"kind": "compute#operationList", "items": list(items), "nextPageToken": token}
