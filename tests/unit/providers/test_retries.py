"""Repeats of a call: how often, after which pauses, until when, and what is told at the end."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from spotferry.providers.retries import AskAgain, Deadline, RegionCalls, retry_after
from spotferry.types.errors import ProviderError, ProviderUnavailable
from tests.unit.providers.fake_timing import FakeTiming

BUSY = ProviderUnavailable("Busy", "not now", "r1")


@pytest.fixture
def time() -> FakeTiming:
    """Time that passes by pauses only."""
    return FakeTiming()


def deadline(time: FakeTiming, tries: int | None = 5) -> Deadline:
    """Twenty seconds, of which one try may take two."""
    return Deadline(time.timing(), 20.0, 2.0, tries)


def script(*outcomes: Exception | str) -> Callable[[], str]:
    """A call with these outcomes, one after another; the last one for ever."""
    left = list(outcomes)

    def ask() -> str:
        outcome = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return ask


def test_a_call_is_repeated_until_it_is_answered(time: FakeTiming) -> None:
    """Pauses double while there is no verdict, and the answer is the one that came."""
    ask = script(AskAgain(BUSY), AskAgain(BUSY), "answer")
    assert deadline(time).until_answered(ask, "a call", "r1") == "answer"
    assert time.pauses == [0.5, 1.0]


def test_a_verdict_is_final(time: FakeTiming) -> None:
    """Any other error is passed on at once."""
    refusal = ProviderError("No", "never", "r1")
    with pytest.raises(ProviderError) as caught:
        deadline(time).until_answered(script(refusal, "answer"), "a call", "r1")
    assert (caught.value, time.pauses) == (refusal, [])


def test_the_last_error_is_told_with_its_cause(time: FakeTiming) -> None:
    """After the last try its own error is raised, from the vendor's."""
    vendors = ValueError("odd")
    last = AskAgain(BUSY)
    last.__cause__ = vendors
    with pytest.raises(ProviderUnavailable) as caught:
        deadline(time, tries=3).until_answered(script(last), "a call", "r1")
    assert (caught.value, caught.value.__cause__) == (BUSY, vendors)
    assert time.pauses == [0.5, 1.0]


def test_without_a_count_the_time_ends_it(time: FakeTiming) -> None:
    """No try is begun that could end after the deadline, however many there were."""
    with pytest.raises(ProviderUnavailable):
        deadline(time, tries=None).until_answered(script(AskAgain(BUSY)), "a call", "r1")
    assert time.pauses == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


@pytest.mark.parametrize(("asked", "pauses"), [(0.1, [0.5]), (7, [7.0]), (18, [18.0]), (18.1, [])])
def test_the_pause_is_no_shorter_than_asked_for(time: FakeTiming, asked: float, pauses: list[float]) -> None:
    """A cloud that wants to be left alone is, if there is time for it; else there is no other try."""
    ask = script(AskAgain(BUSY, timedelta(seconds=asked)), ProviderError("No", "never"))
    with pytest.raises(ProviderError):
        deadline(time).until_answered(ask, "a call", "r1")
    assert time.pauses == pauses


def test_a_stale_request_is_sent_anew_once(time: FakeTiming) -> None:
    """At once, and only where it was the first try: then the same words are a verdict."""
    stale = AskAgain(BUSY, once=True)
    assert deadline(time).until_answered(script(stale, "answer"), "a call", "r1") == "answer"
    for outcomes in ((stale, stale, "answer"), (AskAgain(BUSY), stale, "answer")):
        with pytest.raises(ProviderUnavailable):
            deadline(time).until_answered(script(*outcomes), "a call", "r1")
    assert time.pauses == [0.0, 0.0, 0.5]


def test_a_call_without_time_is_not_begun(time: FakeTiming) -> None:
    """The error names the call and the region, and nothing was asked; nor is there time to wait for anything."""
    late = deadline(time)
    assert late.wait(18.0)
    assert not late.wait(0.1)
    time.seconds += 0.1
    with pytest.raises(ProviderUnavailable, match="no time was left for a call") as caught:
        late.until_answered(script("answer"), "a call", "r1")
    assert (caught.value.code, caught.value.region) == ("DeadlineExceeded", "r1")
    assert time.pauses == [18.0]


def test_the_next_batch_has_a_deadline_of_its_own_unless_it_is_one_for_all(time: FakeTiming) -> None:
    """Long listings go on page by page; what is asked of a launch ends together, whoever asks for more time."""
    calls = RegionCalls("r1", deadline(time))
    launch = calls.as_one()
    time.seconds = 19.0
    assert calls.again().deadline.wait(0.0)
    assert not launch.again().again().deadline.wait(0.0)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("17", 17),
        (" 4 ", 4),
        ("0", 0),
        ("0" * 20 + "9", 9),
        ("86401", 86400),
        ("9" * 20, 86400),
        ("9" * 5000, 86400),
        ("", None),
        ("-1", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after_in_seconds(named: str, expected: int | None) -> None:
    """A whole number of seconds is obeyed, a day of them at most; a date, or nothing, names none."""
    assert retry_after({"Retry-After": named}) == (None if expected is None else timedelta(seconds=expected))
    assert retry_after({}) is None
