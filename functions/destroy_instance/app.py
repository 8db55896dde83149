"""SQS: one machine to end per message."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.batches import each_message
from spotferry.runtime.machines import machines
from spotferry.runtime.observability import logger, metrics


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:  # Any: SQS's JSON
    """Entry point."""
    return each_message(event, lambda message: machines().destroy_instance(message.job_id, message.instance_id))
