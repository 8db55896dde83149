"""Schedule: ask the clouds, repair what was lost."""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.machines import machines
from spotferry.runtime.observability import count, logger, metrics


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(_event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:  # Any: the schedule's JSON
    """Entry point."""
    polled = asdict(machines().poll_status())
    logger.info("polled", extra=polled)
    count("JobsUnsettled", polled["jobs"])
    count("PollProblems", len(polled["problems"]))
    return polled
