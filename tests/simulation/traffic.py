"""What travels to the functions: queue messages, notices, calls and ticks; at least once, late, twice, out of order."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from spotferry.domain.view import Effect
from spotferry.runtime.http import invalid, status_of
from spotferry.runtime.queues import Message
from spotferry.types.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    NotYet,
    ProviderError,
    SpotferryError,
)
from tests.simulation.faults import Faults
from tests.simulation.invariants import Referee
from tests.simulation.steps import AnswerLost, Crash, Invocation, OutageError, Steps
from tests.simulation.virtual import VirtualTime

Json = dict[str, Any]  # Any: JSON as services and protocol have it

VISIBILITY_SECONDS = 360.0
RECEIVES = 5
BUS_RETRIES = (60.0, 120.0)
FUNCTION_SECONDS, API_SECONDS = 60.0, 29.0
ASKED_AGAIN = frozenset({408, 429, 500, 502, 503})
"""What a caller repeats its call after; any other answer is the last it hears."""
_KNOWN = (Crash, OutageError, Conflict, NotYet, ProviderError)
"""Errors that go back to the queue, the bus or the caller; any other out of a function is one that nobody knows."""


@dataclass(slots=True)
class Owed:
    """Effects that a run of a function saved and did not send, and when it had saved them."""

    job_id: str
    effect: Effect
    since: datetime


@dataclass(slots=True)
class Parcel:
    """One message on its way, and what became of it.

    Attributes:
        name: for the step list.
        work: what the function does with it.
        owed: by the runs of it that did not end well.
        tries: how often it was handed over.
    """

    name: str
    work: Callable[[], object]
    owed: list[Owed] = field(default_factory=list)
    tries: int = 0


class Functions:
    """Runs functions, each in a process of its own."""

    def __init__(self, time: VirtualTime, steps: Steps, referee: Referee, note: Callable[[str], None]) -> None:
        self.runs = 0
        self._time, self._steps, self._referee, self._note = time, steps, referee, note

    def run(self, parcel: Parcel, seconds: float, done: Callable[[BaseException | None, object], None]) -> None:
        """Hand a message to its function; `done` hears how it ended."""
        parcel.tries += 1
        self.runs += 1

        def body() -> None:
            invocation = self._steps.begin(parcel.name, seconds)
            failure: BaseException | None = None
            answer: object = None
            try:
                answer = parcel.work()
            except (Crash, Exception) as error:  # noqa: BLE001 (judged below)
                failure = error
            finally:
                self._steps.end()
            self._judge(parcel, invocation, failure)
            done(failure, answer)

        self._time.spawn(parcel.name, body)

    def _judge(self, parcel: Parcel, invocation: Invocation, failure: BaseException | None) -> None:
        if failure is not None:
            self._note(f"{parcel.name} failed: {type(failure).__name__}: {str(failure)[:100]}")
            now = self._time.now
            parcel.owed += [Owed(job, e, now) for job, unsent in invocation.unsent.items() for e in unsent]  # type: ignore[arg-type]  # only effects are unsent
        if failure is not None and not isinstance(failure, (*_KNOWN, SpotferryError, ValidationError)):
            words = f"{parcel.name}: {type(failure).__name__}: {failure}"
            self._referee.violated("no error that nobody knows", words)


class QueueService:
    """The queues, as the service's client: keeps messages and hands them over until they are done.

    Attributes:
        perform: what a message asks for.
    """

    def __init__(self, time: VirtualTime, functions: Functions, faults: Faults, note: Callable[[str], None]) -> None:
        self.perform: Callable[[Message], object] = lambda _: None
        self._time, self._functions, self._faults, self._note = time, functions, faults, note
        self._numbers = itertools.count(1)

    def send_message_batch(self, QueueUrl: str, Entries: Sequence[Mapping[str, Any]]) -> Json:  # noqa: N803 (the service's names)
        """Take messages; some may be refused, or the answer lost."""
        failed = [{"Id": e["Id"], "Code": "InternalError"} for e in Entries if self._faults.strikes("queue refused")]
        refused = {entry["Id"] for entry in failed}
        for entry in Entries:
            if entry["Id"] not in refused:
                self._take(entry["MessageBody"], float(entry["DelaySeconds"]))
        if self._faults.strikes("queue answer lost"):
            raise AnswerLost(f"{QueueUrl}: no answer")
        return {"Failed": failed}

    def send_message(self, QueueUrl: str, MessageBody: str, DelaySeconds: int) -> Json:  # noqa: N803 (the service's names)
        """Take one message."""
        assert QueueUrl
        self._take(MessageBody, float(DelaySeconds))
        return {}

    def _take(self, body: str, delay: float) -> None:
        message = Message.model_validate_json(body)
        parcel = Parcel(f"#{next(self._numbers)} {message.kind}", lambda: self.perform(message))
        if self._faults.strikes("message late"):
            delay += self._faults.seconds(5, 300)
        self._deliver_in(delay + 0.05, parcel)
        if self._faults.strikes("message twice"):
            self._deliver_in(delay + self._faults.seconds(0, 400), Parcel(f"{parcel.name} again", parcel.work))

    def _deliver_in(self, seconds: float, parcel: Parcel) -> None:
        self._time.after(seconds, lambda: self._functions.run(parcel, FUNCTION_SECONDS, self._done_with(parcel)))

    def _done_with(self, parcel: Parcel) -> Callable[[BaseException | None, object], None]:
        def done(failure: BaseException | None, _answer: object) -> None:
            if failure is None or isinstance(failure, InvalidInput | NotFound):
                return
            if parcel.tries < RECEIVES:
                self._deliver_in(VISIBILITY_SECONDS, parcel)
            else:
                self._note(f"{parcel.name} goes to the dead letters")

        return done


class Bus:
    """Events on their way to their function; the bus tries a failed one twice more."""

    def __init__(
        self, time: VirtualTime, functions: Functions, faults: Faults, hear: Callable[[Mapping[str, object]], None]
    ) -> None:
        self._time, self._functions, self._faults, self._hear = time, functions, faults, hear

    def put(self, name: str, envelope: Mapping[str, object]) -> None:
        """An event of a cloud's."""
        if self._faults.strikes("notice lost"):
            return
        copies = 2 if self._faults.strikes("notice twice") else 1
        for _ in range(copies):
            late = self._faults.seconds(5, 240) if self._faults.strikes("notice late") else self._faults.seconds(0.1, 3)
            self._deliver_in(late, Parcel(name, lambda: self._hear(envelope)))

    def _deliver_in(self, seconds: float, parcel: Parcel) -> None:
        def done(failure: BaseException | None, _answer: object) -> None:
            if failure is not None and parcel.tries <= len(BUS_RETRIES):
                self._deliver_in(BUS_RETRIES[parcel.tries - 1], parcel)

        self._time.after(seconds, lambda: self._functions.run(parcel, FUNCTION_SECONDS, done))


class Api:
    """Calls over HTTP: from agents, and from people."""

    def __init__(
        self, time: VirtualTime, functions: Functions, faults: Faults, settle: Callable[[Parcel], None]
    ) -> None:
        self._time, self._functions, self._faults, self._settle = time, functions, faults, settle

    def call(self, parcel: Parcel, answer: Callable[[int, Any], None]) -> None:  # Any: the answer's body
        """Carry a call to its function; the answer may be called later, twice, or not at all."""
        late = self._faults.delay() if self._faults.strikes("call late") else 0.05
        self._carry(late, parcel, answer)
        if self._faults.strikes("call twice"):
            self._carry(late + self._faults.delay(), parcel, lambda *_: None)

    def _carry(self, seconds: float, parcel: Parcel, answer: Callable[[int, Any], None]) -> None:  # Any: a body
        def done(failure: BaseException | None, body: object) -> None:
            status = 200 if failure is None else _status(failure)
            if status not in ASKED_AGAIN:
                self._settle(parcel)
            answer(status, body if failure is None else {"detail": str(failure)})

        self._time.after(seconds, lambda: self._functions.run(parcel, API_SECONDS, done))


def _status(failure: BaseException) -> int:
    if isinstance(failure, ValidationError):
        failure = invalid(failure)
    return status_of(failure).value if isinstance(failure, SpotferryError) else 502
