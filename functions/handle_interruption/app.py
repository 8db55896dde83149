"""EventBridge: notices and state changes from any cloud; what nobody knows yet comes back once through a queue."""

import json
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.batches import each_body
from spotferry.runtime.machines import machines
from spotferry.runtime.observability import count, logger, metrics
from spotferry.runtime.wiring import wiring
from spotferry.types.errors import InvalidInput, Problem
from spotferry.usecases.handle_interruption import Heard

Json = dict[str, Any]  # Any: the bus's JSON, whatever a cloud sends


def hear(envelope: Mapping[str, Any]) -> None:
    """Handle one event; one about a machine that nobody knows is heard once more."""
    if Heard.UNKNOWN in machines().handle_interruption(envelope):
        count("UnknownEvents")
        wiring().notices.send(envelope)


def hear_again(body: str) -> None:
    """Handle an event that comes back; a machine that still nobody knows is foreign."""
    try:
        envelope = json.loads(body)
    except ValueError as error:
        raise InvalidInput([Problem("", f"is not an event: {error}")]) from error
    if not isinstance(envelope, dict) or Heard.UNKNOWN in machines().handle_interruption(envelope):
        count("ForeignEvents")


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: Json, _context: LambdaContext) -> Json | None:
    """Entry point."""
    if "Records" in event:
        return each_body(event, hear_again)
    try:
        hear(event)
    except InvalidInput as error:
        logger.error("event set aside: it is not what its kind should be", extra={"why": str(error), "event": event})
        count("EventsSetAside")
    return None
