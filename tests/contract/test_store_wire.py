"""What only a store over a wire can do wrong: other processes, other versions, refusals, silence."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse, HTTPHeaders

from spotferry.domain.view import Policy
from spotferry.store.dynamo import DynamoStore
from spotferry.store.models import TableNames
from spotferry.types.errors import Conflict, Misconfigured, NotFound, NotYet, TooLarge
from spotferry.types.instance import AttemptPhase
from spotferry.types.job import JobState
from tests.contract.emulated_tables import POLICY, REGION, EmulatedStore, create_tables
from tests.contract.store_records import (
    NOW,
    World,
    change,
    create,
    decision,
    entry_of,
    with_attempts,
)


class _Raw(io.BytesIO):
    def stream(self, **_: object) -> Iterator[bytes]:
        yield self.read()


@contextmanager
def answering(store: DynamoStore, operation: str, answer: Mapping[str, object], times: int) -> Iterator[list[int]]:
    """The service refuses the next calls with this answer; the list grows by one with each call, refused or not."""
    seen: list[int] = []
    events = store._tables.connection.client.meta.events

    # The hook's type does not know that a `before-send` handler may answer in the service's place.
    def refuse(request: AWSPreparedRequest, **_: object) -> Any:  # Any: an AWSResponse or None
        seen.append(len(seen))
        if len(seen) > times:
            return None
        return AWSResponse(request.url, 400, HTTPHeaders(), _Raw(json.dumps(answer).encode()))

    events.register_first(f"before-send.dynamodb.{operation}", refuse)
    try:
        yield seen
    finally:
        events.unregister(f"before-send.dynamodb.{operation}", refuse)


class TestWire(EmulatedStore):
    """What only a store over a wire can do wrong."""

    def test_two_stores_keep_apart(self, host: str, store: DynamoStore, world: World) -> None:
        """Two stores over two sets of tables in one process share nothing."""
        other = DynamoStore(create_tables(host), Policy(boot_attempts=9), host=host, region=REGION)
        with_attempts(store, world, world.attempt(allocated_id="i-1"))
        with pytest.raises(NotFound):
            other.get_job(world.job_id)
        assert create(other, world.job(reason="other")).policy.boot_attempts == 9
        assert store.load(world.job_id).policy == POLICY
        assert store.get_job(world.job_id).reason == ""
        assert list(other.living_attempts()) == []

    def test_another_process_sees_the_same(
        self, host: str, tables: TableNames, store: DynamoStore, world: World
    ) -> None:
        """A second store over the same tables finds all that the first wrote, and adds its regions to the register."""
        with_attempts(store, world, world.attempt())
        other = DynamoStore(tables, POLICY, host=host, region=REGION)
        assert other.load(world.job_id) == store.load(world.job_id)
        here = World()
        with_attempts(other, here, here.attempt(region="eu-west-3"))
        living = set(store.living_attempts())
        assert {world.attempt().cedana_id, here.attempt().cedana_id} <= living

    def test_the_environment_names_the_endpoint(
        self, host: str, tables: TableNames, store: DynamoStore, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without a host the store goes where AWS_ENDPOINT_URL says, the service's own variable first."""
        create(store, world.job())
        monkeypatch.setenv("AWS_ENDPOINT_URL", host)
        assert DynamoStore(tables, POLICY, region=REGION).get_job(world.job_id) == world.job()
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1")
        own = DynamoStore(tables, POLICY, region=REGION)
        assert own._tables.connection.client.meta.endpoint_url == "http://127.0.0.1:1"

    def test_a_missing_table_is_the_operators(self, host: str, world: World) -> None:
        """A table that is not there is Misconfigured, in words that name it or its permission."""
        names = TableNames("no-jobs", "no-instances", "no-checkpoints", "no-timeline", "no-bans")
        store = DynamoStore(names, POLICY, host=host, region=REGION)
        with pytest.raises(Misconfigured, match="tables exist"):
            store.get_job("j")
        with pytest.raises(Misconfigured, match="tables exist"):
            store.create_job(world.job(), entry_of(world.job()))

    def test_a_database_that_is_away_is_asked_again_later(
        self, tables: TableNames, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No answer is no verdict: NotYet, with a time."""
        monkeypatch.setattr("spotferry.store.models.RETRIES", 0)
        store = DynamoStore(tables, POLICY, host="http://127.0.0.1:1", region=REGION)
        with pytest.raises(NotYet) as caught:
            store.get_job("j")
        assert caught.value.retry_in > timedelta(0)

    @pytest.mark.parametrize("times", [1, 3])
    def test_a_transaction_that_met_another_writer_is_made(self, store: DynamoStore, world: World, times: int) -> None:
        """A save that collides with a plain update goes again by itself and is made once."""
        view = create(store, world.job())
        answer = {
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled",
            "CancellationReasons": [{"Code": "TransactionConflict", "Message": "ongoing"}, {"Code": "None"}],
        }
        with answering(store, "TransactWriteItems", answer, times) as seen:
            after = change(store, view, reason="made")
        assert len(seen) == times + 1
        assert (after.job.reason, after.job.revision) == ("made", 2)

    def test_a_word_that_met_a_transaction_is_kept(self, store: DynamoStore, world: World) -> None:
        """A heartbeat never fails because a decision is being saved."""
        attempt = world.attempt()
        with_attempts(store, world, attempt)
        answer = {"__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException", "message": "ongoing"}
        with answering(store, "UpdateItem", answer, 2) as seen:
            store.touch_attempt(attempt.cedana_id, NOW)
        assert len(seen) == 3
        assert store.get_attempt(attempt.cedana_id).last_seen == NOW

    def test_throttling_without_end_is_told(
        self, host: str, tables: TableNames, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A throttled call is repeated by the client; when that is in vain the caller is told to come back."""
        monkeypatch.setattr("spotferry.store.models.RETRIES", 1)
        store = DynamoStore(tables, POLICY, host=host, region=REGION)
        code = "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"
        with (
            answering(store, "GetItem", {"__type": code, "message": "slow down"}, 9) as seen,
            pytest.raises(NotYet, match="slow down"),
        ):
            store.get_job(world.job_id)
        assert len(seen) == 2

    def test_an_entry_is_never_written_over(self, store: DynamoStore, world: World) -> None:
        """A history that already has the next revision's entry stops the save: history never changes."""
        view = create(store, world.job())
        store._tables.timeline(world.job_id, 2, body=entry_of(world.job(revision=2), "first").model_dump_json()).save()
        with pytest.raises(Conflict):
            store.save(view, decision(view, reason="second"))
        assert store.load(world.job_id) == view
        assert [e.message for e in store.timeline(world.job_id)] == ["accepted", "first"]

    def test_a_record_over_the_limit_is_too_large(self, store: DynamoStore, world: World) -> None:
        """A record that no item can hold is refused in words, and nothing is written."""
        view = create(store, world.job())
        with pytest.raises(TooLarge, match="400 KB"):
            store.save(view, decision(view, reason="x" * 420_000))
        assert store.load(world.job_id) == view

    def test_a_state_of_a_later_version_does_not_break_lists(self, store: DynamoStore, world: World) -> None:
        """A list shows a fallback for a state or phase that it does not know; no decision is made about it."""
        attempt = world.attempt()
        view = with_attempts(store, world, attempt)
        self._rewrite(store, world, lambda body: body.replace('"PROVISIONING"', '"MIGRATING"'))
        item = store._tables.instances.get(attempt.cedana_id)
        body = item.body.replace('"phase":"requested"', '"phase":"dreaming","mood":1')
        item.update(actions=[store._tables.instances.body.set(body)])
        assert [j.state for j in store.list_jobs(world.owner, 5).jobs] == [JobState.RUNNING]
        assert world.job_id in set(store.unsettled_jobs())
        with pytest.raises(Misconfigured, match="deploy the one"):
            store.load(world.job_id)
        self._rewrite(store, world, lambda body: body.replace('"MIGRATING"', '"PROVISIONING"'))
        assert [a.phase for a in store.attempts_of(world.job_id)] == [AttemptPhase.CREATED]
        with pytest.raises(Misconfigured, match="version"):
            store.load(view.job.job_id)

    def test_fields_of_a_later_version_are_ignored(self, store: DynamoStore, world: World) -> None:
        """A key that a later version added anywhere in a record is left out, so that a rollback can read."""
        view = create(store, world.job())
        self._rewrite(store, world, lambda body: body.replace('"spec":{', '"later":1,"spec":{"later":{"a":1},'))
        assert store.load(world.job_id) == view

    def test_words_and_saves_at_once_over_the_wire(self, host: str, tables: TableNames, world: World) -> None:
        """Several processes' stores writing to one job at once end in a state that all agree on."""
        stores = [DynamoStore(tables, POLICY, host=host, region=REGION) for _ in range(3)]
        attempt = world.attempt()
        view = with_attempts(stores[0], world, attempt)

        def work(store: DynamoStore) -> None:
            for n in range(5):
                store.touch_attempt(attempt.cedana_id, NOW + timedelta(seconds=n))

        with ThreadPoolExecutor(3) as pool:
            done = [pool.submit(work, store) for store in stores]
            for n in range(5):
                view = change(stores[0], view, attempt.model_copy(update={"end_reason": str(n)}))
            for one in done:
                one.result()
        assert len({repr(store.load(world.job_id)) for store in stores}) == 1
        assert stores[1].get_attempt(attempt.cedana_id).last_seen == NOW + timedelta(seconds=4)

    def _rewrite(self, store: DynamoStore, world: World, change_body: Callable[[str], str]) -> None:
        item = store._tables.jobs.get(world.job_id)
        item.update(actions=[store._tables.jobs.body.set(change_body(item.body))])


class TestBanItems(EmulatedStore):
    """Bans as the table's TTL sees them."""

    def test_the_sweep_comes_after_the_end(self, store: DynamoStore, world: World) -> None:
        """The table's expiry is at most a second past the ban's end, never before it; the reason is kept."""
        until = NOW + timedelta(seconds=1, microseconds=1)
        store.ban(world.provider, "spot", "*", until, "no capacity ✓")
        item = store._tables.bans.get(f"{world.provider}#spot", "*")
        assert until.timestamp() < item.expires_at_epoch <= until.timestamp() + 1
        assert item.reason == "no capacity ✓"
