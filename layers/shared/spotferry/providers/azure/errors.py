"""What Azure's refusals mean: the words of a failed call or operation -> the error to raise.

The only place that knows the SDK's exceptions: everything above sees `spotferry.types.errors`. The tables are in
`verdicts`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    DecodeError,
    HttpResponseError,
    IncompleteReadError,
)

from spotferry.providers.azure.verdicts import TRANSIENT, is_of_the_image, verdict_of
from spotferry.providers.retries import retry_after
from spotferry.providers.verdict import DENIED, REGION_CLOSED, REQUEST_WRONG, UNKNOWN, WAIT, Verdict
from spotferry.types.errors import CapacityError, ProviderError, ProviderUnavailable

VENDOR_ERRORS = (AzureError,)
"""All that a call through the SDK raises on purpose."""
MALFORMED = (AttributeError, KeyError, TypeError, ValueError)
"""What the SDK raises when an answer is not what the API promises."""
MALFORMED_ANSWER = "MalformedAnswer"
_UNREADABLE = (DecodeError, IncompleteReadError)
"""What it raises when an answer broke off, or is none of its kind."""

_SERVER_ERRORS = 500
_THROTTLED, _NOT_AUTHENTICATED, _NOT_FOUND, _PRECONDITION_FAILED = 429, 401, 404, 412
_THERE_ALREADY = frozenset({"PreconditionFailed", "PropertyChangeNotAllowed"})
"""Codes of a PUT that would have changed a machine."""
_DEPTH = 4
"""How deep an error nests its real cause at most."""
_WRAPPERS = frozenset({"DeploymentFailed", "ResourceOperationFailure", "ResourceDeploymentFailure", "VMExtensionError"})
"""Codes that only say that something failed; the first of their details says what."""
_LONGEST_WORDS = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed, in Azure's own words.

    Attributes:
        code: Azure's code, or the name of the SDK's exception when no answer came.
        message: the words with it.
        status: the HTTP status; 0 when no answer came.
        retry_after: how long Azure asks to be left alone; zero when it does not say.
        lost: no answer came, or none that could be read: the call may have been carried out.
    """

    code: str
    message: str
    status: int = 0
    retry_after: timedelta = timedelta(0)
    lost: bool = False

    @property
    def transient(self) -> bool:
        """The same request may get over it; a verdict is final, whatever its status."""
        if self.lost or self.status == _THROTTLED or self.code in TRANSIENT:
            return True
        return self.status >= _SERVER_ERRORS and verdict_of(self.code, self.message) is None

    @property
    def not_found(self) -> bool:
        """There is no such thing."""
        return self.status == _NOT_FOUND

    @property
    def exists(self) -> bool:
        """The machine that was to be made is there already."""
        return self.status == _PRECONDITION_FAILED or self.code in _THERE_ALREADY


def failure_of(error: Exception) -> Failure:
    """What the SDK's exception says."""
    # Any: the SDK's response types differ by transport; all of them have `status_code`, `headers` and `text`.
    response: Any = error.response if isinstance(error, HttpResponseError) else None
    if response is not None and not isinstance(error, _UNREADABLE):
        status = int(response.status_code or 0)
        code, message = words_of(_body(response))
        return Failure(
            code or (ClientAuthenticationError.__name__ if status == _NOT_AUTHENTICATED else str(status)),
            message or f"HTTP {status}",
            status,
            retry_after(response.headers) or timedelta(0),
        )
    if isinstance(error, AzureError):
        # Credentials are asked for before anything is sent; every other silence may have been heard.
        lost = not isinstance(error, ClientAuthenticationError)
        return Failure(type(error).__name__, str(error.message)[:_LONGEST_WORDS], lost=lost)
    return Failure(MALFORMED_ANSWER, f"{type(error).__name__}: {error}"[:_LONGEST_WORDS], lost=True)


def words_of(body: object) -> tuple[str, str]:
    """Code and message of an error as Azure writes them, of its real cause where it is wrapped; "" for none."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return "", str(error or "")[:_LONGEST_WORDS]
    for _ in range(_DEPTH):
        details = error.get("details")
        first = details[0] if isinstance(details, list) and details else None
        if error.get("code") not in _WRAPPERS or not isinstance(first, Mapping):
            break
        error = first
    return str(error.get("code") or ""), str(error.get("message") or "")[:_LONGEST_WORDS]


def launch_error(failure: Failure, region: str, *, own_image: bool = False) -> ProviderError:
    """The exception to raise for a launch that was not accepted; the code and the words are kept.

    Args:
        failure: of the call.
        region: of the launch.
        own_image: the job named its image itself: what is wrong with it closes nothing to other jobs.
    """
    if failure.lost:
        return ProviderUnavailable(failure.code, failure.message, region)
    if own_image and is_of_the_image(failure.code, failure.message):
        return REQUEST_WRONG.error_of(failure, region)
    if failure.transient:
        return WAIT.error_of(failure, region)
    return _verdict(failure).error_of(failure, region)


def operation_error(code: str, message: str, region: str, *, own_image: bool = False) -> CapacityError:
    """Why a launch that was accepted came to nothing.

    The same request would bring the same failed machine back: what is transient for a call sets the pool aside here.
    """
    failure = Failure(code or "Unknown", message)
    if own_image and is_of_the_image(failure.code, failure.message):
        return REQUEST_WRONG.error_of(failure, region)
    return (verdict_of(failure.code, failure.message, accepted=True) or UNKNOWN).error_of(failure, region)


def call_error(failure: Failure, region: str) -> ProviderError:
    """The exception to raise for any other call: denials keep their class, the rest has none that a placement needs."""
    if failure.transient:
        return ProviderUnavailable(failure.code, failure.message, region)
    verdict = _verdict(failure)
    if verdict in {DENIED, REGION_CLOSED}:
        return verdict.error_of(failure, region)
    return ProviderError(failure.code, failure.message, region)


class NotThere(ProviderError):
    """There is no such thing, nor a group that could hold it."""


def missing_or_error(failure: Failure, region: str) -> ProviderError:
    """As `call_error`; NotThere where the question was about a thing that there is none of."""
    if failure.not_found:
        return NotThere(failure.code, failure.message, region)
    return call_error(failure, region)


def _verdict(failure: Failure) -> Verdict:
    known = verdict_of(failure.code, failure.message)
    if known is None and (failure.status == _NOT_AUTHENTICATED or failure.code == ClientAuthenticationError.__name__):
        return DENIED
    return known or UNKNOWN


# Any: as above.
def _body(response: Any) -> object:
    try:
        return json.loads(response.text())
    except (ValueError, AzureError):
        return None
