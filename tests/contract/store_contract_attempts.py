"""What every store promises about attempts, and about bans of pools."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.types.errors import InvalidInput, NotFound
from spotferry.types.instance import AttemptPhase
from spotferry.types.job import JobState
from tests.contract.store_records import (
    NOW,
    WRITERS,
    Contract,
    Store,
    World,
    a_launch,
    change,
    create,
    gone,
    only_attempt,
    with_attempts,
)


class AttemptContract(Contract):
    """Attempts: reads, indexes, the agent's marks."""

    def test_an_attempt_comes_back_as_it_was_written(self, store: Store, world: World) -> None:
        """Every field survives: those outside the seed's JSON, exact money, the plan, the launch request."""
        attempt = world.attempt(
            tag="tag ✓",
            allocated_id="i-1",
            price=Decimal("0.12345678901234567890"),
            plan={"a": [1, {"b": None}], "p": "0.1"},
            launch=a_launch(),
            disk_usd_hour=Decimal("0.0030"),
            phase=AttemptPhase.HELD,
            held_because="setup",
            notice_deadline=NOW,
            id=7,
            vcpus=0.25,
            gpus='{"Gpus": []}',
        )
        with_attempts(store, world, attempt)
        found = store.get_attempt(attempt.cedana_id)
        assert found == attempt
        assert str(found.price) == str(attempt.price)

    def test_a_changed_attempt_is_saved(self, store: Store, world: World) -> None:
        """A save replaces what it changed of an attempt, also by nothing."""
        view = with_attempts(store, world, world.attempt(tag="old"))
        changed = world.attempt(tag="", phase=AttemptPhase.READY, price=Decimal("0.04"), ip_address="10.0.0.1")
        assert only_attempt(change(store, view, changed)) == changed

    def test_attempts_of_a_job_are_oldest_first(self, store: Store, world: World) -> None:
        """All attempts come in the order of the job's own list, closed ones too."""
        attempts = [world.attempt(n) for n in (3, 1, 12, 2)]
        view = with_attempts(store, world, *attempts)
        change(store, view, gone(attempts[0]), open_attempts=())
        assert store.attempts_of(world.job_id) == [gone(attempts[0]), *attempts[1:]]

    def test_a_job_may_have_many_attempts(self, store: Store, world: World) -> None:
        """More attempts than one batch read takes (a hundred) are all read, in order."""
        job, made = world.job(), [world.attempt(n) for n in range(1, 121)]
        for attempt in made:
            job = job.append_instance(attempt.cedana_id)
        view = create(store, job)
        for start in range(0, len(made), 20):
            view = change(store, view, *made[start : start + 20])
        assert store.attempts_of(world.job_id) == made

    def test_a_machine_is_found_by_its_cloud_id_at_once(self, store: Store, world: World) -> None:
        """From the save that brings the cloud's id on, the attempt is found by it; never before."""
        attempt = world.attempt()
        view = with_attempts(store, world, attempt)
        assert store.find_attempt(world.provider, "us-east-1", "i-7") is None
        created = attempt.model_copy(update={"allocated_id": "i-7", "phase": AttemptPhase.CREATED})
        view = change(store, view, created)
        assert store.find_attempt(world.provider, "us-east-1", "i-7") == created
        change(store, view, gone(created), open_attempts=())
        assert store.find_attempt(world.provider, "us-east-1", "i-7") == gone(created)

    def test_a_cloud_id_belongs_to_its_region(self, store: Store, world: World) -> None:
        """The same id in another region or cloud, or a text that is no id, finds nothing."""
        with_attempts(store, world, world.attempt(allocated_id="i-7"))
        asked = [
            (world.provider, "eu-west-1", "i-7"),
            ("other", "us-east-1", "i-7"),
            (world.provider, "us-east-1", "i-8"),
        ]
        asked += [(world.provider, "us-east-1", text) for text in ("", "i-7 ", "x" * 5000)]
        assert [store.find_attempt(*key) for key in asked] == [None] * len(asked)

    def test_living_attempts_are_listed_until_they_are_gone(self, store: Store, world: World) -> None:
        """An attempt is listed from its intent on, in every region, until its machine is known to be gone."""
        attempts = [world.attempt(1), world.attempt(2, region="eu-west-1"), world.attempt(3, region="eu-west-1")]
        ids = [a.cedana_id for a in attempts]
        view = with_attempts(store, world, *attempts)
        assert sorted(i for i in store.living_attempts() if i in ids) == ids
        change(store, view, gone(attempts[1]), open_attempts=(ids[0], ids[2]))
        assert sorted(i for i in store.living_attempts() if i in ids) == [ids[0], ids[2]]

    def test_what_is_no_attempt_is_listed_nowhere(self, store: Store, world: World) -> None:
        """The items that lead from the cloud's id to ours are never taken for attempts."""
        attempt = world.attempt(allocated_id="i-7")
        with_attempts(store, world, attempt)
        listed = [i for i in store.living_attempts() if world.provider in i or i == attempt.cedana_id]
        assert listed == [attempt.cedana_id]
        with pytest.raises(NotFound):
            store.get_attempt(f"allocated#{world.provider}#us-east-1#i-7")

    def test_ids_of_stale_indexes_can_be_loaded(self, store: Store, world: World) -> None:
        """An id that an index still shows leads to a record that says the truth."""
        attempt = world.attempt()
        view = with_attempts(store, world, attempt)
        shown = [i for i in store.living_attempts() if i == attempt.cedana_id]
        change(store, view, gone(attempt), state=JobState.DONE, open_attempts=())
        assert [store.get_attempt(i).is_gone for i in shown] == [True]
        assert store.load(world.job_id).job.is_settled

    def test_the_first_key_is_bound(self, store: Store, world: World) -> None:
        """The first digest is bound, a repeat is welcome, another is refused and changes nothing."""
        attempt = world.attempt()
        with_attempts(store, world, attempt)
        assert store.bind_agent(attempt.cedana_id, "one")
        assert store.bind_agent(attempt.cedana_id, "one")
        assert not store.bind_agent(attempt.cedana_id, "two")
        assert store.get_attempt(attempt.cedana_id).agent_key_sha256 == "one"

    def test_of_agents_that_race_one_is_bound(self, store: Store, world: World) -> None:
        """Of many agents with keys of their own exactly one is bound."""
        attempt = world.attempt()
        with_attempts(store, world, attempt)
        with ThreadPoolExecutor(WRITERS) as pool:
            bound = list(pool.map(lambda n: store.bind_agent(attempt.cedana_id, f"key{n}"), range(WRITERS)))
        assert bound.count(True) == 1
        assert store.get_attempt(attempt.cedana_id).agent_key_sha256 == f"key{bound.index(True)}"

    def test_marks_of_an_attempt_that_is_not_there_make_none(self, store: Store) -> None:
        """Neither a key nor a word of an unknown agent makes a record."""
        for instance_id in ("i-none", "", "allocated#a#b#c", "register#regions"):
            assert not store.bind_agent(instance_id, "key")
            store.touch_attempt(instance_id, NOW)
            with pytest.raises(NotFound):
                store.get_attempt(instance_id)

    def test_the_last_word_is_kept(self, store: Store, world: World) -> None:
        """A later word replaces an earlier one, and an earlier one that comes late changes nothing."""
        attempt = world.attempt()
        with_attempts(store, world, attempt)
        for seconds in (1, 3, 2):
            store.touch_attempt(attempt.cedana_id, NOW + timedelta(seconds=seconds, microseconds=5))
        assert store.get_attempt(attempt.cedana_id).last_seen == NOW + timedelta(seconds=3, microseconds=5)

    def test_every_word_is_counted(self, store: Store, world: World) -> None:
        """Each word is one more heartbeat, one that comes late too, whatever saves do meanwhile."""
        attempt = world.attempt()
        view = with_attempts(store, world, attempt)
        for seconds in (1, 3, 2):
            store.touch_attempt(attempt.cedana_id, NOW + timedelta(seconds=seconds))
        change(store, view, world.attempt(phase=AttemptPhase.READY, heartbeats=99))
        store.touch_attempt(attempt.cedana_id, NOW + timedelta(seconds=4))
        assert store.get_attempt(attempt.cedana_id).heartbeats == 4

    def test_a_save_keeps_the_agents_marks(self, store: Store, world: World) -> None:
        """A save over a view from before the agent's word and key overwrites neither, nor the watcher's end."""
        attempt = world.attempt()
        view = with_attempts(store, world, attempt)
        store.touch_attempt(attempt.cedana_id, NOW)
        store.bind_agent(attempt.cedana_id, "key")
        store.watch_job(world.job_id, NOW)
        after = change(store, view, world.attempt(phase=AttemptPhase.READY, last_seen=NOW - timedelta(days=1)))
        found = only_attempt(after)
        assert (found.phase, found.last_seen, found.agent_key_sha256) == (AttemptPhase.READY, NOW, "key")
        assert store.watched_until(world.job_id) == NOW

    def test_a_new_attempt_has_no_marks(self, store: Store, world: World) -> None:
        """Only plain updates write the agent's marks, so that they mean what they say."""
        with_attempts(store, world, world.attempt(last_seen=NOW, agent_key_sha256="key"))
        assert store.get_attempt(world.attempt().cedana_id) == world.attempt()

    def test_marks_do_not_conflict_with_a_save(self, store: Store, world: World) -> None:
        """A save over a view from before any number of words, and words after it, succeed, at the same time too."""
        attempt = world.attempt()
        view = with_attempts(store, world, attempt)
        with ThreadPoolExecutor(4) as pool:
            words = [pool.submit(store.touch_attempt, attempt.cedana_id, NOW + timedelta(seconds=n)) for n in range(24)]
            for n in range(6):
                view = change(store, view, world.attempt(end_reason=str(n)))
            for word in words:
                word.result()
        found = store.get_attempt(attempt.cedana_id)
        assert (found.last_seen, found.end_reason) == (NOW + timedelta(seconds=23), "5")
        assert store.get_job(world.job_id).revision == 8

    def test_a_word_alone_is_no_change(self, store: Store, world: World) -> None:
        """An attempt that differs by the agent's marks alone is not written by a save."""
        attempt = world.attempt()
        view = with_attempts(store, world, attempt)
        store.touch_attempt(attempt.cedana_id, NOW)
        after = change(store, view, attempt.model_copy(update={"last_seen": NOW - timedelta(days=1)}))
        assert only_attempt(after).last_seen == NOW


class BanContract(Contract):
    """Pools that are left alone."""

    def test_a_ban_is_in_force_until_its_end(self, store: Store, world: World) -> None:
        """A ban counts up to its end and not at it, whether or not it is still stored."""
        store.ban(world.provider, "spot", "us-east-1/*/m5.*", NOW + timedelta(minutes=3), "no capacity")
        asked = [world.provider]
        assert store.bans(asked, NOW + timedelta(minutes=3, microseconds=-1)) == {
            (world.provider, "spot"): ["us-east-1/*/m5.*"]
        }
        assert store.bans(asked, NOW + timedelta(minutes=3)) == {}

    def test_the_later_end_wins(self, store: Store, world: World) -> None:
        """A shorter ban never shortens a longer one; a longer one lengthens it."""
        for minutes in (5, 3, 8, 7):
            store.ban(world.provider, "spot", "*", NOW + timedelta(minutes=minutes), "quota")
        assert store.bans([world.provider], NOW + timedelta(minutes=7, seconds=59)) == {(world.provider, "spot"): ["*"]}
        assert store.bans([world.provider], NOW + timedelta(minutes=8)) == {}

    def test_bans_are_by_market_and_cloud(self, store: Store, world: World) -> None:
        """A ban of a cloud's spot market is no ban of its on-demand market or of another cloud's."""
        other, until = World(), NOW + timedelta(minutes=1)
        store.ban(world.provider, "spot", "r/b/t", until, "x")
        store.ban(world.provider, "spot", "r/a/t", until, "x")
        store.ban(world.provider, "on_demand", "r/c/t", until, "x")
        store.ban(other.provider, "spot", "r/d/t", until, "x")
        assert store.bans([world.provider], NOW) == {
            (world.provider, "spot"): ["r/a/t", "r/b/t"],
            (world.provider, "on_demand"): ["r/c/t"],
        }
        assert set(store.bans([world.provider, other.provider], NOW)) == {
            (world.provider, "spot"),
            (world.provider, "on_demand"),
            (other.provider, "spot"),
        }
        assert store.bans([], NOW) == {}

    def test_each_ban_has_its_reason(self, store: Store, world: World) -> None:
        """The reason of the ban that counts is told for every pattern in force, and for none that has expired."""
        until = NOW + timedelta(minutes=1)
        store.ban(world.provider, "spot", "r/*/*", until, "a policy")
        store.ban(world.provider, "spot", "r/*/*", NOW, "an older reason")
        store.ban(world.provider, "spot", "r/a/t", NOW, "none left")
        store.ban(world.provider, "on_demand", "r/a/t", until, "none left")
        assert store.ban_reasons([world.provider], NOW) == {
            (world.provider, "spot"): {"r/*/*": "a policy"},
            (world.provider, "on_demand"): {"r/a/t": "none left"},
        }
        assert store.ban_reasons([world.provider], until) == {}

    def test_a_ban_of_an_unknown_market_is_refused(self, store: Store, world: World) -> None:
        """A ban that nobody would read is a mistake that is told."""
        with pytest.raises(InvalidInput, match="market"):
            store.ban(world.provider, "futures", "*", NOW, "x")
