"""The store in DynamoDB keeps the contract over the wire, in as few calls as it says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from spotferry.ports.store import BanStore, JobStore, SightingStore
from spotferry.store.dynamo import DynamoStore
from tests.contract.emulated_tables import EmulatedStore
from tests.contract.store_contract import StoreContract
from tests.contract.store_records import (
    NOW,
    World,
    change,
    create,
    decision,
    gone,
    with_attempts,
)

_JOB_STORE: type[JobStore] = DynamoStore
_BAN_STORE: type[BanStore] = DynamoStore
_SIGHTING_STORE: type[SightingStore] = DynamoStore


@contextmanager
def calls_of(store: DynamoStore) -> Iterator[list[str]]:
    """Names of the calls that the store makes meanwhile."""
    made: list[str] = []
    events = store._tables.connection.client.meta.events

    def note(model: object, **_: object) -> None:
        made.append(str(getattr(model, "name", "")))

    events.register("before-call.dynamodb", note)
    try:
        yield made
    finally:
        events.unregister("before-call.dynamodb", note)


@contextmanager
def bodies_of(store: DynamoStore) -> Iterator[list[dict[str, Any]]]:
    """Bodies of the calls that the store makes meanwhile."""
    made: list[dict[str, Any]] = []  # Any: requests, as the service's API has them
    events = store._tables.connection.client.meta.events

    def note(params: dict[str, bytes], **_: object) -> None:
        made.append(json.loads(params["body"]))

    events.register("before-call.dynamodb", note)
    try:
        yield made
    finally:
        events.unregister("before-call.dynamodb", note)


class TestDynamoStore(EmulatedStore, StoreContract):
    """The promises."""


class TestCalls(EmulatedStore):
    """Requests are money: how many each verb makes."""

    def test_load_is_two_calls(self, store: DynamoStore, world: World) -> None:
        """A job and all its open attempts and a closed one are read in two calls; without attempts in one."""
        attempts = [world.attempt(n) for n in range(1, 6)]
        view = with_attempts(store, world, *attempts)
        change(store, view, gone(attempts[0]), open_attempts=tuple(a.cedana_id for a in attempts[1:]))
        with calls_of(store) as calls:
            assert len(store.load(world.job_id, attempts[0].cedana_id).attempts) == 5
        assert calls == ["GetItem", "BatchGetItem"]
        other = World()
        create(store, other.job())
        with calls_of(store) as calls:
            store.load(other.job_id)
        assert calls == ["GetItem"]

    def test_save_is_one_call(self, store: DynamoStore, world: World) -> None:
        """A save is one transaction, whatever it holds; a region that is new to the process costs one call, once."""
        view = create(store, world.job())
        decided = decision(view, world.attempt(allocated_id="i-1"), world.attempt(2), checkpoint=world.checkpoint())
        with calls_of(store) as calls:
            store.save(view, decided)
        assert calls == ["UpdateItem", "TransactWriteItems"]
        view = store.load(world.job_id)
        with calls_of(store) as calls:
            store.save(view, decision(view, world.attempt(3)))
        assert calls == ["TransactWriteItems"]

    def test_a_save_whose_answer_was_lost_is_not_made_twice(self, store: DynamoStore, world: World) -> None:
        """Each transaction carries a token of its own, by which the service knows a repeat of the same request."""
        with bodies_of(store) as bodies:
            change(store, create(store, world.job()))
        tokens = [body["ClientRequestToken"] for body in bodies if "TransactItems" in body]
        assert len(set(tokens)) == len(tokens) == 2

    def test_plain_updates_and_reads_are_one_call(self, store: DynamoStore, world: World) -> None:
        """A word, a key, a watcher and a single read are one call each; a search by the cloud's id is two."""
        attempt = world.attempt(allocated_id="i-1")
        with_attempts(store, world, attempt)
        with calls_of(store) as calls:
            store.touch_attempt(attempt.cedana_id, NOW)
            store.bind_agent(attempt.cedana_id, "key")
            store.watch_job(world.job_id, NOW)
            store.get_job(world.job_id)
            store.get_attempt(attempt.cedana_id)
            store.find_attempt(world.provider, "us-east-1", "i-1")
        assert calls == ["UpdateItem"] * 3 + ["GetItem"] * 4

    def test_the_reapers_notes_are_one_call_each(self, store: DynamoStore, world: World) -> None:
        """The regions, the sightings of one of them, and a note."""
        with calls_of(store) as calls:
            store.used_regions()
            store.sightings(world.provider, "us-east-1", NOW)
            store.note_sighting(world.provider, "us-east-1", "i-1", NOW, NOW, "no record")
        assert calls == ["GetItem", "Query", "PutItem"]

    def test_reads_by_key_are_consistent(self, store: DynamoStore, world: World) -> None:
        """Every read that is not by index asks for the strongly consistent answer."""
        attempt = world.attempt(allocated_id="i-1")
        view = with_attempts(store, world, attempt)
        store.save(view, decision(view, checkpoint=world.checkpoint()))
        with bodies_of(store) as bodies:
            store.load(world.job_id)
            store.attempts_of(world.job_id)
            store.get_attempt(attempt.cedana_id)
            store.find_attempt(world.provider, "us-east-1", "i-1")
            store.timeline(world.job_id)
            store.checkpoints(world.job_id)
            store.get_checkpoint(world.job_id, 1)
            store.watched_until(world.job_id)
            store.bans([world.provider], NOW)
            store.used_regions()
            store.sightings(world.provider, "us-east-1", NOW)
            next(store.living_attempts())
        asked = [body for body in bodies if "IndexName" not in body]
        assert len(asked) == 16
        assert all(
            b.get("ConsistentRead") or all(t["ConsistentRead"] for t in b["RequestItems"].values()) for b in asked
        )

    def test_nothing_scans(self, store: DynamoStore, world: World) -> None:
        """Lists are queries: one for each partition of the unsettled, one for each region of the living."""
        with_attempts(store, world, world.attempt())
        with calls_of(store) as calls:
            list(store.unsettled_jobs())
        assert calls == ["Query"] * 8
        with calls_of(store) as calls:
            list(store.living_attempts())
        assert set(calls[1:]) == {"Query"}
        assert calls[0] == "GetItem"
