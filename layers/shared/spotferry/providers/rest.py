"""Reading JSON from a cloud's REST API: retries within a deadline, throttling obeyed, errors of our own.

For price lists and their like, which are only read. urllib3 comes with the AWS SDK, so it costs the layers nothing.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit, urlunsplit

import urllib3

from spotferry.providers.retries import AskAgain, Deadline, Timing, retry_after
from spotferry.types.errors import ProviderError, ProviderUnavailable

Json: TypeAlias = Mapping[str, Any]
"""A JSON object as an API gives it; Any: whoever reads a field checks it. Numbers with a point are Decimal."""

PATIENCE = timedelta(seconds=90)
"""How long one answer may take to come, pauses and repeats included."""
THROTTLED_PAUSE = timedelta(seconds=3)
"""The least pause after a 429 that names none."""
_LONGEST_PAUSE_SECONDS = 20.0
_CONNECT_SECONDS = 5.0
_READ_SECONDS = 30.0
_SERVER_ERRORS = 500
_CONNECTIONS = 8
_THROTTLED_REASONS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "RATE_LIMIT_EXCEEDED"})
"""Reasons that a cloud gives with a 403 when it means 429; what it counts, it counts by the minute."""


def connection_pool() -> urllib3.PoolManager:
    """Connections that threads may share; each host keeps as many as regions are read at once."""
    return urllib3.PoolManager(
        maxsize=_CONNECTIONS, timeout=urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS)
    )


@dataclass(frozen=True, slots=True)
class RestApi:
    """One API of a cloud; safe to use from many threads.

    Attributes:
        base: the address that paths are appended to; without a slash at its end.
        token: gives the bearer token for a request, fresh enough to use; None where the API asks for none.
        pool: the connections.
        timing: time and chance.
    """

    base: str
    token: Callable[[], str] | None = None
    pool: urllib3.PoolManager = field(default_factory=connection_pool)
    timing: Timing = field(default_factory=Timing)

    def get(self, path: str, parameters: Mapping[str, str] | None = None, region: str = "") -> Json:
        """The object at a path.

        Args:
            path: begins with "/".
            parameters: of the query.
            region: named in errors.

        Raises:
            ProviderUnavailable: no verdict within `PATIENCE`: no connection, throttled, 5xx, or an answer that is no
                JSON object.
            ProviderError: the API refused, with its own code.
        """
        query = f"?{urlencode(parameters)}" if parameters else ""
        return self._until_answered("GET", f"{self.base}{path}{query}", region)

    def query(self, path: str, question: Json, region: str = "") -> Json:
        """The answer to a question that is posted to a path and changes nothing, so that it may be repeated.

        Raises:
            ProviderError: as `get`.
        """
        return self._until_answered("POST", f"{self.base}{path}", region, json.dumps(question).encode())

    def follow(self, link: str, region: str = "") -> Json:
        """The object at a link that the API itself gave.

        Raises:
            ProviderError: as `get`; also when the link leads to another host, which would get our token.
        """
        ours, theirs = urlsplit(self.base), urlsplit(link)
        if theirs.hostname != ours.hostname:
            raise ProviderError("ForeignLink", f"the next page's link leads elsewhere: {link[:200]}", region)
        return self._until_answered(
            "GET", urlunsplit((ours.scheme, ours.netloc, theirs.path, theirs.query, "")), region
        )

    def _until_answered(self, method: str, url: str, region: str, body: bytes | None = None) -> Json:
        # A try that hangs may outlast the deadline: these calls have no function's patience to keep within.
        deadline = Deadline(self.timing, PATIENCE.total_seconds(), 0.0, None, _LONGEST_PAUSE_SECONDS)
        return deadline.until_answered(lambda: self._ask(method, url, region, body), method, region)

    def _ask(self, method: str, url: str, region: str, question: bytes | None) -> Json:
        headers = {"Accept": "application/json"}
        if question is not None:
            headers["Content-Type"] = "application/json"
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token()}"
        try:
            answer = self.pool.request(method, url, body=question, headers=headers, retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise AskAgain(ProviderUnavailable(type(error).__name__, f"{self.base}: {error}", region)) from error
        if answer.status != HTTPStatus.OK:
            raise _refusal(answer, region)
        body = _object(answer.data)
        if body is None:
            raise AskAgain(ProviderUnavailable("InvalidAnswer", f"{self.base} answered no JSON object", region))
        return body


def _object(data: bytes) -> Json | None:
    try:
        body = json.loads(data, parse_float=Decimal)
    except ValueError:
        return None
    return body if isinstance(body, dict) else None


def _refusal(answer: urllib3.BaseHTTPResponse, region: str) -> Exception:
    code, message = _words(_object(answer.data) or {}, answer.status)
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS or code in _THROTTLED_REASONS:
        named = retry_after(answer.headers)
        return AskAgain(ProviderUnavailable(code, message, region), THROTTLED_PAUSE if named is None else named)
    if answer.status >= _SERVER_ERRORS or answer.status == HTTPStatus.REQUEST_TIMEOUT:
        return AskAgain(ProviderUnavailable(code, message, region), retry_after(answer.headers) or timedelta(0))
    return ProviderError(code, message, region)


def _words(body: Json, status: int) -> tuple[str, str]:
    """The code and the message of an error, as Google's and Microsoft's APIs write them."""
    error = body.get("error") or body.get("Error") or {}
    if not isinstance(error, dict):
        return str(status), str(error)[:500]
    reasons = error.get("errors")
    first = reasons[0] if isinstance(reasons, list) and reasons and isinstance(reasons[0], dict) else {}
    code = first.get("reason") or error.get("status") or error.get("code") or error.get("Code") or status
    message = error.get("message") or error.get("Message") or f"HTTP {status}"
    return str(code), str(message)[:500]
