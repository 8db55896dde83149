"""What a decision changes."""

from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from spotferry.domain.view import Decision, View
from spotferry.store.changes import Changes, changes_of
from spotferry.types.instance import Attempt, AttemptPhase
from spotferry.types.job import Job, TimelineEntry

NOW = datetime(2026, 5, 4, tzinfo=UTC)
ONE = Attempt(cedana_id="i-1", job_id="j-1", epoch=1, requested_at=NOW)
TWO = Attempt(cedana_id="i-2", job_id="j-1", epoch=2, requested_at=NOW, allocated_id="i-cloud2")
BEFORE = View(Job(job_id="j-1", revision=3), MappingProxyType({"i-1": ONE, "i-2": TWO}))


def changed(*attempts: Attempt) -> Changes:
    """The changes of a decision that answers with these attempts."""
    after = BEFORE.with_job(revision=4)
    for attempt in attempts:
        after = after.with_attempt(attempt)
    entry = TimelineEntry(job_id="j-1", revision=4, at=NOW, event="e", from_state="", to_state="")
    changes = changes_of(BEFORE, Decision(after, entry=entry))
    assert changes is not None
    return changes


def test_what_is_the_same_is_not_written() -> None:
    """Attempts that the decision left alone, or that differ by the agent's marks alone, are no changes."""
    changes = changed(ONE.model_copy(update={"last_seen": NOW, "agent_key_sha256": "k"}))
    assert (changes.created, changes.updated, changes.allocated) == ([], [], [])
    assert (changes.revision, changes.job.revision) == (3, 4)


def test_new_and_changed_attempts_are_told_apart() -> None:
    """A new attempt must not exist yet, a changed one must."""
    three = Attempt(cedana_id="i-3", job_id="j-1", epoch=3, requested_at=NOW)
    ready = ONE.model_copy(update={"phase": AttemptPhase.READY})
    changes = changed(three, ready)
    assert (changes.created, changes.updated) == ([three], [ready])


def test_a_cloud_id_counts_when_it_is_new() -> None:
    """The cloud's id is noted when it comes or changes, not with each later change of the attempt."""
    came = ONE.model_copy(update={"allocated_id": "i-cloud1"})
    later = TWO.model_copy(update={"phase": AttemptPhase.READY})
    other = TWO.model_copy(update={"allocated_id": "i-cloud3"})
    born = Attempt(cedana_id="i-3", job_id="j-1", epoch=3, requested_at=NOW, allocated_id="i-cloud3")
    assert changed(came, later).allocated == [came]
    assert changed(other).allocated == [other]
    assert changed(born).allocated == [born]


@pytest.mark.parametrize("job_id", ["j-2", ""])
def test_an_attempt_of_another_job_is_a_bug(job_id: str) -> None:
    """A save never writes another job's attempt."""
    with pytest.raises(AssertionError):
        changed(ONE.model_copy(update={"job_id": job_id}))
