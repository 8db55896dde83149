"""The four steps that every change of a job takes: load, decide, save, perform the effects."""

from collections.abc import Callable
from dataclasses import dataclass

from spotferry.domain.events import Event
from spotferry.domain.lifecycle import decide
from spotferry.domain.owed import owed
from spotferry.domain.view import Decision, View
from spotferry.ports.cloud import Clock, EffectQueue
from spotferry.ports.store import JobStore
from spotferry.types.errors import Conflict, IllegalTransition, StaleAttempt

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
        for attempt in range(_TRIES):
            view = self.store.load(job_id, instance_id)
            try:
                return self.on(view, event)
            except Conflict:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError

    def on(self, view: View, event: Event | EventOf) -> View:
        """Decide on a view that is at hand, save, perform.

        What changes nothing may be the repeat of what was saved before a crash: all that is still owed is sent then,
        also where the event is refused, for whoever is refused does not ask again.

        Raises:
            Conflict: the view is not the latest; nothing was written and nothing sent.
            IllegalTransition, StaleAttempt: see `decide`.
        """
        now = self.clock()
        try:
            what = event(view) if callable(event) else event
            decision = Decision(view, owed(view)) if what is None else decide(view, what, now=now)
        except (IllegalTransition, StaleAttempt):
            self.queue.send(owed(view), now)
            raise
        self.store.save(view, decision)
        self.queue.send(decision.effects, now)
        return decision.view
