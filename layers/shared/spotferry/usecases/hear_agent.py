"""What an agent reports while it runs: heartbeats, events, and the log that rides along."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from pydantic import Field, ValidationError

from spotferry.domain import events as e
from spotferry.domain.machine_moves import TAKEN_BACK
from spotferry.domain.reported import Reported
from spotferry.domain.view import View
from spotferry.ports.cloud import COMMANDS, ObjectStore
from spotferry.types.base import Json, Record, Time
from spotferry.types.errors import IllegalTransition, InvalidInput, Problem, StaleAttempt
from spotferry.types.instance import Attempt
from spotferry.types.words import cut, sentence_of, shown
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.keys import log_key
from spotferry.usecases.launch import AskCloud
from spotferry.usecases.word import SayWord

_LOG_LIMIT_BYTES = 1024 * 1024
_MOST_EXIT_CODE = 255


class LogChunk(Record):
    """A piece of what setup and task printed; offset counts bytes from the attempt's start."""

    offset: int = Field(ge=0, lt=10**15)
    text: str

    @classmethod
    def of(cls, said: object) -> "LogChunk | None":
        """The piece in a message; None where it brings none.

        Raises:
            ValidationError: it is not what a piece should be.
        """
        return None if said is None else cls.model_validate(said)


class NoticeData(Record):
    """What an agent read from its cloud's metadata service."""

    kind: str
    code: str = ""
    deadline: Time | None = None


def _taken(instance_id: str, data: Mapping[str, Any]) -> e.Event | None:  # Any: JSON of the report
    notice = NoticeData.model_validate(data)
    if notice.kind == "rebalance":
        return e.RebalanceAdvised(instance_id, notice.code or notice.kind)
    if notice.kind != "take_back":
        return None
    return e.NoticeReceived(instance_id, notice.code or notice.kind, notice.deadline)


def _from(data: Mapping[str, Any], key: str) -> int | None:  # Any: JSON of the report
    value = data.get(key)
    return None if value is None else int(value)


def _exit_code(data: Mapping[str, Any]) -> int:  # Any: JSON of the report
    value = int(data["exit_code"])
    if not 0 <= value <= _MOST_EXIT_CODE:
        raise ValueError(f"exit_code {value} is not one from 0 to {_MOST_EXIT_CODE}")
    return value


def _command(data: Mapping[str, Any]) -> str:  # Any: JSON of the report
    name = str(data["command"])
    if name not in COMMANDS:
        raise ValueError(f"command {name!r:.40} is not one of {', '.join(COMMANDS)}")
    return name


def _seconds(data: Mapping[str, Any]) -> float:  # Any: JSON of the report
    value = float(data.get("seconds", 0))
    if not isfinite(value) or value < 0:
        raise ValueError(f"seconds is {value}")
    return value


_EVENTS: Mapping[str, Callable[[str, Mapping[str, Any]], e.Event | None]] = {  # Any: JSON of the report
    "setup_finished": lambda i, d: e.SetupFinished(i, _seconds(d)),
    "setup_failed": lambda i, d: e.SetupFailed(i, _exit_code(d), str(d.get("line") or "")[:500]),
    "startup_failed": lambda i, d: e.StartupFailed(i, str(d.get("reason", ""))[:1000]),
    "task_started": lambda i, d: e.TaskStarted(i, _from(d, "restored_from"), str(d.get("why_not") or "")[:1000]),
    "command_ended": lambda i, d: e.CommandEnded(i, _command(d), _exit_code(d), _seconds(d)),
    "checkpoint_failed": lambda i, d: e.CheckpointFailed(i, str(d.get("reason", ""))[:1000]),
    "task_exited": lambda i, d: e.TaskExited(i, _exit_code(d), outputs=bool(d.get("outputs"))),
    "outputs_failed": lambda i, d: e.OutputsFailed(i, str(d.get("reason", ""))[:1000]),
    "notice": _taken,
    "released": lambda i, d: e.Released(i, str(d.get("reason") or "")[:1000]),
}
"""How each report of docs/agent-protocol.md becomes an event."""


@dataclass(frozen=True, slots=True)
class HearAgent:
    """Keeps the log, applies the report, answers the word."""

    change: ChangeJob
    say: SayWord
    objects: ObjectStore
    ask: AskCloud

    def heartbeat(self, attempt: Attempt, phase: str, log: LogChunk | None) -> Json:
        """A sign of life; changes nothing but the time it was seen.

        Raises:
            StaleAttempt: the attempt no longer takes part.
        """
        self.change.store.touch_attempt(attempt.cedana_id, self.change.clock())
        offset = self.keep_log(attempt, log)
        view = self.change.store.load(attempt.job_id, attempt.cedana_id)
        return self.say(view, attempt.cedana_id, phase, offset)

    def report(
        self,
        attempt: Attempt,
        event: str,
        data: Mapping[str, Any],  # Any: JSON
        log: LogChunk | None,
        number: object = None,
    ) -> Json:
        """Something happened on the machine; `number` is the report's, None where it has none.

        Raises:
            InvalidInput: the event is not known or its data is not what it should be.
            StaleAttempt: the attempt no longer takes part.
            IllegalTransition: the job cannot take this event in its state.
        """
        offset = self.keep_log(attempt, log)
        what = _numbered(self._event(attempt, event, data), number)
        view = self._apply(attempt, what)
        if attempt.market == "spot" and _is_take_back(what):
            self.ask.take_back(attempt)
        return self.say(view, attempt.cedana_id, "waiting" if event == "setup_finished" else "", offset)

    def _event(self, attempt: Attempt, event: str, data: Mapping[str, Any]) -> e.Event | None:  # Any: JSON
        if event not in _EVENTS:
            raise InvalidInput([Problem("event", f"{shown(event)} is not one of {', '.join(_EVENTS)}")])
        if not isinstance(data, Mapping):
            raise InvalidInput([Problem("data", "must be an object")])
        try:
            return _EVENTS[event](attempt.cedana_id, data)
        except ValidationError as error:
            raise InvalidInput([Problem("data", f"is not what {event} should bring: {sentence_of(error)}")]) from error
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidInput([Problem("data", f"is not what {event} should bring: {cut(str(error))}")]) from error

    def _apply(self, attempt: Attempt, event: e.Event | None) -> View:
        if event is None:
            return self.change.store.load(attempt.job_id, attempt.cedana_id)
        try:
            return self.change(attempt.job_id, event, attempt.cedana_id)
        except IllegalTransition as error:
            view = self.change.store.load(attempt.job_id, attempt.cedana_id)
            if attempt.cedana_id not in {view.job.owner_id, view.job.successor_id}:
                raise StaleAttempt(str(error)) from error
            raise

    def keep_log(self, attempt: Attempt, log: LogChunk | None) -> int | None:
        """Store a piece of the log; how far it reaches, or None without one. A repeat overwrites itself."""
        if log is None or not log.text:
            return None
        try:
            body = log.text.encode()
        except UnicodeEncodeError as error:
            raise InvalidInput([Problem("log.text", "holds half of a character")]) from error
        if len(body) > _LOG_LIMIT_BYTES:
            raise InvalidInput([Problem("log", f"must hold {_LOG_LIMIT_BYTES} bytes at most")])
        end = log.offset + len(body)
        self.objects.put(log_key(attempt.job_id, attempt.epoch, log.offset, end), body, "text/plain; charset=utf-8")
        return end


def _numbered(event: e.Event | None, number: object) -> e.Event | None:
    """The event with the number of its report, where it has one; urgent ones have none."""
    if number is None or not isinstance(event, Reported):
        return event
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InvalidInput([Problem("report", f"{number!r:.40} is not a whole number from 1")])
    return replace(event, report=number)


def _is_take_back(event: e.Event | None) -> bool:
    """The machine is being taken back, by its own word."""
    return isinstance(event, e.NoticeReceived) or (isinstance(event, e.Released) and event.reason == TAKEN_BACK)
