"""The four steps that every change of a job takes: load, decide, save, perform the effects."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from spotferry.domain.events import Event
from spotferry.domain.lifecycle import decide
from spotferry.domain.owed import owed
from spotferry.domain.repeats import may_be_repeat, was_saved_lately
from spotferry.domain.view import Decision, View
from spotferry.ports.cloud import Clock, EffectQueue
from spotferry.ports.store import JobStore
from spotferry.types.errors import Conflict, IllegalTransition, SpotferryError, StaleAttempt

_TRIES = 6
"""Saves that may lose to somebody else's before the caller is told; two writers rarely meet twice."""

EventOf = Callable[[View], Event | None]
"""Makes the event from the job as it is now; None when nothing is to happen any more."""


@dataclass(frozen=True, slots=True)
class ChangeJob:
    """Applies one event to a job, on the version that was loaded, and sends on what is owed because of it."""

    store: JobStore
    queue: EffectQueue
    clock: Clock

    def __call__(self, job_id: str, event: Event | EventOf, instance_id: str | None = None) -> View:
        """Load, decide, save, perform; again from the start when somebody saved in between.

        Args:
            job_id: the job.
            event: what happened, or a function that makes it of the job as loaded.
            instance_id: the attempt it is about, so that it is loaded even when it is closed.

        Returns:
            The view as saved.

        Raises:
            NotFound: no such job or attempt.
            IllegalTransition, StaleAttempt: see `decide`.
            Conflict: others saved first, time and again.
        """
        return self.decided(job_id, event, instance_id).view

    def decided(self, job_id: str, event: Event | EventOf, instance_id: str | None = None) -> Decision:
        """The same, for callers who must know whether it was they who changed the job.

        Returns:
            What was decided; its `entry` is None where nothing changed, and so nothing was saved.
        """
        for attempt in range(_TRIES):
            view = self.store.load(job_id, instance_id)
            try:
                return self._decided_on(view, event)
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    def on(self, view: View, event: Event | EventOf) -> View:
        """Decide on a view that is at hand, save, perform.

        What changes nothing may be the repeat of what was saved before a crash: all that is still owed is sent then,
        also where a repeat is refused, for whoever is refused does not ask again.

        Raises:
            Conflict: the view is not the latest; nothing was written and nothing sent.
            IllegalTransition, StaleAttempt: see `decide`.
        """
        return self._decided_on(view, event).view

    def _decided_on(self, view: View, event: Event | EventOf) -> Decision:
        now = self.clock()
        what = event(view) if callable(event) else event
        try:
            decision = Decision(view, owed(view)) if what is None else decide(view, what, now=now)
        except (IllegalTransition, StaleAttempt) as refusal:
            if what is not None and may_be_repeat(view, what, now):
                self._send_beside(refusal, view, now)
            raise
        self.store.save(view, decision)
        self.queue.send(decision.effects, now)
        return decision

    def send_owed(self, job_id: str) -> None:
        """Send what a job that was changed lately owes, for a caller who is turned away before anything is decided: it
        may repeat what was saved.
        """
        view, now = self.store.load(job_id), self.clock()
        if was_saved_lately(view, now):
            self.queue.send(owed(view), now)

    def _send_beside(self, refusal: SpotferryError, view: View, now: datetime) -> None:
        """Send what is owed; where that fails, the caller hears of the refusal all the same, and the poll sends it."""
        try:
            self.queue.send(owed(view), now)
        except Exception as error:  # noqa: BLE001 (whatever is wrong with the queue, the refusal is the answer)
            refusal.add_note(f"what the job owes could not be sent, and is left to the poll: {error!r}")
