"""When a job is checkpointed by itself, and which checkpoints need a machine like their own.

The interval is the one that loses least: a checkpoint costs the time that the task stands still, an interruption the
work since the last one. With `cost` and `mtbf` (mean time between failures) in seconds the best time of work between
two checkpoints is, in first order, `sqrt(2 cost mtbf)` (J. W. Young, "A first order approximation to the optimum
checkpoint interval", Communications of the ACM 17, 1974). Where the cost is not small against the mtbf that is too
long; J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
dumps", Future Generation Computer Systems 22, 2006, gives the next terms, and the mtbf itself from `cost >= 2 mtbf` on.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from math import sqrt

from spotferry.domain.interruption_rates import PoolHistory, class_rate, pool_rate
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job

SHORTEST = timedelta(minutes=1)
"""The broker never chooses a shorter interval: requests and saves cost too."""
LONGEST = timedelta(hours=1)
"""Nor a longer one: also a machine that nobody takes back can break, and a rate is a guess."""

FIRST_COST_SECONDS = 2.0
ARCHIVE_BYTES_PER_SECOND = 50_000_000
"""Before a job has made its first checkpoint: how long its task will stand still, by the size of what it brought along.

An assumption: half of what one core packs and one disk reads of a tree of middling files.
"""

_SECONDS_PER_HOUR = Decimal(3600)
_MEMORY_IMAGE = "criu"


def best_work_seconds(cost_seconds: float, mtbf_seconds: float) -> float:
    """The work between two checkpoints that loses least, by Daly's higher-order estimate.

    Args:
        cost_seconds: how long the task stands still for one; more than 0.
        mtbf_seconds: mean time between failures; more than 0.
    """
    if cost_seconds >= 2 * mtbf_seconds:
        return mtbf_seconds
    ratio = sqrt(cost_seconds / (2 * mtbf_seconds))
    return sqrt(2 * cost_seconds * mtbf_seconds) * (1 + ratio / 3 + ratio * ratio / 9) - cost_seconds


def interval(job: Job, attempt: Attempt, now: datetime) -> timedelta | None:
    """From the end of one periodic checkpoint of the job on this machine to the beginning of the next; None: none.

    What the job file says holds. Otherwise it is the best one for the machine's pool and for what the last checkpoint
    cost, within SHORTEST and LONGEST, and never so short that more time goes into sending than is left between.
    """
    said = job.spec.checkpoint.interval_seconds
    if said is not None:
        return timedelta(seconds=said) if said else None
    per_hour = interruptions_per_hour(job, attempt, now)
    if not per_hour:
        return LONGEST
    best = best_work_seconds(_cost_seconds(job), float(_SECONDS_PER_HOUR / per_hour))
    floor = max(SHORTEST, timedelta(seconds=job.last_checkpoint_seconds or 0))
    return min(max(timedelta(seconds=round(best)), floor), LONGEST)


def interruptions_per_hour(job: Job, attempt: Attempt, now: datetime) -> Decimal:
    """How often the machine's pool takes machines back: as known at launch, corrected by what befell this very job."""
    prior = attempt.interruptions_per_hour
    if prior is None:
        prior = class_rate(attempt.provider, attempt.market, has_gpu=attempt.accelerator_count > 0)
    ran = max(now - job.started_at, timedelta(0)) if job.started_at else timedelta(0)
    hours = Decimal(int(ran.total_seconds())) / _SECONDS_PER_HOUR
    return pool_rate(prior, PoolHistory(hours, job.interruptions))


def _cost_seconds(job: Job) -> float:
    """How long the task stands still for a checkpoint: as the last one told, else by the size of the work directory."""
    measured = job.last_checkpoint_paused_seconds
    if measured is None:
        measured = job.last_checkpoint_seconds
    if measured:
        return measured
    return FIRST_COST_SECONDS + (job.upload.size_bytes / ARCHIVE_BYTES_PER_SECOND if job.upload else 0)


def is_memory_image(checkpoint: Checkpoint) -> bool:
    """It holds the process tree itself: placement looks for the processor that it was made on."""
    return checkpoint.manifest.engine == _MEMORY_IMAGE
