"""Every awaited step of a function: the place where it may crash, be slow, be refused, or lose its answer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from spotferry.types.errors import NotYet, ProviderUnavailable, TryAgainLater
from tests.simulation.faults import Faults
from tests.simulation.virtual import Process, VirtualTime

READS = frozenset({"get_job", "load", "list_jobs", "unsettled_jobs", "get_attempt", "find_attempt", "attempts_of"})
"""Steps at tables whose answer may not be lost: to lose it is to be refused."""

LONGEST_STEP_SECONDS = 20.0
"""How slow a step can be, a launch call among them: no less than the clouds' own calls may take."""

_BUSY = timedelta(seconds=5)


class Crash(BaseException):
    """The function's process is gone at this step; it takes nothing with it and cleans nothing up."""


class OutageError(Exception):
    """A service of the broker's own failed in a way that it has no error of ours for."""


class AnswerLost(OutageError):
    """A service did what it was asked for, and could not say so."""


@dataclass(slots=True)
class Invocation:
    """One run of a function.

    Attributes:
        name: of the function.
        deadline: the platform ends it then.
        unsent: effects of its saves that it has not sent yet, by job.
    """

    name: str
    deadline: datetime
    unsent: dict[str, set[object]] = field(default_factory=dict)


class Steps:
    """Takes the steps of all functions."""

    def __init__(self, time: VirtualTime, faults: Faults, note: Callable[[str], None]) -> None:
        self._time = time
        self._faults = faults
        self._note = note
        self._running: dict[Process, Invocation] = {}

    @property
    def invocation(self) -> Invocation | None:
        """The one whose step this is; None outside of functions."""
        return self._running.get(self._time.current) if self._time.current else None

    def begin(self, name: str, seconds: float) -> Invocation:
        """The process that runs is a function's from now on."""
        assert self._time.current is not None
        invocation = Invocation(name, self._time.now + timedelta(seconds=seconds))
        self._running[self._time.current] = invocation
        return invocation

    def end(self) -> None:
        """It is none any more."""
        if self._time.current:
            self._running.pop(self._time.current, None)

    def take(self, kind: str, name: str, call: Callable[[], Any]) -> Any:  # Any: what the step answers
        """One step; outside of functions nothing strikes."""
        invocation = self.invocation
        if invocation is None:
            return call()
        what = f"{kind}.{name}"
        if what == "cloud.create_instance" and self._faults.strikes("launch late"):
            self._note(f"{what} is late")
            self._time.sleep(self._faults.seconds(2, LONGEST_STEP_SECONDS))
        else:
            self._wait(what)
        if self._faults.strikes("crash before a step"):
            self._crash(f"before {what}")
        if self._time.now >= invocation.deadline:
            self._crash(f"before {what}: its time is up")
        self._refuse(kind, name)
        answer = call()
        if self._faults.strikes("crash after a step"):
            self._crash(f"after {what}")
        self._lose(kind, name)
        return answer

    def _wait(self, what: str) -> None:
        if self._faults.strikes("slow step"):
            self._note(f"{what} is slow")
            self._time.sleep(self._faults.seconds(2, LONGEST_STEP_SECONDS))
        elif self._faults.strikes("interleaved step"):
            self._time.sleep(self._faults.seconds(0.001, 1.5))

    def _crash(self, where: str) -> None:
        self._note(f"CRASH {where}")
        raise Crash(where)

    def _refuse(self, kind: str, name: str) -> None:
        if kind == "cloud" and self._faults.strikes("cloud throttled"):
            self._note(f"cloud.{name} is throttled")
            if name == "create_instance":
                raise TryAgainLater("RequestLimitExceeded", "slow down")
            raise ProviderUnavailable("RequestLimitExceeded", "slow down")
        if kind == "store" and self._faults.strikes("table busy"):
            self._note(f"store.{name}: busy")
            raise NotYet("the database is busy", _BUSY)
        if kind == "bucket" and self._faults.strikes("bucket failed"):
            self._note(f"bucket.{name} fails")
            raise OutageError(f"bucket.{name}: 503 Slow Down")

    def _lose(self, kind: str, name: str) -> None:
        lost = "launch answer lost" if name == "create_instance" else "cloud answer lost"
        if kind == "cloud" and self._faults.strikes(lost):
            self._note(f"the answer of cloud.{name} is lost")
            raise ProviderUnavailable("RequestTimeout", "no answer")
        if kind == "store" and name not in READS and self._faults.strikes("table answer lost"):
            self._note(f"the answer of store.{name} is lost")
            raise NotYet("no answer", _BUSY)


class Awaited:
    """Stands before an adapter: every call of a method is a step.

    Args:
        target: the adapter.
        kind: of its steps.
        steps: takes them.
        free: methods that are no calls to anybody.
    """

    def __init__(self, target: object, kind: str, steps: Steps, free: frozenset[str] = frozenset()) -> None:
        self._target = target
        self._kind = kind
        self._steps = steps
        self._free = free

    def __getattr__(self, name: str) -> Any:  # Any: whatever the adapter has
        value = getattr(self._target, name)
        if not callable(value) or name in self._free:
            return value

        def step(*args: Any, **options: Any) -> Any:  # Any: as the adapter takes them
            return self._steps.take(self._kind, name, lambda: value(*args, **options))

        self.__dict__[name] = step
        return step
