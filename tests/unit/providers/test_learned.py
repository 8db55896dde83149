"""What adapters learned of images is asked for again in time."""

from datetime import UTC, datetime, timedelta

import pytest

from spotferry.providers.learned import FRESH_FOR, Learned

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        """The time that it was set to."""
        return self.now


def test_what_was_learned_is_kept_while_it_is_fresh() -> None:
    """Each key is looked up once, and again when its own value has grown old."""
    clock, asked = Clock(), list[str]()
    learned: Learned[str, int] = Learned(clock)

    def look(key: str) -> int:
        asked.append(key)
        return len(asked)

    def get(key: str) -> int:
        return learned.get(key, lambda: look(key))

    assert [get("a"), get("a")] == [1, 1]
    clock.now += timedelta(seconds=1)
    assert get("b") == 2
    clock.now = NOW + FRESH_FOR
    assert [get("a"), get("b")] == [3, 2]


def test_what_failed_is_not_kept() -> None:
    """The next who asks may be luckier."""
    learned: Learned[str, int] = Learned(Clock())

    def fail() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        learned.get("a", fail)
    assert learned.get("a", lambda: 1) == 1
