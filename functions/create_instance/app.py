"""SQS: one placement per message, one launch to settle, or an event that waited for its launch to be saved."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.batches import each_message
from spotferry.runtime.machines import machines
from spotferry.runtime.observability import count, logger, metrics
from spotferry.runtime.queues import Message
from spotferry.usecases.handle_interruption import Heard


def place(job_id: str) -> None:
    """Find the job a machine."""
    plan = machines().create_instance(job_id)
    if plan is not None:
        count("Placements" if plan.chosen else "PlacementsDeferred")
        logger.info("placed", extra={"job_id": job_id, "why": plan.words})


def perform(message: Message) -> None:
    """Do what the message asks for; a machine that still nobody knows after its pause is foreign."""
    match message.kind:
        case "check_launch":
            machines().check_launch(message.job_id, message.instance_id)
        case "hear_notice":
            if Heard.UNKNOWN in machines().handle_interruption(message.event):
                count("ForeignEvents")
        case _:
            place(message.job_id)


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:  # Any: SQS's JSON
    """Entry point."""
    return each_message(event, perform)
