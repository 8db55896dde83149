"""What the agent was told, from whatever side, and how the work waits for it."""

from __future__ import annotations

import threading
from typing import Callable, Optional, Tuple, TypeVar

from spotferry.agent.broker import Json
from spotferry.agent.clock import Clock
from spotferry.agent.errors import RANKS, Ended, Order

T = TypeVar("T")

TAKEN_BACK = "instance_termination"
"""The reason of a checkpoint that is made because the machine goes."""

_URGENT = ("", TAKEN_BACK)


class Orders:
    """The mailbox between the threads that listen (link, watch, signals) and the one that works.

    An order that ends the attempt stands for ever, and gives way only to one of higher rank. Any other directive stands
    until a newer word, or until the work moves on (`settle`): a word whose call was sent before that is not news.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._order: Optional[Order] = None
        self._word: Tuple[float, Json] = (float("-inf"), {})
        self._settled_at = float("-inf")
        self._checkpoint_seconds: Optional[float] = None

    @property
    def checkpoint_seconds(self) -> Optional[float]:
        """How long the broker wants it to be between two checkpoints; None: none without an order."""
        return self._checkpoint_seconds

    def heard(self, word: Json, sent_at: float) -> None:
        """The broker's word, in answer to a call that was sent at `sent_at`."""
        directive = word.get("directive") or {}
        kind, reason = str(directive.get("kind", "")), str(directive.get("reason") or "")
        if kind in RANKS:
            self.end(Order(kind, reason, urgent=kind == "release" and reason in _URGENT))
            return
        with self._changed:
            if sent_at >= self._word[0]:
                self._word = (sent_at, word)
                self._checkpoint_seconds = positive_seconds(word.get("checkpoint_seconds"))
            self._changed.notify_all()

    def end(self, order: Order) -> None:
        """An order that ends the attempt; a repeat, or one of lower rank, changes nothing."""
        with self._changed:
            if self._order is None or order.rank > self._order.rank:
                self._order = order
            self._changed.notify_all()

    def poke(self) -> None:
        """Something else happened that the work may be waiting for."""
        with self._changed:
            self._changed.notify_all()

    def settle(self) -> None:
        """The work moved on; what was asked before is done or void."""
        with self._changed:
            self._settled_at = self._clock.monotonic()

    def standing(self, kind: str) -> Optional[Json]:
        """The newest word, if its directive is of this kind and news."""
        with self._changed:
            return self._standing(kind)

    def check(self, rank: int = 0) -> None:
        """Raise `Ended` when there is an order above the rank of what is being done."""
        with self._changed:
            self._check(rank)

    def wait(self, ready: Callable[[], Optional[T]], *, rank: int = 0, timeout: Optional[float] = None) -> Optional[T]:
        """What `ready` returns as soon as that is not None; None when the time is over.

        Args:
            ready: quick; called again after everything that happens.
            rank: of what is being done.
            timeout: seconds.

        Raises:
            Ended: an order above the rank came first.
        """
        until = None if timeout is None else self._clock.monotonic() + timeout
        with self._changed:
            while True:
                self._check(rank)
                if (answer := ready()) is not None:
                    return answer
                left = None if until is None else until - self._clock.monotonic()
                if left is not None and left <= 0:
                    return None
                self._changed.wait(left)

    def wait_for(self, kind: str) -> Json:
        """The word that brings a directive of this kind.

        Raises:
            Ended: an order to end came first.
        """
        word = self.wait(lambda: self._standing(kind))
        assert word is not None
        return word

    def _check(self, rank: int) -> None:
        if self._order is not None and self._order.rank > rank:
            raise Ended(self._order)

    def _standing(self, kind: str) -> Optional[Json]:
        sent_at, word = self._word
        news = sent_at >= self._settled_at
        return word if news and (word.get("directive") or {}).get("kind") == kind else None


def positive_seconds(value: object) -> Optional[float]:
    """A number of seconds; None for anything else."""
    return float(value) if isinstance(value, (int, float)) and value > 0 else None
