"""What every store promises about saves: all or nothing, on the revision that was loaded."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from spotferry.domain.view import Decision, View
from spotferry.types.errors import Conflict, NotFound
from tests.builders import NOW
from tests.contract.store_records import (
    WRITERS,
    Contract,
    Store,
    World,
    change,
    create,
    decision,
    entry_of,
    with_attempts,
)


class SaveContract(Contract):
    """A save: all or nothing, on the revision that was loaded."""

    def test_a_save_writes_all_that_changed(self, store: Store, world: World) -> None:
        """Job, attempt, entry and checkpoint are there after a save."""
        before, attempt, checkpoint = create(store, world.job()), world.attempt(), world.checkpoint()
        decided = decision(before, attempt, checkpoint=checkpoint, message="go", open_attempts=(attempt.cedana_id,))
        decided = replace(decided, view=decided.view.with_job(checkpoint=1))
        store.save(before, decided)
        view = store.load(world.job_id)
        assert (view.job, dict(view.attempts)) == (decided.view.job, {attempt.cedana_id: attempt})
        assert [e.message for e in store.timeline(world.job_id)] == ["accepted", "go"]
        assert store.checkpoints(world.job_id) == [checkpoint]

    def test_a_job_may_begin_with_checkpoints(self, store: Store, world: World) -> None:
        """They are there with the job, newest first; the job's own are numbered on, and none is written twice."""
        points = [world.checkpoint(3), world.checkpoint(2)]
        store.create_job(world.job(checkpoint=3), entry_of(world.job()), points)
        assert store.checkpoints(world.job_id) == points
        before = store.load(world.job_id)
        store.save(before, decision(before, checkpoint=world.checkpoint(4)))
        assert [point.number for point in store.checkpoints(world.job_id)] == [4, 3, 2]
        with pytest.raises(Conflict):
            store.create_job(world.job(), entry_of(world.job()), [world.checkpoint(1)])
        assert [point.number for point in store.checkpoints(world.job_id)] == [4, 3, 2]

    def test_a_pruned_checkpoint_is_noted_once(self, store: Store, world: World) -> None:
        """It stays in the list with the time at which its objects went; one that is not there is left so."""
        view = create(store, world.job())
        store.save(view, decision(view, checkpoint=world.checkpoint(1)))
        store.note_pruned(world.job_id, 1, NOW)
        store.note_pruned(world.job_id, 1, NOW + timedelta(hours=1))
        store.note_pruned(world.job_id, 2, NOW)
        store.note_pruned("no-such-job", 1, NOW)
        (checkpoint,) = store.checkpoints(world.job_id)
        assert checkpoint == world.checkpoint(1).model_copy(update={"pruned_at": NOW})
        assert store.get_checkpoint(world.job_id, 1) == checkpoint

    def test_a_decision_without_an_entry_writes_nothing(self, store: Store, world: World) -> None:
        """Nothing was decided, so nothing is written, whatever the view says."""
        view = create(store, world.job())
        store.save(view, Decision(view.with_job(reason="other").with_attempt(world.attempt())))
        assert store.load(world.job_id) == view
        with pytest.raises(NotFound):
            store.get_attempt(world.attempt().cedana_id)

    def test_a_save_on_an_old_revision_conflicts(self, store: Store, world: World) -> None:
        """Who comes second loses, and nothing of theirs is written: no attempt, entry, checkpoint or cloud id."""
        before = create(store, world.job())
        change(store, before, reason="first")
        attempt = world.attempt(allocated_id="i-1")
        with pytest.raises(Conflict):
            store.save(before, decision(before, attempt, checkpoint=world.checkpoint(), reason="second"))
        assert store.get_job(world.job_id).reason == "first"
        assert len(store.timeline(world.job_id)) == 2
        assert store.checkpoints(world.job_id) == []
        assert store.find_attempt(world.provider, "us-east-1", "i-1") is None
        assert attempt.cedana_id not in set(store.living_attempts())
        with pytest.raises(NotFound):
            store.get_attempt(attempt.cedana_id)

    def test_a_save_on_a_revision_that_never_was_conflicts(self, store: Store, world: World) -> None:
        """A view that is ahead of the stored job is as wrong as one that is behind it."""
        view = create(store, world.job())
        ahead = view.with_job(revision=5)
        with pytest.raises(Conflict):
            store.save(ahead, decision(ahead, reason="ahead"))
        assert store.load(world.job_id) == view
        assert len(store.timeline(world.job_id)) == 1

    def test_a_checkpoint_that_exists_stops_the_whole_save(self, store: Store, world: World) -> None:
        """A checkpoint is written once, and a save that would repeat it changes nothing else either."""
        first, attempt = world.checkpoint(), world.attempt()
        view = create(store, world.job())
        store.save(view, decision(view, checkpoint=first))
        view = store.load(world.job_id)
        again = first.model_copy(update={"manifest_key": "other"})
        with pytest.raises(Conflict):
            store.save(view, decision(view, attempt, checkpoint=again, reason="again"))
        assert store.load(world.job_id) == view
        assert store.get_checkpoint(world.job_id, 1) == first
        assert len(store.timeline(world.job_id)) == 2
        with pytest.raises(NotFound):
            store.get_attempt(attempt.cedana_id)

    def test_an_attempt_that_exists_stops_the_whole_save(self, store: Store, world: World) -> None:
        """A new attempt never takes another's place."""
        other, view = World(), create(store, world.job())
        taken = other.attempt()
        with_attempts(store, other, taken)
        with pytest.raises(Conflict):
            store.save(view, decision(view, world.attempt(cedana_id=taken.cedana_id), reason="again"))
        assert store.load(world.job_id) == view
        assert store.get_attempt(taken.cedana_id) == taken

    def test_a_save_of_a_job_that_was_never_made_conflicts(self, store: Store, world: World) -> None:
        """No save makes a job."""
        view = View(world.job())
        with pytest.raises(Conflict):
            store.save(view, decision(view))
        with pytest.raises(NotFound):
            store.get_job(world.job_id)

    def test_of_concurrent_saves_exactly_one_wins(self, store: Store, world: World) -> None:
        """Of many saves over one revision one is made and all others conflict; only the winner's records exist."""
        before = create(store, world.job())

        def save(n: int) -> bool:
            try:
                store.save(before, decision(before, world.attempt(n), message=str(n), reason=str(n)))
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(save, range(WRITERS)))
        assert won.count(True) == 1
        winner = str(won.index(True))
        assert store.get_job(world.job_id).reason == winner
        assert [e.message for e in store.timeline(world.job_id)] == ["accepted", winner]
        living = set(store.living_attempts())
        assert [world.attempt(n).cedana_id in living for n in range(WRITERS)] == won

    def test_of_concurrent_creations_exactly_one_wins(self, store: Store, world: World) -> None:
        """A job that is submitted many times at once is made once."""

        def make(n: int) -> bool:
            job = world.job(reason=str(n))
            try:
                store.create_job(job, entry_of(job))
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(WRITERS) as pool:
            won = list(pool.map(make, range(WRITERS)))
        assert won.count(True) == 1
        assert store.get_job(world.job_id).reason == str(won.index(True))

    def test_saves_in_a_row_lose_nothing(self, store: Store, world: World) -> None:
        """Writers that load again after a conflict get all their changes in, one a revision."""
        create(store, world.job())

        def add_one(_: int) -> None:
            while True:
                view = store.load(world.job_id)
                try:
                    store.save(view, decision(view, interruptions=view.job.interruptions + 1))
                except Conflict:
                    continue
                return

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(add_one, range(9)))
        job = store.get_job(world.job_id)
        assert (job.interruptions, job.revision) == (9, 10)
        assert [e.revision for e in store.timeline(world.job_id)] == list(range(1, 11))

    def test_a_decision_must_raise_the_revision_by_one(self, store: Store, world: World) -> None:
        """A decision that would break the chain of revisions is a bug, told at once, and writes nothing."""
        view = create(store, world.job())
        for step in (0, 2):
            after = view.with_job(revision=view.job.revision + step)
            with pytest.raises(AssertionError):
                store.save(view, Decision(after, entry=entry_of(after.job)))
        assert store.load(world.job_id) == view

    def test_timeline_keys_are_the_jobs_revisions(self, store: Store, world: World) -> None:
        """The history is in order of revision, past ten too, with the figures it was given."""
        view = create(store, world.job())
        for n in range(12):
            decided = decision(view, message=f"step {n} ✓")
            assert decided.entry is not None
            entry = decided.entry.model_copy(update={"data": {"price": "0.10", "codes": [1, None, True], "f": 1.5}})
            store.save(view, replace(decided, entry=entry))
            view = store.load(world.job_id)
        entries = store.timeline(world.job_id)
        assert [e.revision for e in entries] == list(range(1, 14))
        assert (entries[12].message, entries[12].data) == (
            "step 11 ✓",
            {"price": "0.10", "codes": [1, None, True], "f": 1.5},
        )

    def test_checkpoints_are_newest_first(self, store: Store, world: World) -> None:
        """The newest checkpoint comes first, past ten too, and each is read by its number."""
        view = create(store, world.job())
        for number in range(1, 12):
            store.save(view, decision(view, checkpoint=world.checkpoint(number)))
            view = store.load(world.job_id)
        assert [c.number for c in store.checkpoints(world.job_id)] == list(range(11, 0, -1))
        assert store.get_checkpoint(world.job_id, 11) == world.checkpoint(11)

    @pytest.mark.parametrize("number", [0, 2, -1, 10**60])
    def test_a_checkpoint_that_is_not_there_is_not_found(self, store: Store, world: World, number: int) -> None:
        """Any other number is NotFound."""
        view = create(store, world.job())
        store.save(view, decision(view, checkpoint=world.checkpoint()))
        with pytest.raises(NotFound):
            store.get_checkpoint(world.job_id, number)
