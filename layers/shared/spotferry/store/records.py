"""Records to items and back."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pynamodb.expressions.update import Action

from spotferry.store.changes import AGENT_MARKS
from spotferry.store.keys import parse_sortable, region_key, shard_of, sortable
from spotferry.store.models import InstanceItem, JobItem
from spotferry.types.errors import Misconfigured
from spotferry.types.instance import Attempt, AttemptPhase
from spotferry.types.job import Checkpoint, Job, JobState, TimelineEntry

OPEN_FALLBACK = JobState.RUNNING
"""Shown in lists for an unsettled job in a state of a later version: it may cost money."""

SETTLED_FALLBACK = JobState.FAILED
"""Shown in lists for a settled job in a state of a later version: it is over."""

PHASE_FALLBACK = AttemptPhase.CREATED
"""Shown in lists for an attempt in a phase of a later version: there may be a machine."""

CHECKPOINT_FALLBACKS: Mapping[str, object] = {"manifest.reason": None}

_Record = TypeVar("_Record", bound=BaseModel)


def job_item(jobs: type[JobItem], job: Job, at: datetime) -> JobItem:
    """The item of a new job; `at` stands in for a creation time that the job does not have."""
    return jobs(
        job.job_id,
        revision=job.revision,
        unsettled_shard=None if job.is_settled else shard_of(job.job_id),
        state_at=_state_at(job, at),
        owner=job.owner or None,
        created_at=sortable(job.created_at or at),
        body=job.model_dump_json(),
    )


def job_actions(jobs: type[JobItem], was: Job, job: Job, at: datetime) -> list[Action]:
    """What a save sets on the stored job; the index's sort key moves only with the state, as moving it costs writes."""
    actions: list[Action] = [
        jobs.revision.set(job.revision),
        jobs.body.set(job.model_dump_json()),
        jobs.unsettled_shard.remove() if job.is_settled else jobs.unsettled_shard.set(shard_of(job.job_id)),
    ]
    if job.state != was.state:
        actions.append(jobs.state_at.set(_state_at(job, at)))
    return actions


def read_job(item: JobItem, *, lenient: bool = False) -> Job:
    """The job of an item.

    Args:
        item: as stored.
        lenient: a state of a later version is shown as a fallback, for lists; deciding on such a job is refused.

    Raises:
        Misconfigured: a later version wrote what this one cannot read.
    """
    fallback = OPEN_FALLBACK if item.unsettled_shard else SETTLED_FALLBACK
    return read_body(Job, item.body, {"state": fallback.value} if lenient else {})


def attempt_item(instances: type[InstanceItem], attempt: Attempt) -> InstanceItem:
    """The item of a new attempt, without its agent's marks."""
    return instances(
        attempt.cedana_id,
        job_id=attempt.job_id,
        epoch=attempt.epoch,
        living=None if attempt.is_gone else region_key(attempt),
        price=str(attempt.price),
        tag=attempt.tag or None,
        body=_attempt_body(attempt),
    )


def attempt_actions(instances: type[InstanceItem], attempt: Attempt) -> list[Action]:
    """What a save sets on a stored attempt: all but its agent's marks."""
    return [
        instances.body.set(_attempt_body(attempt)),
        instances.price.set(str(attempt.price)),
        instances.tag.set(attempt.tag) if attempt.tag else instances.tag.remove(),
        instances.living.remove() if attempt.is_gone else instances.living.set(region_key(attempt)),
    ]


def read_attempt(item: InstanceItem, *, lenient: bool = False) -> Attempt:
    """The attempt of an item, with what plain updates wrote beside its body.

    Raises:
        Misconfigured: a later version wrote what this one cannot read.
    """
    attempt = read_body(Attempt, item.body, {"phase": PHASE_FALLBACK.value} if lenient else {})
    beside = {
        "cedana_id": item.cedana_id,
        "tag": item.tag or "",
        "price": Decimal(item.price),
        "last_seen": parse_sortable(item.last_seen) if item.last_seen else None,
        "heartbeats": int(item.heartbeats or 0),
        "agent_key_sha256": item.agent_key_sha256 or "",
    }
    return attempt.model_copy(update=beside)


def read_entry(body: str) -> TimelineEntry:
    """The timeline entry of a body."""
    return read_body(TimelineEntry, body, {})


def read_checkpoint(body: str) -> Checkpoint:
    """The checkpoint of a body."""
    return read_body(Checkpoint, body, CHECKPOINT_FALLBACKS)


def read_body(record: type[_Record], body: str, fallbacks: Mapping[str, object]) -> _Record:
    """The record of a JSON text, also of one that a later version wrote.

    Fields that this version does not know are left out at every depth; a value that it does not know is replaced where
    `fallbacks` (by dotted path) has a stand-in.

    Raises:
        Misconfigured: what is left still cannot be read.
    """
    try:
        return record.model_validate_json(body)
    except ValidationError as error:
        first = error
    try:
        raw = json.loads(body)
        for problem in first.errors(include_url=False):
            _mend(raw, problem["type"], [*problem["loc"]], fallbacks)
        return record.model_validate_json(json.dumps(raw))
    except ValueError as error:
        message = (
            f"a stored {record.__name__} cannot be read by this version of the broker; deploy the one that wrote it"
        )
        raise Misconfigured(f"{message}: {first.errors(include_url=False, include_input=False)}") from error


# Any: JSON as some later version wrote it.
def _mend(raw: Any, kind: str, path: list[int | str], fallbacks: Mapping[str, object]) -> None:
    dotted = ".".join(map(str, path))
    if kind != "extra_forbidden" and dotted not in fallbacks:
        return
    try:
        for step in path[:-1]:
            raw = raw[step]
        if kind == "extra_forbidden":
            del raw[path[-1]]
        else:
            raw[path[-1]] = fallbacks[dotted]
    except (LookupError, TypeError) as error:
        raise ValueError(dotted) from error


def _state_at(job: Job, at: datetime) -> str:
    return f"{job.state}#{sortable(at)}"


def _attempt_body(attempt: Attempt) -> str:
    return attempt.model_dump_json(exclude=set(AGENT_MARKS))
