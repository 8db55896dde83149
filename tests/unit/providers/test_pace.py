"""Repeats of a call: how often, after which pauses, until when, and what is told at the end."""

import math
from collections.abc import Callable
from datetime import timedelta

import pytest

from spotferry.providers.pace import AskAgain, Deadline, retry_after
from spotferry.types.errors import ProviderError, ProviderUnavailable
from tests.unit.providers.fake_pace import FakePace

BUSY = ProviderUnavailable("Busy", "not now", "r1")


@pytest.fixture
def time() -> FakePace:
    """Time that passes by pauses only."""
    return FakePace()


def deadline(time: FakePace, tries: float = 5) -> Deadline:
    """Twenty seconds, of which one try may take two."""
    return Deadline(time.pace(), 20.0, 2.0, tries)


def script(*outcomes: Exception | str) -> Callable[[], str]:
    """A call with these outcomes, one after another; the last one for ever."""
    left = list(outcomes)

    def ask() -> str:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return ask


def test_a_call_is_repeated_until_it_is_answered(time: FakePace) -> None:
    """Pauses double while there is no verdict, and the answer is the one that came."""
    ask = script(AskAgain(BUSY), AskAgain(BUSY), "answer")
    assert deadline(time).until_answered(ask, "a call", "r1") == "answer"
    assert time.pauses == [0.5, 1.0]


def test_a_verdict_is_final(time: FakePace) -> None:
    """Any other error is passed on at once."""
    refusal = ProviderError("No", "never", "r1")
    with pytest.raises(ProviderError) as caught:
        deadline(time).until_answered(script(refusal, "answer"), "a call", "r1")
    assert (caught.value, time.pauses) == (refusal, [])


def test_the_last_error_is_told_with_its_cause(time: FakePace) -> None:
    """After the last try its own error is raised, from the vendor's."""
    vendors = ValueError("odd")
    last = AskAgain(BUSY)
    last.__cause__ = vendors
    with pytest.raises(ProviderUnavailable) as caught:
        deadline(time, tries=3).until_answered(script(last), "a call", "r1")
    assert (caught.value, caught.value.__cause__) == (BUSY, vendors)
    assert time.pauses == [0.5, 1.0]


def test_without_a_count_the_time_ends_it(time: FakePace) -> None:
    """No try is begun that could end after the deadline, however many there were."""
    with pytest.raises(ProviderUnavailable):
        deadline(time, tries=math.inf).until_answered(script(AskAgain(BUSY)), "a call", "r1")
    assert time.pauses == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


@pytest.mark.parametrize(("asked", "pauses"), [(0.1, [0.5]), (7, [7.0]), (18, [18.0]), (18.1, [])])
def test_the_pause_is_no_shorter_than_asked_for(time: FakePace, asked: float, pauses: list[float]) -> None:
    """A cloud that wants to be left alone is, if there is time for it; else there is no other try."""
    ask = script(AskAgain(BUSY, timedelta(seconds=asked)), ProviderError("No", "never"))
    with pytest.raises(ProviderError):
        deadline(time).until_answered(ask, "a call", "r1")
    assert time.pauses == pauses


def test_a_stale_request_is_sent_anew_once(time: FakePace) -> None:
    """At once, and only where it was the first try: then the same words are a verdict."""
    stale = AskAgain(BUSY, once=True)
    assert deadline(time).until_answered(script(stale, "answer"), "a call", "r1") == "answer"
    for outcomes in ((stale, stale, "answer"), (AskAgain(BUSY), stale, "answer")):
        with pytest.raises(ProviderUnavailable):
            deadline(time).until_answered(script(*outcomes), "a call", "r1")
    assert time.pauses == [0.0, 0.0, 0.5]


def test_a_call_without_time_is_not_begun(time: FakePace) -> None:
    """The error names the call and the region, and nothing was asked; nor is there time to wait for anything."""
    late = deadline(time)
    assert late.wait(18.0)
    assert not late.wait(0.1)
    time.seconds += 0.1
    with pytest.raises(ProviderUnavailable, match="no time was left for a call") as caught:
        late.until_answered(script("answer"), "a call", "r1")
    assert (caught.value.code, caught.value.region) == ("DeadlineExceeded", "r1")
    assert time.pauses == [18.0]


@pytest.mark.parametrize(
    ("named", "expected"),
    [("17", 17), (" 4 ", 4), ("0", 0), ("", None), ("-1", None), ("Wed, 21 Oct 2026 07:28:00 GMT", None)],
)
def test_retry_after_in_seconds(named: str, expected: int | None) -> None:
    """A whole number of seconds is obeyed; a date, or nothing, names none."""
    assert retry_after({"Retry-After": named}) == (None if expected is None else timedelta(seconds=expected))
    assert retry_after({}) is None
