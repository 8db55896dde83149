"""What an agent reports while it runs: heartbeats, events, and the log that rides along."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import Field, ValidationError

from spotferry.domain import events as e
from spotferry.domain.machine_moves import TAKEN_BACK
from spotferry.domain.reported import Reported
from spotferry.domain.view import View
from spotferry.ports.cloud import ObjectStore
from spotferry.types.base import Json, Record
from spotferry.types.errors import IllegalTransition, InvalidInput, StaleAttempt, wrong
from spotferry.types.faults import problems_of
from spotferry.types.instance import Attempt
from spotferry.types.words import shown
from spotferry.usecases.agent_reports import REPORTS
from spotferry.usecases.change import ChangeJob
from spotferry.usecases.keys import log_key
from spotferry.usecases.launch import AskCloud
from spotferry.usecases.word import SayWord

_LOG_LIMIT_BYTES = 1024 * 1024


class LogChunk(Record):
    """A piece of what setup and task printed; offset counts bytes from the attempt's start."""

    offset: int = Field(ge=0, lt=10**15)
    text: str

    @classmethod
    def of(cls, said: object) -> "LogChunk | None":
        """The piece in a message; None where it brings none.

        Raises:
            InvalidInput: it is not what a piece should be.
        """
        try:
            return None if said is None else cls.model_validate(said)
        except ValidationError as error:
            raise InvalidInput(problems_of(error, "log")) from error


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
        if event not in REPORTS:
            raise wrong("event", f"{shown(event)} is not one of {', '.join(REPORTS)}")
        try:
            return REPORTS[event].model_validate(data).event(attempt.cedana_id)
        except ValidationError as error:
            raise InvalidInput(problems_of(error, "data")) from error

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
            raise wrong("log.text", "holds half of a character") from error
        if len(body) > _LOG_LIMIT_BYTES:
            raise wrong("log", f"must hold {_LOG_LIMIT_BYTES} bytes at most")
        end = log.offset + len(body)
        self.objects.put(log_key(attempt.job_id, attempt.epoch, log.offset, end), body, "text/plain; charset=utf-8")
        return end


def _numbered(event: e.Event | None, number: object) -> e.Event | None:
    """The event with the number of its report, where it has one; urgent ones have none."""
    if number is None or not isinstance(event, Reported):
        return event
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise wrong("report", "must be a whole number from 1")
    return replace(event, report=number)


def _is_take_back(event: e.Event | None) -> bool:
    """The machine is being taken back, by its own word."""
    return isinstance(event, e.NoticeReceived) or (isinstance(event, e.Released) and event.reason == TAKEN_BACK)
