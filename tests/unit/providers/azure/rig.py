"""An adapter over the compute client on scripted connections: nothing leaves the process."""

import io
import json
import re
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import requests
import urllib3
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import RequestsTransport
from requests.adapters import BaseAdapter

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.azure.api import AzureApi, Calls, Connection, connection
from spotferry.providers.azure.provider import AzureProvider
from spotferry.providers.context import ProviderContext
from spotferry.types.instance import Attempt, Candidate, LaunchRequest, Offer
from tests.unit.providers.fake_timing import FakeTiming

Json = dict[str, Any]  # Any: JSON as Azure has it
NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
REGION, GROUP, TOKEN = "eastus", "spotferry-eastus", "i-0a1b2c3d"
BASE = "https://management.example"
SUBNET = "/subscriptions/sub/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/machines"
TAGS = {"spotferry:deployment": "test", "spotferry:job": "j-1"}
VM = f"/subscriptions/sub/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachines/{TOKEN}"
IMAGE = "Canonical:ubuntu-24_04-lts:server:24.04.1"


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def raw(self) -> bytes:
        """Its bytes; text stays as it is."""
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


def refused(status: int, code: str, message: str = "No.", **headers: str) -> Answer:
    """An error as the resource manager writes it."""
    return Answer(status, {"error": {"code": code, "message": message}}, headers)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that was made."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class Script(BaseAdapter):
    """Answers by method and path; the last of a line is repeated for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Asked] = []
        self._lines: list[tuple[re.Pattern[str], deque[Answer | Exception]]] = []

    def answer(self, line: str, *answers: Answer | Exception) -> None:
        """To requests whose "METHOD path" contains this."""
        self._lines.insert(0, (re.compile(line), deque(answers)))

    # Any: whatever goes with a request.
    def send(self, request: requests.PreparedRequest, *_more: Any, **_options: Any) -> requests.Response:
        """Answer one request."""
        parts = urlsplit(str(request.url))
        sent: Any = request.body or b""  # Any: bytes, or a file of them
        body = sent.read() if hasattr(sent, "read") else sent
        headers = {name: str(value) for name, value in request.headers.items()}
        asked = Asked(str(request.method), parts.path, dict(parse_qsl(parts.query)), headers, body)
        self.asked.append(asked)
        answers = next(a for pattern, a in self._lines if pattern.search(f"{asked.method} {asked.path}"))
        answer = answers.popleft() if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        response = requests.Response()
        response.status_code, response.url, response.request = answer.status, str(request.url), request
        response.headers.update({"Content-Type": "application/json", **answer.headers})
        response.raw = urllib3.HTTPResponse(
            body=io.BytesIO(answer.raw()), status=answer.status, preload_content=False, headers=answer.headers
        )
        return response

    def close(self) -> None:
        """Nothing is open."""

    def lines(self) -> list[str]:
        """What was asked, without its query."""
        return [f"{asked.method} {asked.path}" for asked in self.asked]


class Credential:
    """Gives one token."""

    def get_token(self, *_scopes: str, **_options: object) -> AccessToken:
        """The token."""
        return AccessToken("a-token", int(time.time()) + 3600)


_LAST: list[Connection] = []


def connection_over(script: Script) -> Connection:
    """The real clients, sending to the script; they are made once, for making them costs more than a test should."""
    if not _LAST:
        session = requests.Session()
        _LAST.append(connection(Credential(), "sub", BASE, RequestsTransport(session=session, session_owner=False)))
        _SESSIONS.append(session)
    _SESSIONS[0].mount("https://", script)
    return _LAST[0]


_SESSIONS: list[requests.Session] = []


class Rig:
    """An adapter, its script, and its time."""

    def __init__(self, user_data: str = "#!/bin/sh\n") -> None:
        self.script = Script()
        self.timing = FakeTiming()
        self.now = NOW
        self.api = AzureApi(lambda: connection_over(self.script), self.timing.timing())
        context = ProviderContext("test", lambda _attempt: user_data, lambda: self.now)
        self.provider = AzureProvider(context, self.api)

    def calls(self) -> Calls:
        """Calls of their own."""
        return self.api.begin(REGION)


def a_candidate(**changes: object) -> Candidate:
    """A small spot machine in zone 1; changes are of the offer."""
    offer = Offer(
        provider="azure", region=REGION, zone="1", instance_type="Standard_D2s_v5", vcpus=2, memory_gib=8
    ).model_copy(update=changes)
    return Candidate(offer=offer, market="spot", price_usd_hour=Decimal("0.02"), disk_gb=40)


def settings(**images: str) -> RegionSettings:
    """A region that was set up."""
    network = {"resource_group": GROUP, "subnet_id": SUBNET}
    return RegionSettings(provider="azure", region=REGION, network=network, image_ids=images)


def a_launch(**changes: object) -> LaunchRequest:
    """A fixed request."""
    network = {"resource_group": GROUP, "subnet_id": SUBNET, "zone": "1"}
    launch = LaunchRequest(image_id=IMAGE, disk_gb=40, network=network, tags=TAGS, agent_sha256="", broker_url="")
    return launch.model_copy(update=changes)


# Any: of any field.
def an_attempt(launch: LaunchRequest | None = None, **changes: Any) -> Attempt:
    """An attempt whose request is fixed, ten minutes old."""
    attempt = Attempt(
        cedana_id=TOKEN,
        job_id="j-1",
        epoch=1,
        provider="azure",
        instance_type="Standard_D2s_v5",
        region=REGION,
        availability_zone="1",
        requested_at=NOW - timedelta(minutes=10),
        launch=launch or a_launch(),
        state="pending",
    )
    return attempt.model_copy(update=changes)


def a_vm(provisioning: str = "Succeeded", power: str = "running", **changes: object) -> Json:
    """A machine as a GET with its run state has it; changes are of its properties."""
    statuses = [{"code": f"ProvisioningState/{provisioning.lower()}", "level": "Info"}]
    if power:
        statuses.append({"code": f"PowerState/{power}", "level": "Info"})
    properties = {"provisioningState": provisioning.partition("/")[0], "instanceView": {"statuses": statuses}}
    return {
        "name": TOKEN,
        "id": VM,
        "location": REGION,
        "zones": ["1"],
        "tags": dict(TAGS),
        "properties": {**properties, "timeCreated": "2026-05-04T11:50:00.1234567Z", **changes},
    }


def failed(code: str = "ZonalAllocationFailed", power: str = "") -> Json:
    """A machine that came to nothing."""
    seen = a_vm("Failed", power)
    seen["properties"]["instanceView"]["statuses"][0] = {
        "code": f"ProvisioningState/failed/{code}",
        "level": "Error",
        "message": "Allocation failed.",
    }
    return seen


PUT, GET, DELETE = f"PUT {VM}$", f"GET {VM}$", f"DELETE {VM}$"
OPERATION = "/subscriptions/sub/providers/Microsoft.Compute/locations/eastus/operations/1"
MADE = Answer(201, a_vm("Creating", ""), {"Azure-AsyncOperation": f"{BASE}{OPERATION}?api-version=1"})
LIST = "GET /subscriptions/sub/providers/Microsoft.Compute/virtualMachines$"


def accepting_rig() -> Rig:
    """An adapter whose launches are accepted and go on; nothing else is there."""
    made = Rig()
    made.script.answer("", refused(404, "ResourceNotFound"))
    made.script.answer(PUT, MADE)
    made.script.answer(DELETE, Answer(202, None))
    made.script.answer(OPERATION, Answer(200, {"status": "InProgress"}))
    return made
