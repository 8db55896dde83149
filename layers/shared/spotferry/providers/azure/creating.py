"""The PUT that makes a machine, the first verdict on it, and what happens to one that came to nothing."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from io import BytesIO
from typing import Any

from azure.core import MatchConditions
from azure.core.pipeline import PipelineResponse
from azure.core.rest import HttpRequest

from spotferry.providers.azure import parts
from spotferry.providers.azure.api import Calls, Connection
from spotferry.providers.azure.describe import Seen, checked
from spotferry.providers.azure.errors import (
    MALFORMED,
    MALFORMED_ANSWER,
    Failure,
    NotThere,
    launch_error,
    missing_or_error,
    operation_error,
    words_of,
)
from spotferry.types.errors import CapacityError, ProviderError, ProviderUnavailable

VERDICT_AFTER_SECONDS = 4.0
"""When a launch that was accepted is looked at: most stockouts are known by then, and the rest is settled later."""
_FAILED = frozenset({"failed", "canceled"})


class AlreadyThere(ProviderError):
    """A machine of this name is there: this launch made it before."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What Azure answered: the machine that it makes, and where the operation tells how that goes."""

    seen: Seen
    operation: str


@dataclass(frozen=True, slots=True)
class Place:
    """A machine's group and name, and whose image it boots: what its errors need."""

    group: str
    name: str
    own_image: bool = False


def put(calls: Calls, place: Place, body: Mapping[str, object]) -> Accepted:
    """Make the machine, if there is none of its name.

    Raises:
        AlreadyThere: there is one.
        CapacityError: refused; nothing was made.
        ProviderUnavailable: no verdict.
    """

    def refusal(failure: Failure, region: str) -> ProviderError:
        if failure.exists:
            return AlreadyThere(failure.code, failure.message, region)
        return launch_error(failure, region, own_image=place.own_image)

    answer = calls.ask(lambda c: _sent(c, place, body), refusal)
    try:
        seen = checked(answer.json())
    except MALFORMED as error:
        raise ProviderUnavailable(MALFORMED_ANSWER, f"{place.name}: {error}"[:500], calls.region) from error
    return Accepted(seen, str(answer.headers.get("Azure-AsyncOperation") or ""))


# Any: the response's type depends on the transport.
def _sent(connection: Connection, place: Place, body: Mapping[str, object]) -> Any:
    answers: list[Any] = []

    def keep(answer: PipelineResponse[Any, Any]) -> None:
        answers.append(answer.http_response)

    connection.compute.virtual_machines.begin_create_or_update(
        place.group,
        place.name,
        BytesIO(json.dumps(body).encode()),
        etag="*",
        match_condition=MatchConditions.IfMissing,
        polling=False,
        raw_response_hook=keep,
    )
    return answers[-1]


def await_verdict(calls: Calls, accepted: Accepted, place: Place) -> None:
    """Look, some seconds later, whether the launch failed at once; what is not known then is settled later.

    Raises:
        CapacityError: it failed; the order to delete what it left has been given.
        ProviderUnavailable: it failed, and that order was not accepted: ask again.
    """
    if not accepted.operation or not calls.deadline.wait(VERDICT_AFTER_SECONDS):
        return
    try:
        told = calls.ask(lambda c: c.send(HttpRequest("GET", accepted.operation)).json())
        failed = str(told["status"]).lower() in _FAILED
    except (ProviderError, *MALFORMED):
        return
    if failed:
        code, message = words_of(told)
        raise undone(calls, place, code or "OperationFailed", message)


def undone(calls: Calls, place: Place, code: str, message: str) -> CapacityError:
    """Order the end of a machine that came to nothing, which takes what belongs to it along; the error to tell.

    Raises:
        ProviderUnavailable: the order was not accepted.
    """
    try:
        delete(calls, place)
    except ProviderError as error:
        words = f"{place.name} failed ({code}) and could not be deleted: {error.message}"
        raise ProviderUnavailable(error.code, words, calls.region) from error
    return operation_error(code, message, calls.region, own_image=place.own_image)


def delete(calls: Calls, place: Place) -> None:
    """Order the end of a machine; of one that is gone, the end of all that it may have left.

    Deleting ends the bill of a machine that has switched itself off, too. Nothing of it is waited for: the task has
    been stopped, or is lost.

    Raises:
        ProviderError: the order was not accepted.
    """
    statuses: list[int] = []

    def ask(connection: Connection) -> None:
        connection.compute.virtual_machines.begin_delete(
            place.group,
            place.name,
            force_deletion=True,
            polling=False,
            raw_response_hook=lambda answer: statuses.append(answer.http_response.status_code),
        )

    try:
        calls.ask(ask, missing_or_error)
    except NotThere:
        statuses.append(HTTPStatus.NO_CONTENT)
    if statuses[-1] == HTTPStatus.NO_CONTENT:
        parts.delete_parts(calls.again(), place.group, place.name)
