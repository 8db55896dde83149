"""SQS: one placement per message, or one launch to settle."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.batches import each_message
from spotferry.runtime.machines import machines
from spotferry.runtime.observability import count, logger, metrics
from spotferry.runtime.queues import Message


def perform(message: Message) -> None:
    """Place the job, or settle the launch."""
    if message.kind == "check_launch":
        machines().check_launch(message.job_id, message.instance_id)
        return
    plan = machines().create_instance(message.job_id)
    if plan is not None:
        count("Placements" if plan.chosen else "PlacementsDeferred")
        logger.info("placed", extra={"job_id": message.job_id, "why": plan.words})


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:  # Any: SQS's JSON
    """Entry point."""
    return each_message(event, perform)
