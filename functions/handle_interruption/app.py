"""EventBridge: notices and state changes from any cloud."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.machines import machines
from spotferry.runtime.observability import count, logger, metrics
from spotferry.runtime.wiring import wiring
from spotferry.types.errors import InvalidInput
from spotferry.usecases.handle_interruption import Heard


def hear(envelope: dict[str, Any]) -> None:  # Any: the bus's JSON, whatever a cloud sends
    """Handle one event; one about a machine that nobody knows comes back once, by the placement queue."""
    if Heard.UNKNOWN in machines().handle_interruption(envelope):
        count("UnknownEvents")
        wiring().queue.hear_again(envelope)


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> None:  # Any: the bus's JSON
    """Entry point."""
    try:
        hear(event)
    except InvalidInput as error:
        logger.error("event set aside: it is not what its kind should be", extra={"why": str(error), "event": event})
        count("EventsSetAside")
