"""The broker's HTTP API, as the commands speak to it."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import click
import httpx

from cli.answers import explain
from cli.auth import authentication
from cli.endpoint import broker_url
from cli.errors import Failed, Unreachable
from cli.settings import Settings, settings

TRIES = 4
LONGEST_PAUSE_SECONDS = 20.0
TIMEOUT = httpx.Timeout(35.0, connect=10.0)
"""Longer than the broker's own limit of 29 seconds, so that its answer is heard."""
BUSY = frozenset({429, 500, 502, 503, 504})


class Api:
    """Speaks to one broker.

    Args:
        url: its address.
        auth: what goes with each request.
        transport: what carries the requests; None for the network.
        sleep: waits between two tries.
    """

    def __init__(
        self,
        url: str,
        auth: httpx.Auth | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._sleep = sleep or Settings().sleep
        self._client = httpx.Client(auth=auth, transport=transport, timeout=TIMEOUT)

    def request(
        self,
        method: str,
        path: str,
        json: object = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str | int] | None = None,
        *,
        repeatable: bool | None = None,
    ) -> Any:  # Any: JSON, whose shape the path decides
        """The broker's answer, as JSON.

        A request that may be repeated (GET, PUT, one with an Idempotency-Key, or one said to be `repeatable`) is
        repeated while the broker is busy; another only when it was never heard.

        Raises:
            UsageProblem: the broker refused the input (4xx); the text names the field.
            Unreachable: no answer, or the broker is in trouble.
            Failed: the broker does not let us in, or what answers is no broker.
        """
        if repeatable is None:
            repeatable = method in {"GET", "PUT"} or "Idempotency-Key" in (headers or {})
        request = {"json": json, "headers": headers, "params": params}
        for tries_left in reversed(range(TRIES)):
            answer, again = self._try(method, path, request, repeatable=repeatable)
            if not again or tries_left == 0:
                break
            self._sleep(_pause(answer, TRIES - tries_left))
        if isinstance(answer, httpx.TransportError):
            raise _not_heard(self.url, answer) from answer
        if answer.is_success:
            return _as_json(answer)
        raise explain(answer)

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def _try(
        self,
        method: str,
        path: str,
        request: Mapping[str, Any],  # Any: httpx's own keyword arguments
        *,
        repeatable: bool,
    ) -> tuple[httpx.Response | httpx.TransportError, bool]:
        """The answer, or why there is none; and whether to ask again."""
        try:
            answer = self._client.request(method, self.url + path, **request)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            return error, True
        except httpx.TransportError as error:
            return error, repeatable
        except (httpx.InvalidURL, UnicodeError, ValueError) as error:
            raise Failed(f"{self.url}{path} cannot be asked for: {error}") from error
        return answer, answer.status_code == httpx.codes.TOO_MANY_REQUESTS or (
            repeatable and answer.status_code in BUSY
        )


def broker() -> Api:
    """The broker that this run of the command speaks to.

    Raises:
        NoBroker: nobody said where it is.
    """
    now = settings()
    url = broker_url(now)
    api = Api(url, authentication(now.auth, url), now.transport, now.sleep)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(api.close)
    return api


def _pause(answer: httpx.Response | httpx.TransportError, tries: int) -> float:
    """Growing pauses, spread so that many callers do not come back at once; as the broker asks, if it does."""
    asked = answer.headers.get("Retry-After", "") if isinstance(answer, httpx.Response) else ""
    if asked.isdecimal():
        return min(float(asked), LONGEST_PAUSE_SECONDS)
    return float(0.25 * 2**tries) * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load, keeps no secret)


def _not_heard(url: str, error: httpx.TransportError) -> Unreachable:
    reason = str(error) or type(error).__name__
    return Unreachable(
        f"the broker at {url} does not answer ({reason}); check the address (--url, SPOTFERRY_URL) and the network,"
        " or see `spotferry local status` if it should run here"
    )


def _as_json(answer: httpx.Response) -> Any:  # Any: see `request`
    if not answer.content:
        return {}
    try:
        return answer.json()
    except ValueError as error:
        raise Failed(f"{answer.url} answered something that is not JSON; is this the broker's address?") from error
