"""Keys and cursors."""

from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.store.cursors import Position, read_cursor, write_cursor
from spotferry.store.keys import SHARDS, is_key, parse_sortable, shard_of, sortable
from spotferry.types.errors import InvalidInput

TIMES = st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(TIMES, TIMES)
def test_sortable_texts_compare_as_times(one: datetime, other: datetime) -> None:
    """Text order is time order, and the time comes back."""
    assert (sortable(one) < sortable(other)) == (one < other)
    assert parse_sortable(sortable(one)) == one


def test_sortable_texts_are_in_utc() -> None:
    """One moment has one text, whatever zone it was told in."""
    moment = datetime(2026, 5, 4, 12, tzinfo=UTC)
    assert sortable(moment.astimezone(timezone(timedelta(hours=9)))) == sortable(moment)


def test_jobs_spread_over_the_shards() -> None:
    """No partition takes much more than its part, and a job's partition never changes."""
    counts = Counter(shard_of(f"j-{n}") for n in range(4000))
    assert set(counts) == set(SHARDS)
    assert max(counts.values()) < 1.3 * 4000 / len(SHARDS)
    assert shard_of("j-1") == "4"


@given(st.text())
def test_any_text_may_be_asked_for(text: str) -> None:
    """What can be a record's key is told for every text, without an error."""
    assert isinstance(is_key(text), bool)


@given(st.text(), TIMES, st.uuids())
def test_a_cursor_comes_back(owner: str, at: datetime, job_id: object) -> None:
    """A cursor that a list gave out opens at the same place."""
    position = Position(owner, sortable(at), f"j-{job_id}")
    assert read_cursor(owner, write_cursor(position)) == position


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    """Whatever a person sends as a cursor is refused by name or opens the list it is of."""
    with pytest.raises(InvalidInput, match="cursor"):
        read_cursor("ann", text)
