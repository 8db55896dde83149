"""A broker in this process, and a way to run the command against it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from cli.main import main
from cli.settings import Settings

URL = "https://broker.example"
Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


@dataclass
class FakeBroker:
    """Answers each `METHOD /path` with what it was given, the last answer for ever; records what it was asked."""

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[httpx.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def on(self, call: str, *answers: Answer | Mapping[str, object]) -> None:
        """Answer a call, such as "GET /jobs"; a mapping is a 200 with that JSON."""
        self.answers[call] = [httpx.Response(200, json=a) if isinstance(a, Mapping) else a for a in answers]

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        self.asked.append(request)
        self.bodies.append(request.read())
        waiting = self.answers.get(f"{request.method} {request.url.raw_path.decode().partition('?')[0]}")
        if not waiting:
            return problem(404, "no such thing")
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            return answer(request)
        stream = httpx.ByteStream(answer.content)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=stream)

    def calls(self) -> list[str]:
        """What was asked, in order."""
        return [f"{request.method} {request.url.path}" for request in self.asked]

    def settings(self) -> Settings:
        """Settings that lead to this broker and do not wait."""
        return Settings(url=URL, transport=httpx.MockTransport(self.handle), sleep=self.pauses.append)


def problem(status: int, detail: str, *errors: Mapping[str, object]) -> httpx.Response:
    """A problem document."""
    body = {"type": "about:blank", "title": "Problem", "status": status, "detail": detail, "errors": list(errors)}
    return httpx.Response(status, content=json.dumps(body), headers={"content-type": "application/problem+json"})


Run = Callable[..., Result]


@pytest.fixture
def make_problem() -> Callable[..., httpx.Response]:
    """Makes problem documents."""
    return problem


@pytest.fixture
def broker() -> FakeBroker:
    """A broker that knows nothing yet."""
    return FakeBroker()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's own settings, and an empty folder to work in."""
    for name in (
        "SPOTFERRY_URL",
        "SPOTFERRY_AUTH",
        "SPOTFERRY_TOKEN",
        "SPOTFERRY_STATE_DIR",
        "AWS_REGION",
        "AWS_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(broker: FakeBroker) -> Run:
    """Runs the command against the broker: `run("list", "--json")`."""

    def run_command(*args: str | Path, **options: Any) -> Result:  # Any: options of CliRunner.invoke
        words = ["--url", URL, *map(str, args)]
        return CliRunner().invoke(main, words, obj=broker.settings(), catch_exceptions=False, **options)

    return run_command


@pytest.fixture
def job() -> dict[str, object]:
    """A job as the broker shows it."""
    machine = {
        "instance_id": "i-2",
        "provider": "aws",
        "region": "us-east-1",
        "zone": "us-east-1b",
        "instance_type": "m5.large",
        "market": "spot",
        "price_usd_hour": 0.035,
        "state": "running",
    }
    attempt = {
        **machine,
        "epoch": 2,
        "phase": "ready",
        "seconds": 90,
        "cost_usd": 0.0009,
        "end_reason": "",
        "allocated_id": "i-0b",
    }
    lost = {
        **attempt,
        "epoch": 1,
        "instance_id": "i-1",
        "zone": "us-east-1a",
        "state": "terminated",
        "end_reason": "taken back",
    }
    return {
        "job_id": "j-1",
        "name": "nightly",
        "project": "",
        "state": "RUNNING",
        "reason": "",
        "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:05:05Z",
        "exit_code": None,
        "interruptions": 1,
        "checkpoint": 1,
        "machine": machine,
        "instances": [lost, attempt],
        "cost_usd": 0.0018,
        "on_demand_cost_usd": 0.006,
        "deadline": None,
        "parent_job_id": "",
        "job_file": {},
    }
