"""Calls to Paperspace's API, version 1: JSON over HTTPS, repeated within a deadline, errors of ours only.

Described at https://docs.digitalocean.com/reference/paperspace/api-reference/ and by the OpenAPI document behind it.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import httpx

from spotferry.providers.paperspace.credentials import ApiKey, endpoint
from spotferry.providers.paperspace.errors import (
    MALFORMED,
    NO_CREDENTIALS,
    VENDOR_ERRORS,
    Failure,
    VendorError,
    call_error,
)
from spotferry.providers.retries import TOTAL_SECONDS, AskAgain, Deadline, RegionCalls, Timing
from spotferry.types.errors import Misconfigured, ProviderError, ProviderUnavailable

# Any: JSON as the API gives it; whoever reads a field checks it.
Json = Mapping[str, Any]
Method = Literal["GET", "POST", "PATCH", "DELETE"]

CONNECT_SECONDS = 2.0
READ_SECONDS = 7.0
PAGE = 120
"""The most items of a page."""
_MESSAGE_CHARACTERS = 500


class PaperspaceApi:
    """One client for the process, made on first use; safe to share between threads.

    Args:
        key: gives the API key when it is needed.
        url: of the API; the environment's, or Paperspace's own, where none is given.
        timing: time and chance.
    """

    def __init__(self, key: ApiKey, url: str = "", timing: Timing | None = None) -> None:
        self._key = key
        self._url = url.rstrip("/") or endpoint()
        self._timing = timing or Timing()
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None

    def begin(self, region: str = "") -> "Calls":
        """Calls that belong together: their deadline runs from now."""
        return Calls(region, Deadline(self._timing, TOTAL_SECONDS, CONNECT_SECONDS + READ_SECONDS), self)

    def send(self, method: Method, path: str, parameters: Mapping[str, str], body: Json | None) -> httpx.Response:
        """One try.

        Raises:
            Misconfigured: there is no key.
            httpx.HTTPError, httpx.InvalidURL: no answer.
        """
        headers = {"Authorization": f"Bearer {self._key()}", "Accept": "application/json"}
        address = f"{self._url}{path}"
        answer = self._connected().request(method, address, params=parameters, json=body, headers=headers)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            self._key.forget()
        return answer

    def _connected(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
                # The environment's proxies and .netrc are not ours to follow with a key in hand.
                self._client = httpx.Client(timeout=timeout, trust_env=False)
            return self._client


@dataclass(frozen=True, slots=True)
class Calls(RegionCalls):
    """Calls that end together before the deadline; `region` is named in their errors."""

    api: PaperspaceApi

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Json:
        """The object at a path.

        Raises:
            ProviderUnavailable: throttled, failing, unreachable, slow beyond the deadline, or no JSON object.
            SkipProvider, TryNextRegion: we may not.
            ProviderError: any other refusal.
        """
        return self._call("GET", path, parameters or {}, None)

    def post(self, path: str, body: Json, refusal: Callable[[Failure, str], ProviderError] = call_error) -> Json:
        """Make something; raises as `get` does, or what `refusal` makes of a failure. Only repeated when throttled."""
        return self._call("POST", path, {}, body, refusal)

    def patch(self, path: str) -> Json:
        """Order something that may be ordered twice; raises as `get` does."""
        return self._call("PATCH", path, {}, None)

    def delete(self, path: str) -> Json:
        """Delete something; raises as `get` does. What is gone already is no error."""
        try:
            return self._call("DELETE", path, {}, None)
        except ProviderError as error:
            if not is_gone(error):
                raise
            return {}

    def _call(
        self,
        method: Method,
        path: str,
        parameters: Mapping[str, str],
        body: Json | None,
        refusal: Callable[[Failure, str], ProviderError] = call_error,
    ) -> Json:
        def once() -> Json:
            answer, failure = self._try(method, path, parameters, body)
            if failure is None:
                return answer
            # Something made twice would be two: a call that makes anything is repeated only where it was certainly not
            # carried out.
            repeatable = failure.throttled or (failure.undecided and method != "POST")
            told = refusal(failure, self.region)
            raise AskAgain(told) if repeatable else told

        return self.deadline.until_answered(once, f"{method} {path}", self.region)

    def _try(
        self, method: Method, path: str, parameters: Mapping[str, str], body: Json | None
    ) -> tuple[Json, Failure | None]:
        try:
            answer = self.api.send(method, path, parameters, body)
        except Misconfigured as error:
            return {}, Failure(NO_CREDENTIALS, f"no credentials for Paperspace: {error}")
        except VENDOR_ERRORS as error:
            return {}, _no_answer(error)
        return _read(answer)


def is_gone(error: ProviderError) -> bool:
    """The API does not know what was asked about."""
    return error.code in {"NOT_FOUND", "404"}


def pages(calls: Calls, path: str, parameters: Mapping[str, str]) -> Iterator[Json]:
    """The items of a listing, page after page, each with a deadline of its own.

    Raises:
        ProviderError: a page failed, or is not what the API promises; what came before it is not the whole.
    """
    asked = {**parameters, "limit": str(PAGE)}
    while True:
        answer = calls.get(path, asked)
        items, more = answer.get("items"), answer.get("hasMore")
        if not isinstance(items, list) or not isinstance(more, bool) or not all(isinstance(i, dict) for i in items):
            raise ProviderUnavailable(MALFORMED, f"GET {path} answered without a list of items", calls.region)
        yield from items
        if not more:
            return
        following = answer.get("nextPage")
        if not following or following == asked.get("after"):
            raise ProviderUnavailable(MALFORMED, f"GET {path} has more pages and does not name the next", calls.region)
        asked["after"] = str(following)
        calls = calls.again()


def text_of(item: Json, key: str, region: str) -> str:
    """A text that every item of its kind has.

    Raises:
        ProviderUnavailable: this one has it not, so that nothing can be concluded from it.
    """
    value = item.get(key)
    if not isinstance(value, str) or not value:
        raise ProviderUnavailable(MALFORMED, f"Paperspace told of something without its {key!r}", region)
    return value


def _no_answer(error: VendorError) -> Failure:
    return Failure(type(error).__name__, str(error)[:_MESSAGE_CHARACTERS], lost=True)


def _read(answer: httpx.Response) -> tuple[Json, Failure | None]:
    """The object in an answer, or what is wrong with it."""
    try:
        body = answer.json() if answer.content else {}
    except ValueError:
        body = None
    if answer.is_success and isinstance(body, dict) and (body or answer.status_code == httpx.codes.NO_CONTENT):
        return body, None
    if answer.is_success:
        words = f"{answer.request.method} {answer.request.url.path} answered no JSON object"
        return {}, Failure(MALFORMED, words, answer.status_code, lost=True)
    said = body if isinstance(body, dict) else {}
    code = said.get("code")
    message = str(said.get("message") or f"HTTP {answer.status_code}")
    words = "; ".join([message, *_issues(said)])[:_MESSAGE_CHARACTERS]
    return {}, Failure(code if isinstance(code, str) and code else str(answer.status_code), words, answer.status_code)


def _issues(said: Json) -> list[str]:
    issues = said.get("issues")
    found = issues if isinstance(issues, list) else []
    return [str(issue["message"]) for issue in found if isinstance(issue, dict) and issue.get("message")]
