"""What happens to the world while a function or an agent looks elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Protocol

from local.market_model import (
    INTERNAL_ERROR,
    Machine,
    NotPossibleError,
    PoolPattern,
    Purchase,
    StateReason,
)
from local.market_stock import CapacityRule
from tests.simulation.clouds import OURS, SimMarket
from tests.simulation.faults import Faults
from tests.simulation.host import Host
from tests.simulation.invariants import Referee
from tests.simulation.offers import AWS, GCP, ZONES
from tests.simulation.people import People
from tests.simulation.virtual import VirtualTime

_BROKE = StateReason("Server.Unexplained", "Server.Unexplained: the machine is gone")
_LONGEST_NOTICE = 120.0
_SOON_SECONDS = 40.0


class Indexes(Protocol):
    """A store whose indexes can be late."""

    def freeze_indexes(self) -> None:
        """From now on they answer as of now."""

    def thaw_indexes(self) -> None:
        """They are up to date again."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What things can happen to: `indexes` is None where they cannot be made late; `note` keeps the step list."""

    time: VirtualTime
    faults: Faults
    market: SimMarket
    hosts: Mapping[str, Host]
    people: People
    referee: Referee
    indexes: Indexes | None
    note: Callable[[str], None]


class Happenings:
    """Draws when what happens, and to whom."""

    def __init__(self, scene: Scene, random: Random) -> None:
        self._time, self._faults, self._market, self._hosts = scene.time, scene.faults, scene.market, scene.hosts
        self._people, self._referee, self._indexes, self._note = scene.people, scene.referee, scene.indexes, scene.note
        self._random = random
        self._acts: Mapping[str, Callable[[], object]] = {
            "taken back": lambda: self._interrupt(false_notice=False),
            "taken back unannounced": lambda: self._kill(None),
            "false notice": lambda: self._interrupt(false_notice=True),
            "machine broke": lambda: self._kill(_BROKE),
            "zone exhausted": lambda: self._exhaust(PoolPattern(zone=random.choice(ZONES))),
            "cloud exhausted": lambda: self._exhaust(PoolPattern(provider=random.choice((AWS, GCP)))),
            "boot failed": self._fail_a_boot,
            "machine hidden": self._hide,
            "indexes stale": self._freeze_indexes,
            "agent vanished": self._vanish,
            "machine stalled": self._stall,
            "machine cut off": self._cut_off,
            "person ends machine": self._end_machine,
            "rebalance advised": self._advise,
            "person cancels": self._cancel,
            "person checkpoints": self._checkpoint,
            "person begins again": self._begin_again,
        }

    def plan(self, hours: float) -> None:
        """Draw all that will happen in so many hours."""
        for kind, rate in self._faults.hourly.items():
            at = 0.0
            while rate and (at := at + self._random.expovariate(rate)) < hours:
                self._time.after(at * 3600, lambda kind=kind: self._happen(kind))  # type: ignore[misc]  # mypy does not infer a default's type

    def follow(self) -> None:
        """A job changed: maybe something happens right behind it."""
        kind = self._faults.follow()
        if kind is not None:
            self._later(0, _SOON_SECONDS, lambda: self._happen(kind))

    def calm(self) -> None:
        """From now on nothing happens, and what was in the way is gone."""
        self._faults.on = False
        self._market.order_capacity(CapacityRule(PoolPattern(), None))
        self._market.delay_visibility(timedelta(0))
        for host in self._hosts.values():
            host.cut_off_until = self._time.now
        if self._indexes is not None:
            self._indexes.thaw_indexes()

    def _happen(self, kind: str) -> None:
        if self._faults.on and self._acts[kind]():
            self._faults.happened(kind)

    def _later(self, least: float, most: float, action: Callable[[], None]) -> None:
        self._time.after(self._random.uniform(least, most), action)

    def _machine(self) -> Machine | None:
        living = [m for m in self._market.everything() if m.live and m.request.tags["spotferry:deployment"] == OURS]
        return self._random.choice(living) if living else None

    def _host(self) -> Host | None:
        living = [host for host in self._hosts.values() if not host.dead]
        return self._random.choice(living) if living else None

    def _interrupt(self, *, false_notice: bool) -> bool:
        machine = self._machine()
        if machine is None:
            return False
        seconds = self._random.choice((0.0, 10.0, 30.0, _LONGEST_NOTICE, self._random.uniform(0, _LONGEST_NOTICE)))
        try:
            self._market.interrupt(machine.allocated_id, notice=timedelta(seconds=seconds), false_notice=false_notice)
        except NotPossibleError:
            return False
        really = "not really " if false_notice else ""
        self._note(f"{machine.allocated_id[:8]} is {really}taken back in {seconds:.0f} s")
        return True

    def _kill(self, reason: StateReason | None) -> bool:
        machine = self._machine()
        if machine is None:
            return False
        self._note(f"{machine.allocated_id[:8]} ends unannounced ({reason.code if reason else 'taken back'})")
        spot = machine.pool.purchase is Purchase.SPOT
        self._market.kill(machine.allocated_id, reason if spot else _BROKE)
        return True

    def _exhaust(self, pattern: PoolPattern) -> bool:
        self._note(f"nothing is left in {pattern.provider} {pattern.zone}")
        self._market.order_capacity(CapacityRule(pattern, 0))
        self._later(60, 2400, lambda: self._market.order_capacity(CapacityRule(pattern, None)))
        return True

    def _fail_a_boot(self) -> bool:
        self._market.fail_boots(1, INTERNAL_ERROR)
        return True

    def _hide(self) -> bool:
        seconds = self._random.uniform(5, 240)
        self._note(f"new machines are hidden for {seconds:.0f} s")
        self._market.delay_visibility(timedelta(seconds=seconds))
        self._later(60, 900, lambda: self._market.delay_visibility(timedelta(0)))
        return True

    def _freeze_indexes(self) -> bool:
        if self._indexes is None:
            return False
        self._indexes.freeze_indexes()
        self._later(20, self._random.choice((400, 1500)), self._indexes.thaw_indexes)
        return True

    def _vanish(self) -> bool:
        host = self._host()
        if host is None:
            return False
        self._note(f"{host.instance_id[:6]}: its agent vanishes")
        host.power_off()
        return True

    def _stall(self) -> bool:
        host = self._host()
        if host is None:
            return False
        seconds = self._random.choice((30.0, 300.0, 2000.0)) * self._random.uniform(0.2, 1.2)
        self._note(f"{host.instance_id[:6]} stalls for {seconds:.0f} s")
        host.freeze(self._time.now + timedelta(seconds=seconds))
        return True

    def _cut_off(self) -> bool:
        host = self._host()
        if host is None:
            return False
        seconds = self._random.choice((30.0, 300.0, 2400.0)) * self._random.uniform(0.2, 1.2)
        self._note(f"{host.instance_id[:6]} is cut off for {seconds:.0f} s")
        host.cut_off_until = self._time.now + timedelta(seconds=seconds)
        return True

    def _end_machine(self) -> bool:
        living = [attempt.cedana_id for attempt in self._referee.attempts.values() if not attempt.is_gone]
        if living:
            self._people.end_machine(self._random.choice(living[-2:]))
        return bool(living)

    def _advise(self) -> bool:
        machine = self._machine()
        if machine is None:
            return False
        self._note(f"{machine.allocated_id[:8]} may be taken back soon")
        self._market.rebalance(machine.allocated_id)
        return True

    def _checkpoint(self) -> bool:
        running = [job_id for job_id, truth in self._referee.jobs.items() if truth.running]
        if running:
            self._people.checkpoint(self._random.choice(running))
        return bool(running)

    def _begin_again(self) -> bool:
        over = [job_id for job_id, truth in self._referee.jobs.items() if truth.job.state.is_final]
        if over:
            self._people.begin_again(self._random.choice(over))
        return bool(over)

    def _cancel(self) -> bool:
        open_jobs = [job_id for job_id, truth in self._referee.jobs.items() if not truth.job.state.is_final]
        if open_jobs:
            self._people.cancel(self._random.choice(open_jobs))
        return bool(open_jobs)
