"""Virtual time: a heap of what is to happen, and processes that wait in it, all in one thread."""

import heapq
import itertools
from collections.abc import Callable
from datetime import datetime, timedelta

from greenlet import greenlet

_LEAST_SECONDS = 0.001
"""A wait takes some time, so that nobody waits for the rest of a rounding for ever."""


class Killed(BaseException):
    """The process was ended where it waited; nothing of it may catch this."""


class Process:
    """A run of code that may wait in the middle of anything it calls.

    Attributes:
        name: for the step list.
        alive: it has neither ended nor been killed.
        frozen_until: nothing wakes it before then.
    """

    def __init__(self, time: "VirtualTime", name: str, run: Callable[[], None]) -> None:
        self.name = name
        self.alive = True
        self.frozen_until = time.now
        self._time = time
        self._run = run
        self._ticket = 0
        self._greenlet: greenlet | None = greenlet(self._live, time.main)
        time.at(time.now, lambda: self._go(0, woken=True))

    def wait(self, seconds: float | None = None) -> bool:
        """Wait in virtual time; only the process itself may call it.

        Returns:
            Whether somebody woke it; False when the time was over.
        """
        assert self._time.current is self, f"{self.name} cannot wait while another process runs"
        self._ticket += 1
        ticket = self._ticket
        if seconds is not None:
            self._time.after(max(seconds, _LEAST_SECONDS), lambda: self._go(ticket, woken=False))
        return bool(self._time.main.switch())

    def wake(self) -> None:
        """End its wait, as soon as whoever runs now waits or ends."""
        ticket = self._ticket
        self._time.at(self._time.now, lambda: self._go(ticket, woken=True))

    def kill(self) -> None:
        """End it where it waits: nothing more of it happens."""
        if not self.alive:
            return
        self.alive = False
        if self._time.current is self:
            raise Killed
        self._time.at(self._time.now, self._end)

    def _live(self, _woken: object) -> None:
        try:
            self._run()
        except Killed:
            pass
        finally:
            self.alive = False

    def _go(self, ticket: int, *, woken: bool) -> None:
        """Called by the heap only: goes on, if it still waits for this."""
        if not self.alive or ticket != self._ticket or self._greenlet is None:
            return
        if self.frozen_until > self._time.now:
            self._time.at(self.frozen_until, lambda: self._go(ticket, woken=woken))
            return
        self._ticket += 1
        self._time.current = self
        try:
            self._greenlet.switch(woken)
        finally:
            self._time.current = None

    def _end(self) -> None:
        waits, self._greenlet = self._greenlet, None
        if waits:  # a greenlet is true while it runs or waits
            waits.throw(Killed)


class VirtualTime:
    """The clock, and what is to happen; nothing passes but in `run`.

    Attributes:
        now: the time.
        current: the process that runs; None outside of processes.
        main: where processes go back to when they wait.
    """

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.current: Process | None = None
        self.main = greenlet.getcurrent()
        self._heap: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def __call__(self) -> datetime:
        """The time."""
        return self.now

    def at(self, when: datetime, action: Callable[[], None]) -> None:
        """Do this then, behind what was asked for the same moment before."""
        heapq.heappush(self._heap, (max(when, self.now), next(self._numbers), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do this so much later."""
        self.at(self.now + timedelta(seconds=seconds), action)

    def spawn(self, name: str, run: Callable[[], None]) -> Process:
        """Start a process, as soon as whoever runs now waits or ends."""
        return Process(self, name, run)

    def sleep(self, seconds: float) -> None:
        """Let the process that runs wait so long."""
        assert self.current is not None, "only a process can wait"
        until = self.now + timedelta(seconds=seconds)
        while (left := (until - self.now).total_seconds()) > 0:
            self.current.wait(left)

    def run(self, until: datetime, stop: Callable[[], bool]) -> None:
        """Let things happen in their order.

        Args:
            until: go no further than this.
            stop: asked after each; True ends the run.
        """
        while self._heap and self._heap[0][0] <= until:
            when, _, action = heapq.heappop(self._heap)
            self.now = max(self.now, when)
            action()
            if stop():
                return
        self.now = max(self.now, until)
