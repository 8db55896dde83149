"""Paperspace's refusals: every line of the tables, and what stands above them."""

import re

import httpx
import pytest

from spotferry.providers.paperspace.errors import (
    LAUNCH_CODES,
    LAUNCH_WORDS,
    NO_CREDENTIALS,
    VENDOR_ERRORS,
    Failure,
    call_error,
    event_error,
    launch_error,
)
from spotferry.providers.verdict import Verdict
from spotferry.types.errors import (
    CapacityError,
    LaunchRefused,
    ProviderError,
    ProviderUnavailable,
    SkipProvider,
    TryAgainLater,
    TryNextRegion,
    TryNextType,
    UnknownLaunchError,
)

SAID: dict[str, tuple[type[CapacityError], str]] = {
    "We are currently out of capacity for the selected VM type. Try again": (TryNextRegion, "pool"),
    "There is not enough capacity": (TryNextRegion, "pool"),
    "This machine type is out of stock": (TryNextRegion, "pool"),
    "No GPUs are available": (TryNextRegion, "pool"),
    "The machine type is temporarily unavailable": (TryNextRegion, "pool"),
    "A5000 is not available in this region": (TryNextRegion, "pool"),
    "Machine type A5000 isn't supported": (TryNextRegion, "pool"),
    "Unknown machine type X1": (TryNextRegion, "pool"),
    "H100 requires approval before you can use it": (TryNextType, "family"),
    "Machines of this type are not enabled for your team": (TryNextType, "family"),
    "The limit of machines for your team has been reached": (TryNextType, "family"),
    "You have exceeded your quota": (TryNextType, "family"),
    "Your account has an outstanding balance": (SkipProvider, "provider"),
    "Your team is not allowed to use the region NY2": (TryNextRegion, "region"),
    "Region ca1: access denied": (TryNextRegion, "region"),
    "Template t0 was not found": (LaunchRefused, "region"),
}
"""One message at least for each expression, and what a launch that is refused with it is."""


def _answer(message: str, status: int = 400, code: str = "BAD_REQUEST") -> Failure:
    return Failure(code, message, status)


@pytest.mark.parametrize(("message", "expected"), SAID.items())
def test_the_words_of_a_refused_launch(message: str, expected: tuple[type[CapacityError], str]) -> None:
    """What the message says decides, whatever the code; code, words and region are kept."""
    for status, code in ((400, "BAD_REQUEST"), (403, "FORBIDDEN"), (500, "INTERNAL_SERVER_ERROR")):
        error = launch_error(_answer(message, status, code), "NY2")
        assert isinstance(error, CapacityError)
        assert (type(error), error.scope) == expected
        assert (error.code, error.message, error.region) == (code, message, "NY2")


def test_every_expression_is_said_by_some_message() -> None:
    """No line of the table is untested, and none is hidden behind another one."""
    decided = {next(p for p in LAUNCH_WORDS if re.search(p, message.lower())) for message in SAID}
    assert decided == set(LAUNCH_WORDS)


@pytest.mark.parametrize(("code", "verdict"), LAUNCH_CODES.items())
def test_the_codes_of_a_refused_launch(code: str, verdict: Verdict) -> None:
    """Where the words say nothing the code decides; what is no verdict is told as none."""
    error = launch_error(_answer("no", 400, code), "NY2")
    if verdict.error is TryAgainLater:
        assert isinstance(error, ProviderUnavailable)
        return
    assert isinstance(error, CapacityError)
    assert (type(error), error.scope, error.ban_for) == (verdict.error, verdict.scope, verdict.ban_for)


def test_an_unknown_code_is_kept() -> None:
    """A code that no table knows sets the pool aside, with the cloud's words."""
    error = launch_error(_answer("whatever that means", 418, "TEAPOT"), "NY2")
    assert isinstance(error, UnknownLaunchError)
    assert (error.code, error.message, error.scope) == ("TEAPOT", "whatever that means", "pool")


def test_a_throttled_launch_is_asked_again_later() -> None:
    """It was certainly not carried out, so nothing is looked up and nothing banned."""
    error = launch_error(_answer("limit reached", 429, "TOO_MANY_REQUESTS"), "NY2")
    assert isinstance(error, TryAgainLater)
    assert error.scope == "none"


@pytest.mark.parametrize("failure", [Failure("ReadTimeout", "", lost=True), _answer("oops", 502, "502")])
def test_a_launch_without_an_answer_is_no_verdict(failure: Failure) -> None:
    """The machine may be there: only looking it up decides."""
    assert isinstance(launch_error(failure, "NY2"), ProviderUnavailable)


def test_a_jobs_own_template_closes_nothing() -> None:
    """What is wrong with the job's own image is no trouble of other jobs."""
    error = launch_error(_answer("Template t0 was not found"), "NY2", own_image=True)
    assert isinstance(error, LaunchRefused)
    assert error.scope == "none"


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (_answer("no", 401, "UNAUTHORIZED"), SkipProvider),
        (_answer("no", 403, "FORBIDDEN"), SkipProvider),
        (_answer("The region ny2 is not permitted", 403, "FORBIDDEN"), TryNextRegion),
        (Failure(NO_CREDENTIALS, "there is no secret"), SkipProvider),
        (_answer("no", 404, "NOT_FOUND"), ProviderError),
        (_answer("no", 429, "429"), ProviderUnavailable),
        (_answer("no", 408, "TIMEOUT"), ProviderUnavailable),
        (_answer("no", 503, "503"), ProviderUnavailable),
        (Failure("ConnectError", "", lost=True), ProviderUnavailable),
    ],
)
def test_the_failure_of_another_call(failure: Failure, expected: type[ProviderError]) -> None:
    """Denied, closed for one region, without a verdict, or just refused."""
    assert type(call_error(failure, "NY2")) is expected


def test_the_error_of_a_create_event() -> None:
    """An accepted launch that came to nothing is told by words alone; without any it is a shortage, never a wait."""
    shortage = event_error("Out of capacity for P4000", "NY2")
    assert isinstance(shortage, TryNextRegion)
    assert shortage.scope == "pool"
    silent = event_error("", "NY2")
    assert isinstance(silent, TryNextRegion)
    assert silent.ban_for > silent.ban_for * 0
    assert isinstance(event_error("template is broken", "NY2", own_image=True), LaunchRefused)


def test_every_exception_of_the_client_is_known() -> None:
    """Whatever the client raises is one of the vendor's errors that the adapter catches."""
    raised = [httpx.ConnectTimeout, httpx.ReadError, httpx.RemoteProtocolError, httpx.InvalidURL, httpx.ResponseNotRead]
    assert all(issubclass(error, VENDOR_ERRORS) for error in raised)
