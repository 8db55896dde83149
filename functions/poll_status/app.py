"""Schedule: ask the clouds, repair what was lost, end what nobody owns."""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from spotferry.runtime.machines import machines
from spotferry.runtime.observability import count, logger, metrics


def poll() -> dict[str, Any]:  # Any: JSON
    """One poll, and what came of it."""
    polled = machines().poll_status()
    reaped = machines().reap(polled.attempts)
    for words in reaped.ended:
        logger.warning("a machine of this deployment that nobody owns was ended", extra={"machine": words})
        count("MachinesReaped")
    count("JobsUnsettled", polled.jobs)
    count("PollProblems", len(polled.problems) + len(reaped.problems))
    return {**polled.to_json(), "reaper": asdict(reaped)}


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(_event: dict[str, Any], _context: LambdaContext) -> dict[str, Any]:  # Any: the schedule's JSON
    """Entry point."""
    polled = poll()
    logger.info("polled", extra=polled)
    return polled
