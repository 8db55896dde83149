"""What a job may use up, as its file says: time since its task first started, and money for machines and disks."""

from datetime import datetime, timedelta
from decimal import Decimal

from spotferry.domain.costs import job_cost
from spotferry.domain.view import View
from spotferry.types.job import JobState

_OUT_OF_REACH = frozenset({JobState.FINALIZING, JobState.CANCELLING})
"""The task is over, and its outputs are still sent; or it is being ended already."""


def spent_usd(view: View, now: datetime) -> Decimal:
    """What all machines of the job have cost up to now, with their disks; two that overlap both count."""
    return view.job.spent_usd + job_cost(view.open_attempts(), now).usd


def reached_limit(view: View, now: datetime) -> str:
    """The limit of the job that is reached, and how much was used, in words; "" while there is none."""
    job = view.job
    if job.state.is_final or job.state in _OUT_OF_REACH:
        return ""
    hours, most_usd = job.spec.max_duration_hours, job.spec.max_cost_usd
    if hours and job.started_at and now - job.started_at >= timedelta(hours=float(hours)):
        return f"max_duration_hours {hours:f} is used up: its task first started at {job.started_at:%Y-%m-%d %H:%M} UTC"
    if most_usd and (spent := spent_usd(view, now)) >= most_usd:
        return f"max_cost_usd {most_usd:f} is used up: its machines have cost ${spent:.4f}"
    return ""
