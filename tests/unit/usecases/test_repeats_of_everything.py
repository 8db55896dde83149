"""Whatever a save leaves owed is sent by a repeat of what led to it: all states, all events, whoever they are about."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import event_name
from spotferry.domain.owed import owed
from spotferry.domain.reported import Reported
from spotferry.domain.transitions import EVENTS
from spotferry.domain.view import Decision, Effect, View
from spotferry.ports.store import JobStore
from spotferry.types import AttemptPhase, IllegalTransition, JobFile, JobState, StaleAttempt
from spotferry.usecases.change import ChangeJob
from tests.builders import NOW, OTHER, OWNER, an_attempt, an_event, view_in
from tests.fakes import FakeClock, FakeQueue, QueueAwayError

NEXT = "i-2"
UNANSWERED = {"phase": AttemptPhase.REQUESTED, "allocated_id": "", "launched_at": None, "arrived_at": None}
SPEC = JobFile.model_validate(
    {"task": {"run": "true"}, "checkpoint": {"on_rebalance": True}, "retry": {"max_restarts": 2}}
)
"""A job file that asks for all that the state machine does only when it is asked."""

Step = tuple[str, View, e.Event]


def _with_successor(view: View, phase: AttemptPhase) -> View:
    changes = UNANSWERED | {"last_seen": None} if phase is AttemptPhase.REQUESTED else {"phase": phase}
    job = {"epoch": 2, "successor_id": NEXT, "open_attempts": (*view.job.open_attempts, NEXT)}
    return view.with_job(**job).with_attempt(an_attempt(2, **changes))


def _views() -> Iterator[tuple[str, View]]:
    """Jobs in every state: with an owner, with one whose launch was not answered, with a successor at every stage,
    and after an attempt that was given up and is answered after all.
    """
    for state in JobState:
        view = view_in(state, spec=SPEC)
        yield state, view
        yield f"{state}, late answer", view.with_attempt(view.attempts[OTHER].model_copy(update={"allocated_id": ""}))
        if state in {JobState.PROVISIONING, JobState.INTERRUPTED, JobState.CANCELLING}:
            yield f"{state}, unanswered", view.with_attempt(view.attempts[OWNER].model_copy(update=UNANSWERED))
        if state in {JobState.SETTING_UP, JobState.RUNNING, JobState.INTERRUPTED, JobState.FINALIZING}:
            for phase in (AttemptPhase.REQUESTED, AttemptPhase.ARRIVED, AttemptPhase.READY):
                yield f"{state}, successor {phase}", _with_successor(view, phase)


def _events(view: View) -> Iterator[e.Event]:
    """Every event about every attempt; reports with a number and without."""
    for kind in EVENTS:
        about = view.attempts if "instance_id" in kind.__dataclass_fields__ else [OWNER]
        for instance_id in about:
            event = an_event(kind, instance_id, epoch=view.job.epoch + 1)
            yield event
            if isinstance(event, Reported):
                yield replace(event, report=3)


def _steps() -> Iterator[Step]:
    for name, view in _views():
        for event in _events(view):
            yield f"{name}+{event_name(type(event))} of {getattr(event, 'instance_id', 'the job')}", view, event


@dataclass(slots=True)
class OneJob:
    """A store with one job, every save of which is written."""

    view: View
    entries: list[str] = field(default_factory=list)

    def save(self, before: View, decision: Decision) -> None:
        """Keep it."""
        assert before is self.view
        if decision.entry is not None:
            self.view = decision.view
            self.entries.append(decision.entry.event)


@dataclass(slots=True)
class Broker:
    """The four steps over that job, with a queue that can be away."""

    store: OneJob
    queue: FakeQueue = field(default_factory=FakeQueue)

    def hear(self, event: e.Event) -> set[Effect]:
        """What was sent because of the event, refused or not."""
        change = ChangeJob(cast("JobStore", self.store), self.queue, FakeClock(NOW))
        with suppress(IllegalTransition, StaleAttempt):
            change.on(self.store.view, event)
        return set(self.queue.take())

    def crash_after_saving(self, event: e.Event) -> set[Effect]:
        """The event is saved, and nothing sent: what is owed because of it."""
        before = set(owed(self.store.view))
        saves = len(self.store.entries)
        self.queue.fail()
        with suppress(QueueAwayError):
            self.hear(event)
        self.queue.fail(0)
        return set(owed(self.store.view)) - before if len(self.store.entries) > saves else set()


@pytest.fixture(scope="module")
def owing() -> list[Step]:
    """The steps that leave something owed."""
    return [step for step in _steps() if Broker(OneJob(step[1])).crash_after_saving(step[2])]


def test_a_repeat_sends_what_was_saved_and_not_sent(owing: list[Step]) -> None:
    """A crash between save and send is healed by the next one who says the same, even where it is refused by then."""
    for name, view, event in owing:
        broker = Broker(OneJob(view))
        lost = broker.crash_after_saving(event)
        sent = broker.hear(event)
        assert lost <= sent, name
        assert len(broker.store.entries) == 1, name


def test_a_repeat_sends_it_whatever_came_in_between(owing: list[Step]) -> None:
    """Others may have changed the job before the repeat comes: what it still owes is sent, unless that made it news."""
    for name, view, event in owing:
        for other in _events(view):
            broker = Broker(OneJob(view))
            lost = broker.crash_after_saving(event)
            broker.hear(other)
            saves = len(broker.store.entries)
            still = lost & set(owed(broker.store.view))
            sent = broker.hear(event)
            assert still <= sent or len(broker.store.entries) > saves, f"{name}, {event_name(type(other))}"


def test_every_kind_of_event_that_can_owe_anything_is_among_them(owing: list[Step]) -> None:
    """The product is not empty where it matters."""
    kinds = {event_name(type(event)) for _, _, event in owing}
    assert kinds >= {
        "cancel_requested",
        "hold_expired",
        "launch_chosen",
        "launch_failed",
        "limit_reached",
        "machine_condemned",
        "machine_created",
        "machine_gone",
        "notice_received",
        "outputs_committed",
        "outputs_failed",
        "placement_deferred",
        "rebalance_advised",
        "released",
        "setup_failed",
        "startup_failed",
        "task_exited",
    }
