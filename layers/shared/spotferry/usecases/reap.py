"""Machines that nobody owns are ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from spotferry.domain.ownership import is_of, why_nobodys
from spotferry.ports.cloud import Clock, CloudProvider, Clouds
from spotferry.ports.store import JobStore, SightingStore
from spotferry.types.errors import NotFound, SpotferryError
from spotferry.types.faults import words_of
from spotferry.types.instance import Attempt, Instance
from spotferry.types.job import Job
from spotferry.usecases.reap_rounds import Region, Rounds

APART = timedelta(seconds=30)
"""Two looks count as two polls when they are so far apart: a poll that was delivered twice is one."""

ENDING = timedelta(minutes=5)
"""How long a machine that is ending already is left to it."""

REMEMBERED = timedelta(minutes=15)
"""How long a first look counts: after that, a machine is seen for the first time again."""

_LOOKING = timedelta(seconds=15)
"""How long regions are begun; the rest of the function's time is for the last of them."""


class ReaperStore(JobStore, SightingStore, Protocol):
    """Where machines' records and the reaper's own notes are."""


@dataclass(slots=True)
class Reaped:
    """What the reaper saw and did.

    Attributes:
        regions: regions that were listed whole.
        machines: machines of ours in them.
        ownerless: those that nobody owns, ended or not.
        ended: machines whose end was ordered, with the reason, in words.
        problems: what could not be looked at or ended, in words; the rest was.
    """

    regions: int = 0
    machines: int = 0
    ownerless: int = 0
    ended: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reap:
    """One look at every region that was ever used and is due; where all is as it should be nothing is written.

    A machine is ended when its cloud lists it under this deployment's tag and a consistent read of its record says at
    two polls that nobody owns it. What a listing does not show means nothing, so one that fails or is cut short ends
    nothing. A machine whose record is open is its job's business, whatever state it is in: `PollStatus` sees to it.

    Attributes:
        store: records and notes.
        clouds: the clouds.
        clock: tells the time.
        visibility: a machine that is younger is left alone.
        rounds: which regions are due; kept from poll to poll.
    """

    store: ReaperStore
    clouds: Clouds
    clock: Clock
    visibility: timedelta
    rounds: Rounds

    def __call__(self, known: Mapping[str, Attempt]) -> Reaped:
        """Look once; a region or a machine that fails is reported and does not stop the others.

        Args:
            known: open attempts of unsettled jobs by id, read consistently a moment ago: their machines need no look.
        """
        reaped = Reaped()
        begun = self.clock()
        busy = {(attempt.provider, attempt.region) for attempt in known.values()}
        due = self.rounds.due(self.store.used_regions(), busy, begun)
        for number, region in enumerate(due):
            if self.clock() >= begun + _LOOKING:
                left = len(due) - number
                reaped.problems.append(f"the time was up with {left} regions to list; the next poll begins with them")
                break
            try:
                _Look(self, self.clouds.provider(region[0]), region, known, reaped)()
            except Exception as error:  # noqa: BLE001 (whatever is wrong with one region, the others are not to blame)
                reaped.problems.append(f"{' '.join(region)}: {words_of(error)}")
        return reaped


@dataclass(slots=True)
class _Look:
    """At one region."""

    reap: Reap
    provider: CloudProvider
    region: Region
    known: Mapping[str, Attempt]
    reaped: Reaped
    first_seen: Mapping[str, datetime] | None = None

    def __call__(self) -> None:
        now = self.reap.clock()
        for machine in self.provider.owned_instances(self.region[1]):
            self.reaped.machines += 1
            self.reap.rounds.use(self.region, now)
            attempt = self.known.get(machine.cedana_id)
            if attempt is not None and is_of(machine, attempt):
                continue
            try:
                self._judge(machine, now)
            except SpotferryError as error:  # a record that cannot be read says nothing
                self.reaped.problems.append(f"{self._name(machine)}: {error}")
        self.reaped.regions += 1
        self.reap.rounds.listed(self.region, now)

    def _judge(self, machine: Instance, now: datetime) -> None:
        if machine.created_at is not None and now - machine.created_at < self.reap.visibility:
            return
        why = why_nobodys(machine, *self._records(machine))
        if not why:
            return
        self.reaped.ownerless += 1
        seen = self._first_seen(machine, why, now)
        patience = ENDING if machine.state == "shutting-down" else APART
        born = machine.created_at or seen
        if now - seen >= patience and now - born >= self.reap.visibility:
            self._end(machine, why)

    def _records(self, machine: Instance) -> tuple[Attempt | None, Job | None]:
        """The attempt that the machine was launched for, else the one that got it for an answer; and its job."""
        store = self.reap.store
        try:
            attempt: Attempt | None = store.get_attempt(machine.cedana_id)
        except NotFound:
            attempt = store.find_attempt(*self.region, machine.allocated_id)
        if attempt is None or attempt.is_gone:
            return attempt, None
        try:
            return attempt, store.get_job(attempt.job_id)
        except NotFound:
            return attempt, None

    def _first_seen(self, machine: Instance, why: str, now: datetime) -> datetime:
        """When it was first seen without an owner; noted if that is now."""
        store = self.reap.store
        if self.first_seen is None:
            self.first_seen = store.sightings(*self.region, now)
        if machine.allocated_id not in self.first_seen:
            store.note_sighting(*self.region, machine.allocated_id, now, now + REMEMBERED, why)
        return self.first_seen.get(machine.allocated_id, now)

    def _end(self, machine: Instance, why: str) -> None:
        self.provider.destroy_instance(machine)
        self.reaped.ended.append(f"{self._name(machine)}: {why}")

    def _name(self, machine: Instance) -> str:
        return f"{' '.join(self.region)} {machine.allocated_id}"
