"""Wrong brokers: the real code with one mistake each, to prove that the simulation sees it.

`CAUGHT_BY` names, for each mistake, the invariants that may be the first to fail because of it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from unittest.mock import patch

from spotferry.domain import events as e
from spotferry.domain import lifecycle, machine_moves
from spotferry.domain.handover import Moved, changed
from spotferry.domain.moves import MOVES
from spotferry.domain.view import Decision, View
from spotferry.store.memory import MemoryStore
from spotferry.types.errors import ProviderUnavailable, StaleAttempt
from spotferry.types.instance import Attempt
from spotferry.types.job import ArchivePart
from spotferry.usecases import change, destroy_instance, poll_status, reap
from spotferry.usecases.agents import Authenticate
from spotferry.usecases.create_instance import CreateInstance
from spotferry.usecases.launch import AskCloud
from spotferry.usecases.take_archive import TakeArchive
from spotferry.usecases.word import SayWord
from tests.simulation.agent import Agent
from tests.simulation.mailbox import Ended

# Any, here and below: a mistake takes whatever the code takes that it stands in for.


@contextmanager
def no_intent() -> Iterator[None]:
    """The cloud is asked before the attempt is saved."""

    def launch(self: CreateInstance, view: View, plan: Any, candidate: Any, request: Any) -> None:
        attempt = self._attempt(view.job, plan, candidate, request, self.change.clock())
        machine = self.clouds.provider(attempt.provider).create_instance(attempt)
        saved = self.change.on(view, e.LaunchChosen(attempt, plan.words))
        if attempt.cedana_id in saved.job.open_attempts:
            self.ask.record(view.job.job_id, attempt, machine)

    with patch.object(CreateInstance, "_launch", launch):
        yield


@contextmanager
def no_epoch_check() -> Iterator[None]:
    """Whoever speaks is heard, whether or not its attempt still owns the job, or lives."""
    original = Authenticate.__call__

    def let_in(self: Authenticate, authorization: str, epoch: object = None, *, hello: bool = False) -> Attempt:
        try:
            return original(self, authorization, epoch, hello=hello)
        except StaleAttempt:
            return self.change.store.get_attempt(authorization.removeprefix("Bearer ").partition(".")[0])

    with (
        patch.object(Authenticate, "__call__", let_in),
        patch.object(lifecycle, "_refuse_stale", lambda *_: None),
        patch.object(TakeArchive, "_check_owner", lambda *_: None),
    ):
        yield


@contextmanager
def pointer_before_parts() -> Iterator[None]:
    """A checkpoint counts before its bytes are there."""
    complete, original = TakeArchive._complete, TakeArchive._record

    def unseen(_self: Any, _view: Any, prefix: str, parts: Any) -> Any:
        return tuple(ArchivePart(name=p.name, key=prefix + p.name, size_bytes=1, sha256=p.sha256) for p in parts)

    def record(self: TakeArchive, attempt: Any, commit: Any, prefix: str, parts: Any) -> Any:
        view, number = original(self, attempt, commit, prefix, parts)
        complete(self, view, prefix, commit.parts)
        return view, number

    with patch.object(TakeArchive, "_complete", unseen), patch.object(TakeArchive, "_record", record):
        yield


@contextmanager
def ownership_by_time() -> Iterator[None]:
    """A silent machine counts as gone."""

    def overdue(view: View, now: datetime) -> Iterator[e.Event]:
        for event in lifecycle.overdue(view, now):
            condemned = isinstance(event, e.MachineCondemned)
            yield e.MachineGone(event.instance_id, event.reason) if condemned else event  # type: ignore[union-attr]  # only that kind has these fields

    with patch.object(poll_status, "overdue", overdue):
        yield


@contextmanager
def effects_dropped_on_redelivery() -> Iterator[None]:
    """An event that repeats what is known owes nothing."""

    def decide(view: View, event: e.Event, *, now: datetime) -> Decision:
        decision = lifecycle.decide(view, event, now=now)
        return decision if decision.entry is not None else replace(decision, effects=())

    with patch.object(change, "decide", decide):
        yield


@contextmanager
def no_version_check() -> Iterator[None]:
    """A save overwrites whatever was saved meanwhile."""
    with patch.object(MemoryStore, "_check", lambda *_: None):
        yield


@contextmanager
def lost_answer_is_a_refusal() -> Iterator[None]:
    """A launch that was not answered counts as refused."""
    original = AskCloud.__call__

    def ask(self: AskCloud, job_id: str, attempt: Any) -> Any:
        view = original(self, job_id, attempt)
        if view is None:
            failed = e.LaunchFailed(
                attempt.cedana_id, "RequestTimeout", "no answer", asked_again_at=attempt.asked_again_at
            )
            return self.change(job_id, failed, attempt.cedana_id)
        return view

    with patch.object(AskCloud, "__call__", ask):
        yield


@contextmanager
def hidden_is_none() -> Iterator[None]:
    """A machine that is not shown yet counts as never made."""
    with patch.object(destroy_instance, "would_be_visible", lambda *_: True):
        yield


@contextmanager
def fresh_after_a_loss() -> Iterator[None]:
    """Every machine is told to begin from nothing."""
    original = SayWord.start

    def start(self: SayWord, view: View) -> Any:
        told = original(self, view)
        return told | ({"mode": "fresh"} if told["mode"] == "restore" else {})

    with patch.object(SayWord, "start", start):
        yield


@contextmanager
def finished_tasks_run_again() -> Iterator[None]:
    """What a machine is to do does not look at whether the task is over."""
    original = SayWord.start

    def start(self: SayWord, view: View) -> Any:
        told = original(self, view)
        return told | ({"mode": "restore" if told["checkpoints"] else "fresh"} if told["mode"] == "finalize" else {})

    with patch.object(SayWord, "start", start):
        yield


@contextmanager
def polls_owe_nothing() -> Iterator[None]:
    """A poll does not send again what was lost."""
    with patch.object(poll_status, "owed", lambda _: ()):
        yield


@contextmanager
def unneeded_machines_stay() -> Iterator[None]:
    """A machine that was made for a job that gave it up meanwhile is kept."""
    original = machine_moves.machine_created

    def created(view: View, event: e.MachineCreated, now: datetime) -> Moved | None:
        before = view.attempts[event.instance_id]
        moved = original(view, event, now)
        if moved is None or before.ending:
            return moved
        return replace(moved, view=changed(moved.view, event.instance_id, ending=False))

    with patch.dict(MOVES, {e.MachineCreated: created}), patch.object(lifecycle, "_condemnation", lambda *_: None):
        yield


@contextmanager
def reaper_on_an_index() -> Iterator[None]:
    """The reaper believes an index that may be late."""

    def records(self: Any, machine: Any) -> Any:
        index = self.reap.store._index
        attempt = index.attempts.get(machine.cedana_id)
        return attempt, index.jobs.get(attempt.job_id) if attempt else None

    with patch.object(reap._Look, "_records", records):
        yield


@contextmanager
def released_before_it_is_stopped() -> Iterator[None]:
    """The agent gives the job back while its task still runs."""

    def leave(self: Agent, order: Ended) -> None:
        self.mail.report("released", checkpoint=None, reason=order.reason)
        self.mail.delivered(order.rank)
        self.mail.work(60, order.rank)

    with patch.object(Agent, "_leave", leave):
        yield


@contextmanager
def refusals_end_nothing() -> Iterator[None]:
    """A throttled order to end a machine counts as done, and as its end."""
    original = destroy_instance.DestroyInstance.__call__

    def destroy(self: Any, job_id: str, instance_id: str) -> None:
        try:
            original(self, job_id, instance_id)
        except ProviderUnavailable:
            self.ask.change(job_id, e.MachineGone(instance_id, "ordered"), instance_id)

    with patch.object(destroy_instance.DestroyInstance, "__call__", destroy):
        yield


MUTATIONS: Mapping[str, Callable[[], AbstractContextManager[None]]] = {
    "no intent before create": no_intent,
    "no epoch check": no_epoch_check,
    "pointer before parts": pointer_before_parts,
    "ownership passed by time alone": ownership_by_time,
    "reaper on a stale index": reaper_on_an_index,
    "effects dropped on redelivery": effects_dropped_on_redelivery,
    "saves without a version": no_version_check,
    "a lost answer counts as a refusal": lost_answer_is_a_refusal,
    "a hidden machine counts as none": hidden_is_none,
    "a restore that begins from nothing": fresh_after_a_loss,
    "a finished task that runs again": finished_tasks_run_again,
    "polls that send nothing again": polls_owe_nothing,
    "machines kept that nobody needs": unneeded_machines_stay,
    "released before the task is stopped": released_before_it_is_stopped,
    "an order that was not taken counts as an end": refusals_end_nothing,
}
"""Every mistake, by what it is."""
