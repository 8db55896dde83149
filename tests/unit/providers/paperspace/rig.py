"""Paperspace's API, answered by a test: what is asked, and what comes back."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx

from spotferry.providers.context import ProviderContext
from spotferry.providers.paperspace.api import Json, Method, PaperspaceApi
from spotferry.providers.paperspace.credentials import ApiKey
from spotferry.providers.paperspace.provider import PaperspaceProvider
from spotferry.providers.retries import Timing
from spotferry.types.instance import Attempt, LaunchRequest, Offer

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
NAME = "spotferry.test.i-1"
Answer = Json | bytes | Exception | httpx.Response
Route = tuple[str, str]
Answers = dict[Route, list[Answer]]


def refusal(status: int, code: str = "", message: str = "no", **more: object) -> httpx.Response:
    """An error in the API's form."""
    return httpx.Response(status, json={"code": code, "message": message, **more})


@dataclass
class Time:
    """A clock that only pauses move."""

    now: float = 0.0
    chance: float = 1.0
    pauses: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        """Seconds."""
        return self.now

    def wait(self, seconds: float) -> None:
        """Pass at once, and count."""
        self.pauses.append(seconds)
        self.now += seconds

    def timing(self) -> Timing:
        """What the adapter is given; chance is what the test says."""
        return Timing(monotonic=self.monotonic, sleep=self.wait, random=lambda: self.chance)


class ScriptedApi(PaperspaceApi):
    """Answers by method and path, one after another; the last one of a route is repeated for ever."""

    def __init__(self, answers: Answers, time: Time | None = None) -> None:
        self.time = time or Time()
        super().__init__(ApiKey(lambda _name: "key"), "http://paperspace.test", self.time.timing())
        self.asked: list[tuple[str, str, Mapping[str, str], Json | None]] = []
        self._answers = {route: deque(listed) for route, listed in answers.items()}

    def send(self, method: Method, path: str, parameters: Mapping[str, str], body: Json | None) -> httpx.Response:
        """One try."""
        self.asked.append((method, path, dict(parameters), body))
        listed = self._answers[method, path]
        answer = listed.popleft() if len(listed) > 1 else listed[0]
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, httpx.Response):
            answer = (
                httpx.Response(200, content=answer) if isinstance(answer, bytes) else httpx.Response(200, json=answer)
            )
        answer.request = httpx.Request(method, f"http://paperspace.test{path}")
        return answer

    def calls(self) -> list[Route]:
        """What was asked, in order."""
        return [(method, path) for method, path, _, _ in self.asked]

    def body_of(self, method: str, path: str) -> Any:  # Any: JSON
        """The body of the first call of a route."""
        return next(body for m, p, _, body in self.asked if (m, p) == (method, path))


def page(*items: Json, after: str | None = None) -> Json:
    """A page of a listing."""
    return {"items": list(items), "hasMore": after is not None, "nextPage": after}


def seen(machine_id: str = "ps1", state: str = "ready", **changes: object) -> Json:
    """A machine as the API shows it, as far as anybody reads it."""
    return {
        "id": machine_id,
        "name": NAME,
        "state": state,
        "machineType": "C4",
        "region": "ny2",
        "publicIp": "172.83.0.1",
        "privateIp": "10.0.0.1",
        "dtCreated": "2026-11-30T11:00:00.000Z",
        "dtDeleted": None,
        **changes,
    }


def event(name: str, state: str, machine_id: str = "ps1", error: str | None = None) -> Json:
    """A machine's event."""
    times = {"dtCreated": "2026-11-30T11:30:00.000Z", "dtStarted": "2026-11-30T11:30:01.000Z", "dtFinished": None}
    return {"id": f"{name}-1", "name": name, "state": state, "machineId": machine_id, "error": error, **times}


def an_attempt(**changes: object) -> Attempt:
    """An attempt whose request is fixed."""
    attempt = Attempt(
        cedana_id="i-1",
        job_id="j-1",
        epoch=1,
        provider="paperspace",
        instance_type="C4",
        region="NY2",
        market="on_demand",
        requested_at=NOW,
        launch=LaunchRequest(image_id="t1", disk_gb=50, agent_sha256="", broker_url=""),
    )
    return attempt.model_copy(update=changes)


def an_offer(instance_type: str = "C4", gpus: int = 0) -> Offer:
    """A machine in NY2."""
    return Offer(
        provider="paperspace",
        region="NY2",
        zone="",
        instance_type=instance_type,
        vcpus=2,
        memory_gib=4,
        gpu_count=gpus,
        on_demand_usd_hour=Decimal("0.04"),
    )


def a_provider(answers: Answers, clock: Callable[[], datetime] = lambda: NOW) -> tuple[PaperspaceProvider, ScriptedApi]:
    """The adapter before the answers."""
    api = ScriptedApi(answers)
    return PaperspaceProvider(ProviderContext("test", lambda _attempt: "#!/bin/sh\n", clock), api), api
