"""Answers of a REST API, replayed: what a test expects to be asked, and what comes back."""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import urllib3

from spotferry.providers.rest import RestApi
from spotferry.providers.retries import Timing
from spotferry.types.errors import ProviderError

Body = Mapping[str, Any]  # Any: JSON, wrong JSON among it


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    body: Body | bytes = field(default_factory=dict)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_response(self) -> urllib3.HTTPResponse:
        """As urllib3 gives it."""
        data = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return urllib3.HTTPResponse(body=data, status=self.status, headers=dict(self.headers), preload_content=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that was made."""

    path: str
    parameters: Mapping[str, str]
    headers: Mapping[str, str]
    method: str = "GET"
    question: Body = field(default_factory=dict)


class ReplayedPool(urllib3.PoolManager):
    """Connections on which the answers of a script come back; the last one of a path is repeated for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Asked] = []
        self._script: list[tuple[re.Pattern[str], deque[Answer | Exception]]] = []

    def answer(self, target: str, *answers: Answer | Exception) -> None:
        """Give these answers, one after another, to requests whose path with its query matches."""
        self._script.append((re.compile(target), deque(answers)))

    def answer_first(self, target: str, *answers: Answer | Exception) -> None:
        """Give these answers from now on, whatever the script said about the target before."""
        self._script.insert(0, (re.compile(target), deque(answers)))

    def urlopen(  # type: ignore[override] # urllib3's own class overrides it so
        self,
        method: str,
        url: str,
        redirect: bool = True,  # noqa: ARG002, FBT001, FBT002 - urllib3's own signature
        **kw: Any,  # as urllib3 has it
    ) -> urllib3.BaseHTTPResponse:
        """Record the request and answer it."""
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        question = json.loads(kw["body"]) if kw.get("body") else {}
        self.asked.append(Asked(parts.path, query, kw.get("headers") or {}, method, question))
        target = f"{parts.path}?{'&'.join(f'{name}={value}' for name, value in query.items())}"
        for pattern, answers in self._script:
            if pattern.search(target):
                given = answers.popleft() if len(answers) > 1 else answers[0]
                if isinstance(given, Exception):
                    raise given
                return given.as_response()
        raise AssertionError(f"nobody expected {method} {target}")

    def paths(self) -> list[str]:
        """The paths asked for."""
        return [asked.path for asked in self.asked]


@dataclass(slots=True)
class Patience:
    """Time that passes only by waiting."""

    now: float = 0.0
    waits: list[float] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        """Let the time pass."""
        self.waits.append(seconds)
        self.now += seconds

    def timing(self) -> Timing:
        """For an API: chance is at its most."""
        return Timing(monotonic=lambda: self.now, sleep=self.wait, random=lambda: 1.0)


def replayed(pool: ReplayedPool, base: str = "https://api.example", token: str = "") -> RestApi:
    """An API over replayed answers that never really waits."""
    return RestApi(base, (lambda: token) if token else None, pool, Patience().timing())


@contextmanager
def refused(code: str, kind: type[ProviderError] = ProviderError) -> Iterator[None]:
    """Expect a refusal of exactly this class and code."""
    with pytest.raises(ProviderError) as caught:
        yield
    assert (type(caught.value), caught.value.code) == (kind, code)
