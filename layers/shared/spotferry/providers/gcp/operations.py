"""Zone operations: how a launch is going, and what ended a machine."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from google.cloud.compute_v1 import Instance, Operation

from spotferry.providers.asked import batches
from spotferry.providers.ends import Cause, ended_by
from spotferry.providers.gcp.api import Calls
from spotferry.providers.gcp.errors import Failure, launch_error, operation_failure
from spotferry.providers.gcp.states import INSERT, OPERATIONS
from spotferry.types.errors import CapacityError, ProviderError, ProviderUnavailable
from spotferry.types.instance import EndedBy

_NAME = re.compile(r"[a-z0-9-]{1,63}")
DONE = Operation.Status.DONE
NAMES_A_CALL = 50
"""Names that one filter takes; the address of the call has its limit."""
PAGE = 500
_LOOKS_AFTER_SECONDS = (1.0, 2.0, 3.0)
"""When a launch that was accepted is looked at: most refusals for want of machines come within seconds."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a machine is no more, or will not be.

    Attributes:
        reason: as "code: words".
        ended_by: who ended it.
        at: when, if the operation has a time.
    """

    reason: str
    ended_by: EndedBy
    at: datetime | None


def insert(calls: Calls, zone: str, machine: Instance, request_id: str, *, own_image: bool) -> Operation:
    """Ask for the machine; asked again with the same request id, Google answers the operation that it began then.

    Raises:
        CapacityError: refused.
        ProviderUnavailable: no verdict.
    """

    def refusal(failure: Failure, region: str) -> ProviderError:
        return launch_error(failure, region, own_image=own_image)

    request = {"zone": zone, "instance_resource": machine, "request_id": request_id}
    operation = calls.ask(lambda c: c.instances.insert_unary, request, refusal)
    if not operation.name:
        raise ProviderUnavailable(
            "MalformedAnswer", f"the launch of {machine.name} was answered without an operation", calls.region
        )
    return operation


def watched(calls: Calls, zone: str, operation: Operation) -> Operation:
    """The operation when it is done, or as it was last seen after a few seconds; a look that fails ends the watch."""
    for seconds in _LOOKS_AFTER_SECONDS:
        if operation.status == DONE or not calls.deadline.wait(seconds):
            break
        try:
            operation = calls.ask(lambda c: c.operations.get, {"zone": zone, "operation": operation.name})
        except ProviderError:
            break  # that it was accepted is known all the same
    return operation


def failure(operation: Operation, region: str, *, own_image: bool) -> CapacityError | None:
    """Why an accepted launch came to nothing; None when it has not."""
    said = operation_failure(operation)
    if said is None:
        return None
    error = launch_error(said, region, own_image=own_image, accepted=True)
    assert isinstance(error, CapacityError), "the end of an accepted launch is a verdict"
    return error


def of_machines(calls: Calls, zone: str, names: Sequence[str]) -> dict[str, list[Operation]]:
    """All operations on the machines of these names, the machine's name their key; one call for each `NAMES_A_CALL`.

    Raises:
        ProviderError: a call failed; nothing is known then.
    """
    found: dict[str, list[Operation]] = {}
    for number, batch in enumerate(batches(filter(_NAME.fullmatch, names), NAMES_A_CALL)):
        wanted = f'targetLink eq ".*/instances/({"|".join(batch)})"'
        for operation in _pages(calls.again() if number else calls, zone, wanted):
            found.setdefault(operation.target_link.rpartition("/")[2], []).append(operation)
    return found


def of_launch(calls: Calls, zone: str, name: str, request_id: str) -> Operation | None:
    """The operation of a launch; None when Google does not know it (any longer).

    Raises:
        ProviderError: the look-up failed.
    """
    done = of_machines(calls, zone, [name]).get(name, [])
    return next((o for o in done if o.operation_type == INSERT and o.client_operation_id == request_id), None)


def ending(operations: Iterable[Operation]) -> Ending | None:
    """What ended the machine that these operations are about; None when none of them did."""
    by_cause: dict[Cause, Ending] = {}
    for operation in operations:
        cause, said = OPERATIONS.get(operation.operation_type), operation_failure(operation)
        if operation.operation_type == INSERT and said:
            cause, reason = Cause.NEVER_STARTED, f"{said.code}: {said.message}"
        elif cause is None or said:
            continue  # it has nothing to do with the end, or it failed
        else:
            words = operation.status_message or operation.description or "the machine was ended"
            reason = f"{operation.operation_type}: {words}"
        by_cause.setdefault(cause, Ending(reason, ended_by(cause), ended_at(operation)))
    order = [*dict.fromkeys(OPERATIONS.values()), Cause.NEVER_STARTED]
    return next((by_cause[cause] for cause in order if cause in by_cause), None)


def ended_at(operation: Operation) -> datetime | None:
    """When the operation ended, or else began."""
    return moment(operation.end_time or operation.insert_time)


def moment(text: str) -> datetime | None:
    """An instant as Google writes it; None for none, and for what is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else None


def _pages(calls: Calls, zone: str, wanted: str) -> Iterator[Operation]:
    token, turn = "", calls
    while True:
        request: Mapping[str, object] = {"zone": zone, "filter": wanted, "max_results": PAGE, "page_token": token}
        page = turn.ask(lambda c: c.operations.list, request)
        turn.must_be(page.kind, "compute#operationList")
        yield from page.items
        token = page.next_page_token
        if not token:
            return
        turn = calls.again()
