"""What Paperspace's refusals mean, as data: words and codes -> what to try next, how far, how long.

The only place that knows a vendor's exception: everything above sees `spotferry.types.errors`.

The API documents its errors as `{"code", "message", "issues"}` and lists no codes. That form, and the codes that were
seen, are those of tRPC's OpenAPI server: a code says the HTTP status in a word, the cause is in the message. So the
words come first, and a code decides where they say nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import httpx

from spotferry.providers.verdict import (
    DENIED,
    REGION_CLOSED,
    REGION_WRONG,
    REQUEST_WRONG,
    UNKNOWN,
    WAIT,
    Verdict,
)
from spotferry.types.errors import (
    CapacityError,
    LaunchRefused,
    ProviderError,
    ProviderUnavailable,
    TryNextRegion,
    TryNextType,
)

VENDOR_ERRORS = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)
"""All that a call through the client may raise; they have no base class in common."""
VendorError = httpx.HTTPError | httpx.InvalidURL | httpx.StreamError

NO_CREDENTIALS = "MissingCredentials"
MALFORMED = "MalformedAnswer"
"""Codes of our own: there is no key to call with; the answer is not what the API promises."""


_NO_CAPACITY = Verdict(TryNextRegion, "pool", timedelta(minutes=3))
_NOT_OFFERED = Verdict(TryNextRegion, "pool", timedelta(hours=24))
_NEEDS_APPROVAL = Verdict(TryNextType, "family", timedelta(hours=24))
_LIMIT_REACHED = Verdict(TryNextType, "family", timedelta(minutes=10))
_IMAGE_WRONG = Verdict(LaunchRefused, "region", timedelta(hours=1))

LAUNCH_WORDS: Mapping[str, Verdict] = {
    # "We are currently out of capacity for the selected VM type": Paperspace/gradient-cli#327.
    r"out of capacity|no capacity|insufficient capacity|not enough capacity": _NO_CAPACITY,
    r"out of stock|sold out|no (machines|hosts|gpus) (are )?available": _NO_CAPACITY,
    r"(currently|temporarily) unavailable": _NO_CAPACITY,
    r"(not|isn't) (available|supported|offered|valid) (in|for) (this|the|that) region": _NOT_OFFERED,
    r"machine ?type .*(not|isn't) (available|supported)|(invalid|unknown|no such) machine ?type": _NOT_OFFERED,
    # The limits page of the machines: some types are only sold after a request was approved.
    r"(requires?|needs?|without|pending) approval|request access": _NEEDS_APPROVAL,
    r"not (been )?enabled for your (team|account)": _NEEDS_APPROVAL,
    r"(limit|quota|maximum number).*(reached|exceeded)": _LIMIT_REACHED,
    r"(reached|exceeded|over).*(limit|quota|maximum)": _LIMIT_REACHED,
    # A balance that is not paid stops every launch: support.paperspace.com, "outstanding balance".
    r"outstanding balance|payment|billing|credit card|suspended|deactivated account": DENIED,
    r"(denied|not allowed|forbidden|not permitted).*\bregion\b": REGION_CLOSED,
    r"\bregion\b.*(denied|not allowed|forbidden|not permitted)": REGION_CLOSED,
    r"\btemplate\b": _IMAGE_WRONG,
}
"""Expressions for the message of a refused launch, in lower case; the first that is found decides."""

LAUNCH_CODES: Mapping[str, Verdict] = {
    "BAD_REQUEST": REGION_WRONG,
    "PARSE_ERROR": REGION_WRONG,
    "NOT_FOUND": REGION_WRONG,
    "CONFLICT": REGION_WRONG,
    "PRECONDITION_FAILED": REGION_WRONG,
    "PAYLOAD_TOO_LARGE": REGION_WRONG,
    "METHOD_NOT_SUPPORTED": REGION_WRONG,
    "UNPROCESSABLE_CONTENT": REGION_WRONG,
    "UNAUTHORIZED": DENIED,
    "FORBIDDEN": DENIED,
    "PAYMENT_REQUIRED": DENIED,
    NO_CREDENTIALS: DENIED,
    "TOO_MANY_REQUESTS": WAIT,
    "TIMEOUT": WAIT,
    "CLIENT_CLOSED_REQUEST": WAIT,
    "INTERNAL_SERVER_ERROR": WAIT,
    "BAD_GATEWAY": WAIT,
    "SERVICE_UNAVAILABLE": WAIT,
    "GATEWAY_TIMEOUT": WAIT,
}
"""Exact codes, for messages whose words say nothing."""

THROTTLED_STATUS = 429
_DENIED_STATUSES = frozenset({401, 402, 403})
_NO_VERDICT_STATUS = 500
_TIMEOUT_STATUS = 408
_NO_VERDICT_CODES = frozenset(code for code, verdict in LAUNCH_CODES.items() if verdict is WAIT)


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed, in Paperspace's own words.

    Attributes:
        code: its code; the HTTP status where it gave none; the name of the client's exception when no answer came.
        message: the words with it.
        status: the HTTP status; 0 when no answer came.
        lost: no answer came, or none that could be read: the call may have been carried out.
    """

    code: str
    message: str
    status: int = 0
    lost: bool = False

    @property
    def throttled(self) -> bool:
        """It was not carried out, because there were too many calls."""
        return self.status == THROTTLED_STATUS

    @property
    def undecided(self) -> bool:
        """There is no verdict: it may or may not have been carried out, and may succeed another time."""
        silent = self.lost or self.throttled or self.status == _TIMEOUT_STATUS
        return silent or self.status >= _NO_VERDICT_STATUS or self.code in _NO_VERDICT_CODES


def call_error(failure: Failure, region: str) -> ProviderError:
    """The exception to raise for a failed call that is no launch; the code and the words are kept."""
    if failure.undecided:
        return ProviderUnavailable(failure.code, failure.message, region)
    if failure.code == NO_CREDENTIALS or failure.status in _DENIED_STATUSES:
        verdict = _words_of(failure) if failure.status else None
        return (verdict if verdict is REGION_CLOSED else DENIED).error_of(failure, region)
    return ProviderError(failure.code, failure.message, region)


def launch_error(failure: Failure, region: str, *, own_image: bool = False) -> ProviderError:
    """The exception to raise for a launch that failed; the code and the words are kept.

    Args:
        failure: of the call.
        region: of the launch.
        own_image: the job named its image itself: what is wrong with it closes nothing to other jobs.
    """
    if failure.undecided and not failure.throttled and _words_of(failure) is None:
        # It may have made the machine: only looking it up decides.
        return ProviderUnavailable(failure.code, failure.message, region)
    verdict = _words_of(failure) or _code_of(failure)
    return (REQUEST_WRONG if own_image and verdict is _IMAGE_WRONG else verdict).error_of(failure, region)


def event_error(message: str, region: str, *, own_image: bool = False) -> CapacityError:
    """Why a launch that was accepted came to nothing, from the error that its event tells: only words."""
    failure = Failure("create", message)
    verdict = _words_of(failure) or _NO_CAPACITY
    return (REQUEST_WRONG if own_image and verdict is _IMAGE_WRONG else verdict).error_of(failure, region)


def _words_of(failure: Failure) -> Verdict | None:
    """The verdict that the message's words ask for; a throttled call is throttled, whatever it says."""
    words = failure.message.lower()
    if failure.throttled or failure.lost:
        return None
    return next((verdict for pattern, verdict in LAUNCH_WORDS.items() if re.search(pattern, words)), None)


def _code_of(failure: Failure) -> Verdict:
    if failure.throttled:
        return WAIT
    if failure.status in _DENIED_STATUSES:
        return DENIED
    return LAUNCH_CODES.get(failure.code, UNKNOWN)
