"""The functions' entry points, as `functions/*/app.py` put use cases behind queues, bus and API."""

from collections.abc import Mapping
from typing import Any

from spotferry.domain.owed import owed
from spotferry.runtime.queues import Message
from spotferry.types.errors import InvalidInput, NotFound
from spotferry.usecases.archive_calls import Addresses, Commit
from spotferry.usecases.handle_interruption import Heard
from spotferry.usecases.hear_agent import LogChunk
from tests.simulation.deployment import Deployment
from tests.simulation.invariants import Referee
from tests.simulation.traffic import Parcel

Json = dict[str, Any]  # Any: JSON as clouds and protocol have it


class Handlers:
    """What each function does with what it is handed."""

    def __init__(self, deployment: Deployment, referee: Referee) -> None:
        self._deployment = deployment
        self._referee = referee

    def message(self, message: Message) -> None:
        """create_instance and destroy_instance."""
        made = self._deployment
        match message.kind:
            case "check_launch":
                made.check_launch(message.job_id, message.instance_id)
            case "destroy_instance":
                made.destroy(message.job_id, message.instance_id)
            case "hear_notice":
                made.interruption(message.event)
            case _:
                made.create(message.job_id)

    def event(self, told: Mapping[str, object]) -> None:
        """handle_interruption: an event about a machine that nobody knows comes back once."""
        try:
            if Heard.UNKNOWN in self._deployment.interruption(told):
                self._deployment.queues.hear_again(told)
        except InvalidInput as error:
            self._referee.violated("no error that nobody knows", f"an event is not what it should be: {error}")

    def agent(self, path: str, who: str, body: Json) -> Json:
        """receive_report."""
        made = self._deployment
        attempt = made.authenticate(who, body.get("epoch"), hello=path == "hello")
        log = LogChunk.of(body.get("log"))
        match path:
            case "hello":
                return made.greet(attempt, body.get("machine"))
            case "heartbeat":
                return made.hear.heartbeat(attempt, str(body.get("phase", "")), log)
            case "report":
                return made.hear.report(
                    attempt, str(body.get("event", "")), body.get("data") or {}, log, body.get("report")
                )
            case "uploads":
                return made.archive.addresses(attempt, Addresses.model_validate(body))
            case "uploads/commit":
                return made.archive.commit(attempt, Commit.model_validate(body))
        raise NotFound(f"agents have no call {path}")

    def poll(self) -> None:
        """poll_status: what it could not do is told, and nobody's fault but the run's."""
        polled = self._deployment.poll()
        reaped = self._deployment.reap(polled.attempts)
        for problem in (*polled.problems, *reaped.problems):
            if not any(known in problem for known in _KNOWN_PROBLEMS):
                self._referee.violated("no error that nobody knows", f"poll: {problem}")

    def settled(self, parcel: Parcel) -> None:
        """A call was answered: whatever its failed tries saved and did not send must have been sent."""
        debts, parcel.owed[:] = list(parcel.owed), []
        for debt in debts:
            view = self._deployment.raw_store.load(debt.job_id)
            sent = self._deployment.queues.sent.get(debt.effect)
            if debt.effect in owed(view) and (sent is None or sent < debt.since):
                words = f"{parcel.name} was answered, and {debt.effect} not sent"
                self._referee.violated("repeats send what is owed", words)


_KNOWN_PROBLEMS = (
    "AnswerLost",
    "OutageError",
    "NotYet",
    "NotQueued",
    "Conflict",
    "RequestLimitExceeded",
    "RequestTimeout",
    "busy",
    "no answer",
    "the time was up",
)
"""What the faults of a run are called in a poll's account."""
