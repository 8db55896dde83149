"""Schedule, or a person's order: rebuild the price catalogue."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.observability import logger, metrics
from spotferry.runtime.prices import refresh


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:  # Any: the schedule's JSON
    """Entry point."""
    return refresh(event)
