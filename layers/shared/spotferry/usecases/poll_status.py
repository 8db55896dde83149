"""The clouds are asked, time is looked at, and whatever was lost in between is repaired."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from spotferry.domain import events as e
from spotferry.domain.lifecycle import overdue
from spotferry.domain.owed import owed
from spotferry.domain.view import PlaceJob, View
from spotferry.ports.cloud import Clouds
from spotferry.types.errors import NotFound, SpotferryError
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Instance
from spotferry.usecases.ending import gone
from spotferry.usecases.launch import AskCloud

_READING = timedelta(seconds=30)
"""How long a poll reads jobs; half of its function's time is for the clouds and the repairs."""


@dataclass(slots=True)
class Polled:
    """What one poll saw and did.

    Attributes:
        jobs: unsettled jobs looked at.
        machines: machines that the clouds were asked about.
        events: events that were applied, by name of their class.
        effects: effects that were still owed and sent again.
        problems: what could not be looked at, in words; the rest was.
        attempts: the open attempts of those jobs by id, as they were read; for the reaper, and not told.
    """

    jobs: int = 0
    machines: int = 0
    events: dict[str, int] = field(default_factory=dict)
    effects: int = 0
    problems: list[str] = field(default_factory=list)
    attempts: dict[str, Attempt] = field(default_factory=dict, repr=False)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """As the log and the answer have it."""
        told = ("jobs", "machines", "events", "effects", "problems")
        return {name: getattr(self, name) for name in told}

    def count(self, event: e.Event) -> None:
        """One event more was applied."""
        name = type(event).__name__
        self.events[name] = self.events.get(name, 0) + 1


@dataclass(frozen=True, slots=True)
class PollStatus:
    """One sweep over all jobs that are not settled; where nothing changed nothing is written."""

    ask: AskCloud
    clouds: Clouds

    def __call__(self) -> Polled:
        """Sweep once; a cloud or a job that fails is reported and does not stop the others."""
        polled = Polled()
        views = list(self._unsettled(polled))
        polled.jobs = len(views)
        polled.attempts = {a.cedana_id: a for view in views for a in view.open_attempts()}
        seen: dict[str, Instance] = {}
        said: dict[str, ProviderEvent] = {}
        for attempts in _by_region(views).values():
            polled.machines += len(attempts)
            self._look(attempts, seen, said, polled)
        for view in views:
            try:
                self._repair(view, seen, said, polled)
            except Exception as error:  # noqa: BLE001 (whatever is wrong with one job, the others are not to blame)
                polled.problems.append(f"job {view.job.job_id}: {type(error).__name__}: {error}")
        return polled

    def _unsettled(self, polled: Polled) -> Iterator[View]:
        """The jobs to look at, as many as can be read in time; the store gives them in another order every time."""
        store, clock = self.ask.change.store, self.ask.change.clock
        until = clock() + _READING
        for read, job_id in enumerate(store.unsettled_jobs()):
            if clock() >= until:
                polled.problems.append(f"after {read} jobs the time was up; the next poll begins elsewhere")
                return
            try:
                view = store.load(job_id)
            except NotFound:
                continue
            except SpotferryError as error:
                polled.problems.append(f"job {job_id}: {error}")
                continue
            if not view.job.is_settled:
                yield view

    def _look(
        self,
        attempts: list[Attempt],
        seen: dict[str, Instance],
        said: dict[str, ProviderEvent],
        polled: Polled,
    ) -> None:
        first = attempts[0]
        try:
            provider = self.clouds.provider(first.provider)
            machines = provider.describe_instance(attempts, "")
            seen.update({machine.cedana_id: machine for machine in machines})
            said.update(provider.get_instance_statuses(machines))
        except SpotferryError as error:
            polled.problems.append(f"{first.provider} {first.region}: {error}")

    def _repair(
        self, view: View, seen: Mapping[str, Instance], said: Mapping[str, ProviderEvent], polled: Polled
    ) -> None:
        change = self.ask.change
        for attempt in view.open_attempts():
            event = _event(attempt, seen.get(attempt.cedana_id), said.get(attempt.cedana_id))
            if isinstance(event, e.MachineGone) and event.ended_by == "launch":
                view = self._settle(view, attempt)
                known = view.attempts.get(attempt.cedana_id)  # closed by somebody else meanwhile: not loaded any more
                event = None if known is None or known.is_gone else event
            if event is not None:
                polled.count(event)
                view = change(view.job.job_id, event, attempt.cedana_id)
        for late in overdue(view, change.clock()):
            polled.count(late)
            view = change(view.job.job_id, late, getattr(late, "instance_id", None))
        now = change.clock()
        due = [effect for effect in owed(view) if not (isinstance(effect, PlaceJob) and _later(effect, now))]
        polled.effects += len(due)
        change.queue.send(due, now)

    def _settle(self, view: View, attempt: Attempt) -> View:
        """The view with the failure of an accepted launch, which sets its pool aside; as it was where none is told."""
        try:
            return self.ask.settle(view.job.job_id, attempt) or view
        except SpotferryError:
            return view  # that the machine is gone is known all the same


def _by_region(views: Iterable[View]) -> Mapping[tuple[str, str], list[Attempt]]:
    """The machines to ask about, by the cloud and region that one call covers."""
    regions: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for view in views:
        for attempt in view.open_attempts():
            if attempt.allocated_id:
                regions[attempt.provider, attempt.region].append(attempt)
    return regions


def _event(attempt: Attempt, machine: Instance | None, said: ProviderEvent | None) -> e.Event | None:
    """What the cloud's view of a machine means; None while all is well, or nothing is known."""
    if machine is not None and machine.state == "terminated":
        return gone(machine, attempt.cedana_id, said)
    if attempt.noticed or attempt.ending:
        return None
    if said is not None and said.marked_for_termination:
        deadline = datetime.fromtimestamp(said.termination_time, UTC) if said.termination_time else None
        return e.NoticeReceived(attempt.cedana_id, said.fault_code, deadline)
    if machine is not None and machine.state in {"stopping", "shutting-down"}:
        return e.NoticeReceived(attempt.cedana_id, _reason(machine) or machine.state, by_cloud=False)
    return None


def _reason(machine: Instance) -> str:
    return machine.cloud_reason if isinstance(machine, Attempt) else ""


def _later(effect: PlaceJob, now: datetime) -> bool:
    return effect.not_before is not None and effect.not_before > now
