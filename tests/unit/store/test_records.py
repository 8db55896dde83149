"""Records to items and back, across versions."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.store.models import TableNames, bind
from spotferry.store.records import (
    OPEN_FALLBACK,
    SETTLED_FALLBACK,
    attempt_item,
    job_actions,
    job_item,
    read_attempt,
    read_body,
    read_checkpoint,
    read_job,
)
from spotferry.types.errors import Misconfigured
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job, JobState, Manifest

NOW = datetime(2026, 5, 4, tzinfo=UTC)
TABLES = bind(TableNames("j", "i", "c", "t", "b"), "us-east-1", None)
ATTEMPT = Attempt(
    cedana_id="i-1", job_id="j-1", epoch=1, requested_at=NOW, price=Decimal("0.10"), provider="aws", region="r"
)


def test_a_settled_job_is_outside_the_index() -> None:
    """Only an unsettled job has a shard."""
    assert job_item(TABLES.jobs, Job(job_id="j"), NOW).unsettled_shard is not None
    assert job_item(TABLES.jobs, Job(job_id="j", state=JobState.DONE), NOW).unsettled_shard is None
    assert job_item(TABLES.jobs, Job(job_id="j", state=JobState.DONE, open_attempts=("i",)), NOW).unsettled_shard


def test_the_index_moves_with_the_state_only() -> None:
    """A save that leaves the state alone does not touch the index's sort key."""
    job = Job(job_id="j", state=JobState.RUNNING)
    same = job_actions(TABLES.jobs, job, job.model_copy(update={"reason": "x"}), NOW)
    moved = job_actions(TABLES.jobs, job, job.model_copy(update={"state": JobState.DONE}), NOW)
    assert len(moved) == len(same) + 1


def test_the_body_holds_neither_marks_nor_key() -> None:
    """What plain updates write is beside the body only, so that no save can bring an old mark back."""
    marked = ATTEMPT.model_copy(update={"last_seen": NOW, "agent_key_sha256": "k"})
    item = attempt_item(TABLES.instances, marked)
    assert not {"last_seen", "agent_key_sha256", "cedana_id"} & set(json.loads(item.body))
    assert not item.last_seen
    assert not item.agent_key_sha256
    assert read_attempt(item) == ATTEMPT


def test_a_gone_attempt_is_outside_the_index() -> None:
    """Only an attempt whose machine may live has the index's key."""
    assert attempt_item(TABLES.instances, ATTEMPT).living == "aws#r"
    assert attempt_item(TABLES.instances, ATTEMPT.model_copy(update={"gone_at": NOW})).living is None


@pytest.mark.parametrize(("settled", "shown"), [(False, OPEN_FALLBACK), (True, SETTLED_FALLBACK)])
def test_an_unknown_state_is_shown_as_its_fallback(settled: bool, shown: JobState) -> None:  # noqa: FBT001 (a case)
    """A list shows an unknown state as running or as over, as the index knows which; reading to decide is refused."""
    item = job_item(TABLES.jobs, Job(job_id="j", reason="r"), NOW)
    item.body = item.body.replace('"PENDING"', '"MIGRATING"')
    if settled:
        item.unsettled_shard = None
    job = read_job(item, lenient=True)
    assert (job.state, job.reason, job.state.is_final) == (shown, "r", settled)
    with pytest.raises(Misconfigured, match="state"):
        read_job(item)


def test_unknown_fields_are_left_out_at_every_depth() -> None:
    """A reader ignores what a later version added, even in values that refuse unknown fields when people write them."""
    raw = json.loads(Job(job_id="j").model_dump_json())
    raw["later"] = raw["spec"]["later"] = raw["spec"]["instance_specs"]["later"] = {"a": [1]}
    assert read_body(Job, json.dumps(raw), {}) == Job(job_id="j")


def test_an_unknown_reason_of_a_checkpoint_is_left_out() -> None:
    """A list of checkpoints survives a reason of a later version."""
    manifest = Manifest(kind="checkpoint", job_id="j", number=1, epoch=1, created_at=NOW, parts=())
    made = Checkpoint(job_id="j", number=1, manifest_key="k", manifest=manifest, instance_id="i", committed_at=NOW)
    raw = json.loads(made.model_dump_json())
    raw["manifest"]["reason"] = "boredom"
    assert read_checkpoint(json.dumps(raw)) == made


@pytest.mark.parametrize("body", ["", "{", "[]", '{"revision":"x"}', '{"spec":{"task":{"run":[{"a":1}]}}}'])
def test_what_cannot_be_read_is_the_operators(body: str) -> None:
    """A body that is no record of ours is told in words, without its content."""
    with pytest.raises(Misconfigured, match="stored Job cannot be read"):
        read_body(Job, body, {"state": "RUNNING"})
