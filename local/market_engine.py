"""The engine under the market: machines, the timers that move them through their lives, and who hears of it."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from local.market_model import (
    EventKind,
    Machine,
    MachineState,
    MarketEvent,
    StateReason,
    Timings,
    UnknownMachineError,
)
from local.market_stock import Stock

Clock = Callable[[], datetime]
Listener = Callable[[MarketEvent], None]
_IDLE = timedelta(seconds=60)


class MarketEngine:
    """Keeps the machines and the time. Every public method is safe to call from many threads."""

    def __init__(self, clock: Clock, seed: int, timings: Timings, *, external_power: bool) -> None:
        self.timings = timings
        self.stock = Stock(seed)
        self._clock = clock
        self._external_power = external_power
        self._changed = threading.Condition(threading.RLock())
        self._machines: dict[str, Machine] = {}
        self._timers: list[tuple[datetime, int, Callable[[datetime], None]]] = []
        self._sequence = itertools.count(1)
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """Call the listener with every event, in order, under the market's lock: it must hand over and return."""
        with self._changed:
            self._listeners.append(listener)

    def now(self) -> datetime:
        """The market's time."""
        return self._clock()

    def advance(self) -> datetime:
        """Do everything that has come due, at the time it was due; answer the present."""
        with self._changed:
            now = self._clock()
            while self._timers and self._timers[0][0] <= now:
                due, _, action = heapq.heappop(self._timers)
                action(due)
            return now

    def run(self, stop: threading.Event) -> None:
        """Keep advancing as things come due, until `stop` is set and `wake` called."""
        with self._changed:
            while not stop.is_set():
                now = self.advance()
                until = self._timers[0][0] - now if self._timers else _IDLE
                self._changed.wait(min(until, _IDLE).total_seconds())

    def wake(self) -> None:
        """Let `run` look at its stop event."""
        with self._changed:
            self._changed.notify_all()

    def get(self, allocated_id: str) -> Machine:
        """The machine with this id, visible or not.

        Raises:
            UnknownMachineError: there never was one.
        """
        with self._changed:
            self.advance()
            if allocated_id not in self._machines:
                raise UnknownMachineError((allocated_id,))
            return self._machines[allocated_id]

    def everything(self) -> list[Machine]:
        """Every machine ever sold, in the order of sale."""
        with self._changed:
            self.advance()
            return list(self._machines.values())

    def visible(self, provider: str, region: str) -> list[Machine]:
        """The region's machines that an API shows now, in the order of sale."""
        with self._changed:
            now = self.advance()
            return [m for m in self._machines.values() if _shown(m, provider, region, now)]

    def find(self, provider: str, region: str, allocated_ids: Iterable[str]) -> list[Machine]:
        """The machines with these ids.

        Raises:
            UnknownMachineError: it names every id that an API of the region does not show now.
        """
        with self._changed:
            now = self.advance()
            ids = list(dict.fromkeys(allocated_ids))
            found = [m for m in map(self._machines.get, ids) if m is not None and _shown(m, provider, region, now)]
            missing = tuple(sorted(set(ids) - {m.allocated_id for m in found}))
            if missing:
                raise UnknownMachineError(missing)
            return found

    def powered_off(self, allocated_id: str) -> None:
        """Nothing of the machine runs any more; called by whoever owns its power."""
        with self._changed:
            self._off(self.get(allocated_id), self.now(), confirmed=True)

    def _keep(self, machine: Machine) -> None:
        """Put the machine on the list; who asks for a name that is used again means the new machine."""
        before = self._machines.pop(machine.allocated_id, None)
        if before is not None:
            self._machines[f"{machine.allocated_id} #{before.serial}"] = before
        self._machines[machine.allocated_id] = machine

    def _end(self, machine: Machine, reason: StateReason, at: datetime) -> None:
        if machine.state in {MachineState.SHUTTING_DOWN, MachineState.TERMINATED}:
            return
        self._leave_service(machine, reason, at)
        self._go(machine, MachineState.SHUTTING_DOWN, at)
        self._in(self.timings.shutdown, at, lambda later: self._off(machine, later))

    def _leave_service(self, machine: Machine, reason: StateReason, at: datetime) -> None:
        if machine.held:
            self.stock.give_back(machine.request)
            machine.billing_ended_at = at
        machine.reason = reason

    def _off(self, machine: Machine, at: datetime, *, confirmed: bool = False) -> None:
        if self._external_power and not confirmed:
            return
        if machine.state is MachineState.STOPPING:
            self._go(machine, MachineState.STOPPED, at)
        elif machine.state is MachineState.SHUTTING_DOWN:
            machine.ended_at = at
            self._go(machine, MachineState.TERMINATED, at)
            self._in(self.timings.terminated_visible, at, lambda _: setattr(machine, "forgotten", True))

    def _go(self, machine: Machine, state: MachineState, at: datetime) -> None:
        machine.state = state
        machine.state_since = at
        self._tell(machine, EventKind.STATE, state, at)

    def _tell(self, machine: Machine, kind: EventKind, value: str, at: datetime) -> None:
        pool = machine.pool
        event = MarketEvent(kind, machine.allocated_id, pool.provider, pool.region, value, at)
        for listener in self._listeners:
            listener(event)

    def _in(self, delay: timedelta, start: datetime, action: Callable[[datetime], None]) -> None:
        self._at(start + delay, action)

    def _at(self, due: datetime, action: Callable[[datetime], None]) -> None:
        heapq.heappush(self._timers, (due, next(self._sequence), action))
        self._changed.notify_all()


def _shown(machine: Machine, provider: str, region: str, now: datetime) -> bool:
    here = machine.pool.provider == provider and machine.pool.region == region
    return here and not machine.forgotten and machine.visible_at <= now
