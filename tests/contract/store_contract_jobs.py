"""What every store promises about jobs: create, read, load, list."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from spotferry.types.errors import Conflict, InvalidInput, NotFound
from spotferry.types.job import JobState
from spotferry.types.job_file import Commands, JobFile
from tests.contract.store_records import (
    NOW,
    SHA,
    Contract,
    Store,
    World,
    change,
    create,
    entry_of,
    gone,
    ids_of,
    only_attempt,
    with_attempts,
)


class JobContract(Contract):
    """Jobs: create, read, load, list."""

    def test_a_job_comes_back_as_it_was_written(self, store: Store, world: World) -> None:
        """Every field of a job survives, unicode and money included."""
        spec = JobFile.model_validate(
            {"task": {"run": "echo 'größer ✓'"}, "name": "Zürich 🚢", "instance_specs": {"max_price_usd_hour": "0.35"},
             "labels": {"team": "日本"}, "env": {"A": '"x"\n'}}
        )  # fmt: skip
        job = world.job(
            spec=spec, reason="día", next_try_at=NOW, body_sha256=SHA, upload={"sha256": SHA, "size_bytes": 1}
        )
        store.create_job(job, entry_of(job))
        assert store.get_job(world.job_id) == job

    def test_creating_a_job_twice_conflicts(self, store: Store, world: World) -> None:
        """A job's id is taken once; the first job stays as it is."""
        create(store, world.job(reason="first"))
        with pytest.raises(Conflict):
            store.create_job(world.job(reason="second"), entry_of(world.job(), "again"))
        assert store.get_job(world.job_id).reason == "first"
        assert [e.message for e in store.timeline(world.job_id)] == ["accepted"]

    def test_creating_a_job_again_at_another_revision_conflicts(self, store: Store, world: World) -> None:
        """The id alone decides: a job that has moved on is not made anew either."""
        view = change(store, create(store, world.job()), reason="moved on")
        again = world.job(revision=9)
        with pytest.raises(Conflict):
            store.create_job(again, entry_of(again))
        assert store.load(world.job_id) == view
        assert len(store.timeline(world.job_id)) == 2

    def test_a_job_can_be_read_at_once(self, store: Store, world: World) -> None:
        """A new job is loaded with the first entry of its timeline, no attempt, and revision 1."""
        view = create(store, world.job())
        assert (view.job, dict(view.attempts)) == (world.job(), {})
        assert [e.revision for e in store.timeline(world.job_id)] == [1]

    @pytest.mark.parametrize("job_id", ["j-none", "", "register#regions", "a\nb", "x" * 5000, "\ud800"])
    def test_a_job_that_is_not_there_is_not_found(self, store: Store, job_id: str) -> None:
        """Whatever text a person asks with, the answer is NotFound or nothing, never another error."""
        with pytest.raises(NotFound):
            store.get_job(job_id)
        with pytest.raises(NotFound):
            store.load(job_id)
        with pytest.raises(NotFound):
            store.get_attempt(job_id)
        with pytest.raises(NotFound):
            store.attempts_of(job_id)
        with pytest.raises(NotFound):
            store.get_checkpoint(job_id, 1)
        assert (store.watched_until(job_id), [*store.timeline(job_id)], [*store.checkpoints(job_id)]) == (None, [], [])

    def test_load_brings_the_open_attempts(self, store: Store, world: World) -> None:
        """A view holds the open attempts by id, and owner and successor are found in it."""
        view = with_attempts(store, world, world.attempt(1), world.attempt(2))
        view = change(store, view, successor_id=world.attempt(2).cedana_id)
        assert dict(view.attempts) == {a.cedana_id: a for a in (world.attempt(1), world.attempt(2))}
        assert (view.owner, view.successor) == (world.attempt(1), world.attempt(2))

    def test_load_leaves_closed_attempts_out_unless_asked(self, store: Store, world: World) -> None:
        """The attempt that an event is about is in the view even when it is closed."""
        attempt = world.attempt()
        view = change(store, with_attempts(store, world, attempt), gone(attempt), open_attempts=())
        assert dict(view.attempts) == {}
        assert dict(store.load(world.job_id, attempt.cedana_id).attempts) == {attempt.cedana_id: gone(attempt)}

    def test_load_refuses_an_attempt_of_another_job(self, store: Store, world: World) -> None:
        """An attempt that is missing or of another job is NotFound."""
        with_attempts(store, world, world.attempt())
        other = World()
        with_attempts(store, other, other.attempt())
        for instance_id in (other.attempt().cedana_id, "i-none", "", "a#b"):
            with pytest.raises(NotFound):
                store.load(world.job_id, instance_id)

    def test_a_view_carries_the_stores_policy(self, store: Store, world: World) -> None:
        """The policy of a view is the deployment's, whatever was in the view that was saved."""
        view = create(store, world.job())
        changed = replace(view, policy=replace(view.policy, boot=timedelta(days=9)))
        assert change(store, changed).policy == view.policy

    def test_lists_are_the_owners_newest_first(self, store: Store, world: World) -> None:
        """A list holds the owner's jobs only, the newest first."""
        ids = [f"{world.job_id}-{n}" for n in range(3)]
        for n, job_id in enumerate(ids):
            create(store, world.job(job_id=job_id, created_at=NOW + timedelta(microseconds=n)))
        create(store, World().job())
        page = store.list_jobs(world.owner, 10)
        assert (ids_of(page.jobs), page.cursor) == (ids[::-1], None)
        assert store.list_jobs("nobody", 10).jobs == store.list_jobs("", 10).jobs == []

    def test_pages_hold_every_job_once(self, store: Store, world: World) -> None:
        """Paging by a hundred reaches every job once, those of one moment too; the last page has no cursor."""
        made = [f"{world.job_id}-{n:03}" for n in range(205)]
        with ThreadPoolExecutor(4) as pool:
            for job_id in made:
                job = world.job(job_id=job_id, created_at=NOW + timedelta(seconds=int(job_id[-3:]) // 2))
                pool.submit(store.create_job, job, entry_of(job))
        first = store.list_jobs(world.owner, 100)
        second = store.list_jobs(world.owner, 100, first.cursor)
        third = store.list_jobs(world.owner, 100, second.cursor)
        assert [len(p.jobs) for p in (first, second, third)] == [100, 100, 5]
        jobs = [*first.jobs, *second.jobs, *third.jobs]
        assert sorted(ids_of(jobs)) == made
        times = [j.created_at for j in jobs if j.created_at is not None]
        assert times == sorted(times, reverse=True)
        assert third.cursor is None

    def test_a_full_last_page_has_no_cursor(self, store: Store, world: World) -> None:
        """Nobody is sent to an empty page."""
        create(store, world.job())
        assert store.list_jobs(world.owner, 1).cursor is None

    @pytest.mark.parametrize("cursor", ["", "x", "é", "bnVsbA", "WzEsMiwzLDRd", "W10", "eyJhIjoxfQ", "[" * 3000])
    def test_a_foreign_cursor_is_refused(self, store: Store, world: World, cursor: str) -> None:
        """A cursor that no list gave out is the caller's mistake."""
        with pytest.raises(InvalidInput, match="cursor"):
            store.list_jobs(world.owner, 10, cursor)

    def test_another_owners_cursor_is_refused(self, store: Store, world: World) -> None:
        """A cursor opens the list that gave it out, no other."""
        for n in range(2):
            create(store, world.job(job_id=f"{world.job_id}-{n}"))
        cursor = store.list_jobs(world.owner, 1).cursor
        assert cursor is not None
        with pytest.raises(InvalidInput, match="cursor"):
            store.list_jobs("mallory", 1, cursor)

    def test_a_page_of_nothing_is_refused(self, store: Store, world: World) -> None:
        """A limit below one is the caller's mistake."""
        with pytest.raises(InvalidInput, match="limit"):
            store.list_jobs(world.owner, 0)

    def test_lists_show_the_latest_state(self, store: Store, world: World) -> None:
        """A list holds whole jobs as last saved."""
        view = change(store, create(store, world.job()), state=JobState.FAILED, reason="why")
        assert store.list_jobs(world.owner, 1).jobs == [view.job]

    def test_a_job_without_a_creation_time_is_listed_by_its_first_entry(self, store: Store, world: World) -> None:
        """Every job of an owner is in the list."""
        create(store, world.job(created_at=None))
        assert ids_of(store.list_jobs(world.owner, 1).jobs) == [world.job_id]

    def test_unsettled_jobs_are_listed_until_they_are_settled(self, store: Store, world: World) -> None:
        """A final job stays in the list while a machine of its may live, and leaves it with the last one."""
        attempt = world.attempt()
        view = create(store, world.job())
        assert world.job_id in set(store.unsettled_jobs())
        view = change(store, view, attempt, state=JobState.DONE, open_attempts=(attempt.cedana_id,))
        assert world.job_id in set(store.unsettled_jobs())
        change(store, view, gone(attempt), open_attempts=())
        assert world.job_id not in set(store.unsettled_jobs())

    def test_a_new_job_that_is_final_is_not_unsettled(self, store: Store, world: World) -> None:
        """A job that is settled from the start never enters the list."""
        create(store, world.job(state=JobState.FAILED))
        assert world.job_id not in set(store.unsettled_jobs())

    def test_an_unsettled_list_holds_each_job_once(self, store: Store, world: World) -> None:
        """All partitions are read, each job of them once."""
        ids = {f"{world.job_id}-{n}" for n in range(40)}
        for job_id in ids:
            create(store, world.job(job_id=job_id))
        listed = [i for i in store.unsettled_jobs() if i in ids]
        assert sorted(listed) == sorted(ids)

    def test_watching_keeps_the_latest_end(self, store: Store, world: World) -> None:
        """Of several followers the one who stays longest counts; nobody at first; no job is made by watching one."""
        create(store, world.job())
        assert store.watched_until(world.job_id) is None
        for seconds in (20, 30, 10):
            store.watch_job(world.job_id, NOW + timedelta(seconds=seconds))
        assert store.watched_until(world.job_id) == NOW + timedelta(seconds=30)
        store.watch_job("j-none", NOW)
        assert store.watched_until("j-none") is None

    def test_a_large_job_fits(self, store: Store, world: World) -> None:
        """A job file of 64 KB and a plan of 20 KB are stored and come back."""
        job = world.job(spec=JobFile(task=Commands(run=("x" * 65_536,))))
        plan = {"next": [{"type": "m5.large", "price": "0.1", "n": n, "f": 0.1} for n in range(400)]}
        assert len(str(plan)) > 20_000
        attempt = world.attempt(plan=plan)
        view = change(store, create(store, job), attempt, open_attempts=(attempt.cedana_id,))
        assert view.job.spec == job.spec
        assert only_attempt(view) == attempt
