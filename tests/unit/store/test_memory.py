"""The levers of the store in memory."""

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from spotferry.domain.view import Decision, View
from spotferry.store.memory import MemoryStore
from spotferry.types.errors import Conflict, NotYet
from spotferry.types.instance import Attempt
from spotferry.types.job import Job, JobState, TimelineEntry

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def entry_of(job: Job) -> TimelineEntry:
    """The entry of the change that led to this job."""
    return TimelineEntry(job_id=job.job_id, revision=job.revision, at=NOW, event="e", from_state="", to_state=job.state)


def decided(view: View, state: JobState) -> Decision:
    """A decision that moves the job to a state."""
    after = view.with_job(revision=view.job.revision + 1, state=state)
    return Decision(after, entry=entry_of(after.job))


@pytest.fixture
def store() -> MemoryStore:
    """A store with one job."""
    made, job = MemoryStore(), Job(job_id="j-1", owner="ann", revision=1, created_at=NOW)
    made.create_job(job, entry_of(job))
    return made


def test_frozen_indexes_are_stale_and_keyed_reads_are_not(store: MemoryStore) -> None:
    """While frozen, lists answer as of the freezing, and records as of now; thawed, both as of now."""
    store.freeze_indexes()
    view = store.load("j-1")
    attempt = Attempt(cedana_id="i-1", job_id="j-1", epoch=1, requested_at=NOW)
    store.save(view, decided(view.with_attempt(attempt), JobState.DONE))
    second = Job(job_id="j-2", owner="ann", revision=1, created_at=NOW)
    store.create_job(second, entry_of(second))
    assert [j.state for j in store.list_jobs("ann", 9).jobs] == [JobState.PENDING]
    assert (list(store.unsettled_jobs()), list(store.living_attempts())) == (["j-1"], [])
    assert store.get_job("j-1").state is JobState.DONE
    store.thaw_indexes()
    assert [j.job_id for j in store.list_jobs("ann", 9).jobs] == ["j-2", "j-1"]
    assert list(store.living_attempts()) == ["i-1"]


def test_saves_conflict_as_often_as_told(store: MemoryStore) -> None:
    """The next saves conflict and write nothing; the one after is made."""
    store.conflict_saves(2)
    view = store.load("j-1")
    for _ in range(2):
        with pytest.raises(Conflict):
            store.save(view, decided(view, JobState.DONE))
    assert store.load("j-1") == view
    store.save(view, decided(view, JobState.DONE))
    assert store.get_job("j-1").state is JobState.DONE


def test_a_lost_answer_is_a_save_that_was_made(store: MemoryStore) -> None:
    """A save that fails after it was written is there, and its repeat conflicts."""
    error = NotYet("lost", NOW - NOW)
    store.fail_saves(error, after_write=True)
    view = store.load("j-1")
    with pytest.raises(NotYet):
        store.save(view, decided(view, JobState.DONE))
    assert store.get_job("j-1").state is JobState.DONE
    with pytest.raises(Conflict):
        store.save(view, decided(view, JobState.DONE))


def test_faults_come_in_the_order_they_were_asked_for(store: MemoryStore) -> None:
    """Several faults are served first to last, one a save, and a save that writes nothing uses none up."""
    store.fail_saves(NotYet("first", NOW - NOW))
    store.conflict_saves()
    view = store.load("j-1")
    store.save(view, Decision(view))
    with pytest.raises(NotYet):
        store.save(view, decided(view, JobState.DONE))
    with pytest.raises(Conflict):
        store.save(view, decided(view, JobState.DONE))
    store.save(view, decided(view, JobState.DONE))


def test_threads_never_both_win(store: MemoryStore) -> None:
    """Threads that are switched at every step of theirs still save one after the other: one winner a revision."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def saves(_: int) -> int:
        won = 0
        for _ in range(25):
            view = store.load("j-1")
            try:
                store.save(view, decided(view, JobState.RUNNING))
            except Conflict:
                continue
            won += 1
        return won

    try:
        with ThreadPoolExecutor(8) as pool:
            won = sum(pool.map(saves, range(8)))
    finally:
        sys.setswitchinterval(interval)
    assert store.get_job("j-1").revision == 1 + won
    assert len(store.timeline("j-1")) == 1 + won
