"""What a decision changes, worked out once for every store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spotferry.domain.view import Decision, View
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job, TimelineEntry


@dataclass(frozen=True, slots=True)
class Changes:
    """The records that one save writes.

    Attributes:
        revision: the revision that the stored job must still have.
        job: the job after the change.
        was: the job before it.
        created: attempts that are new.
        updated: attempts that differ from the ones loaded, the agent's own marks aside.
        allocated: attempts, of both kinds, whose machine's id at the cloud became known.
        entry: the timeline entry.
        checkpoint: the checkpoint that the change commits.
    """

    revision: int
    job: Job
    was: Job
    created: Sequence[Attempt]
    updated: Sequence[Attempt]
    allocated: Sequence[Attempt]
    entry: TimelineEntry
    checkpoint: Checkpoint | None


AGENT_MARKS: Mapping[str, object] = {"last_seen": None, "heartbeats": 0, "agent_key_sha256": ""}
"""The fields of an attempt that plain updates write, and what they are before the first."""


def without_agent_marks(attempt: Attempt) -> Attempt:
    """The attempt without what plain updates write: a save must neither compare nor overwrite it."""
    return attempt.model_copy(update=AGENT_MARKS)


def changes_of(before: View, decision: Decision) -> Changes | None:
    """What a save of this decision writes; None when it decided nothing.

    Raises:
        AssertionError: the decision did not raise the job's revision by one, or its entry has another key.
    """
    entry, job = decision.entry, decision.view.job
    if entry is None:
        return None
    assert job.job_id == before.job.job_id == entry.job_id, "a decision is about the job that was loaded"
    assert job.revision == entry.revision == before.job.revision + 1, "a decision raises the revision by one"
    known, after = before.attempts, decision.view.attempts
    created = [a for i, a in after.items() if i not in known]
    updated = [a for i, a in after.items() if i in known and without_agent_marks(a) != without_agent_marks(known[i])]
    allocated = [a for a in (*created, *updated) if a.allocated_id and _allocated_before(before, a) != a.allocated_id]
    assert all(a.job_id == job.job_id for a in (*created, *updated)), "a decision changes attempts of its own job only"
    return Changes(before.job.revision, job, before.job, created, updated, allocated, entry, decision.checkpoint)


def _allocated_before(before: View, attempt: Attempt) -> str:
    known = before.attempts.get(attempt.cedana_id)
    return known.allocated_id if known else ""
