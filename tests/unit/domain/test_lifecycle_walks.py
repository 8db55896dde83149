"""What holds in every walk through the state machine, whatever comes and in whatever order."""

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotferry.domain import events as e
from spotferry.domain.costs import job_cost
from spotferry.domain.lifecycle import decide, directive, overdue
from spotferry.domain.limits import spent_usd
from spotferry.domain.owed import owed
from spotferry.domain.transitions import EVENTS
from spotferry.domain.view import DestroyInstance, PlaceJob, View
from spotferry.types import AttemptPhase, IllegalTransition, JobFile, JobState, SpotferryError, StaleAttempt
from tests.builders import NOW, a_job, a_manifest, a_view, an_event

EVERYTHING = JobFile.model_validate(
    {"task": {"run": "true"}, "checkpoint": {"on_rebalance": True}, "retry": {"max_restarts": 2}, "max_cost_usd": 1}
)
"""A job file that asks for all that the state machine does only when it is asked."""

STEPS = st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(0, 3), st.booleans()), max_size=60)
MINUTE = timedelta(minutes=1)


def _event(view: View, kind: type[e.Event], pick: int, flag: bool) -> e.Event:  # noqa: FBT001 (drawn by hypothesis)
    """An event of that kind about one of the job's attempts, fitting the job's numbers."""
    known = sorted(view.attempts, reverse=True) or ["i-none"]
    instance_id = known[min(pick, len(known) - 1)]
    if kind is e.CheckpointCommitted:
        manifest = a_manifest(view.job.checkpoint + 1, exit_code=0 if flag else None)
        return e.CheckpointCommitted(instance_id, manifest, "key")
    if kind is e.TaskExited:
        return e.TaskExited(instance_id, pick, outputs=flag)
    return an_event(kind, instance_id, epoch=view.job.epoch + 1)


def _walk(steps: list[tuple[type[e.Event], int, bool]]) -> list[View]:
    view = a_view(a_job(revision=1, spec=EVERYTHING))
    views = [view]
    for number, (kind, pick, flag) in enumerate(steps):
        event = _event(view, kind, pick, flag)
        subject = getattr(event, "instance_id", None)
        if subject is not None and subject not in view.attempts:
            continue
        try:
            view = decide(view, event, now=NOW + number * MINUTE).view
        except (IllegalTransition, StaleAttempt):
            continue
        views.append(view)
    return views


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_every_job_can_still_end_and_leaves_no_machine(steps: list[tuple[type[e.Event], int, bool]]) -> None:
    """From wherever a walk led, a cancel and the clouds' answers to what is owed end the job with no machine left."""
    view = _walk(steps)[-1]
    now = NOW + timedelta(days=1)
    if view.job.state is not JobState.CANCELLING and not view.job.state.is_final:
        view = decide(view, e.CancelRequested("ann"), now=now).view
    for round_ in range(1, 12):
        now += timedelta(hours=1)
        for event in list(overdue(view, now)):
            view = decide(view, event, now=now).view
        for effect in owed(view):
            assert not isinstance(effect, PlaceJob)
            view = decide(view, e.MachineGone(effect.instance_id, f"round {round_}"), now=now).view
    assert view.job.is_settled


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_what_always_holds(steps: list[tuple[type[e.Event], int, bool]]) -> None:
    """One owner at most, no lost machine owns a job, nothing leaves a final state, the task's end is never
    forgotten.
    """
    views = _walk(steps)
    for before, view in pairwise(views):
        job = view.job
        if before.job.state.is_final:
            assert job.state is before.job.state
            assert job.reason == before.job.reason
        assert job.owner_id is None or job.owner_id != job.successor_id
        if not job.state.is_final:
            for held in (view.owner, view.successor):
                assert held is None or (not held.is_gone and held.released_at is None)
            assert (job.owner_id is None) == (job.state is JobState.PENDING)
        assert before.job.exit_code is None or job.exit_code is not None
        assert job.checkpoint >= before.job.checkpoint
        assert job.epoch >= before.job.epoch
        assert spent_usd(view, NOW) == pytest.approx(job_cost(view.attempts.values(), NOW).usd, abs=Decimal("1e-8"))
        assert job.restarts <= EVERYTHING.retry.max_restarts
        assert not (job.state.is_final and job.wants_checkpoint)
        assert not (job.state is JobState.CANCELLED and job.limit)
        assert set(job.open_attempts) == {i for i, a in view.attempts.items() if not a.is_gone}
        if job.state.is_final:
            assert {x.instance_id for x in owed(view) if isinstance(x, DestroyInstance)} == set(job.open_attempts)


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_ownership_never_passes_by_time(steps: list[tuple[type[e.Event], int, bool]]) -> None:
    """A job leaves its owner only when that released it, is gone, or never was: never by what `overdue` says."""
    views = _walk(steps)
    for before, view in pairwise(views):
        old = before.job.owner_id
        if old is not None and view.job.owner_id != old:
            assert view.attempts[old].is_gone or view.attempts[old].phase is AttemptPhase.RELEASED
    last = views[-1]
    for event in overdue(last, NOW + timedelta(days=2)):
        owner = last.job.owner_id
        last = decide(last, event, now=NOW + timedelta(days=2)).view
        assert last.job.owner_id == owner


@settings(max_examples=300, deadline=None)
@given(STEPS)
def test_a_repeat_changes_nothing_and_returns_what_is_owed(steps: list[tuple[type[e.Event], int, bool]]) -> None:
    """The same event twice ends in the same state, and the second answer holds every effect still owed."""
    view = a_view(a_job(revision=1, spec=EVERYTHING))
    repeatable = set(EVENTS) - {e.PlacementDeferred, e.RetryRequested, e.CheckpointFailed, e.CommandEnded}
    for number, (kind, pick, flag) in enumerate(steps):
        event = _event(view, kind, pick, flag)
        subject = getattr(event, "instance_id", None)
        if subject is not None and subject not in view.attempts:
            continue
        try:
            first = decide(view, event, now=NOW + number * MINUTE)
            view = first.view
            if kind in repeatable:
                second = decide(view, event, now=NOW + number * MINUTE)
                assert second.entry is None, kind
                assert set(second.effects) == set(owed(view)) >= set(first.effects)
        except SpotferryError:
            continue


@settings(max_examples=300, deadline=None)
@given(STEPS, st.sampled_from(["", "running", "held", "waiting", "finalizing"]))
def test_only_one_agent_is_ever_told_to_run(steps: list[tuple[type[e.Event], int, bool]], phase: str) -> None:
    """At no moment are two agents of a job told to go, retry or continue."""
    for view in _walk(steps):
        running = 0
        for instance_id in view.attempts:
            try:
                order = directive(view, instance_id, phase).order
            except StaleAttempt:
                continue
            running += order in {"continue", "go", "retry"}
        assert running <= 1
