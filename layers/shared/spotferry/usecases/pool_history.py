"""What happened to our own machines, pool by pool: from the attempts of an owner's last jobs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from spotferry.domain.interruption_rates import History, PoolHistory
from spotferry.domain.pools import pool_of
from spotferry.ports.cloud import Clock
from spotferry.ports.store import JobStore
from spotferry.types.instance import Attempt

JOBS = 50
"""How many of the owner's newest jobs are looked at: two reads each."""
LOOK_AGAIN_AFTER = timedelta(minutes=10)
_MOST_OWNERS = 100
_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_PER_HOUR = 3_600_000_000


def history_of(attempts: Iterable[Attempt], now: datetime) -> History:
    """Hours and interruptions of each pool that any of the attempts had a machine of."""
    found: dict[tuple[str, str], dict[str, PoolHistory]] = {}
    for attempt in attempts:
        if attempt.launched_at is None:
            continue
        pools, pool = found.setdefault((attempt.provider, attempt.market), {}), pool_of(attempt)
        ran = max((attempt.gone_at or now) - attempt.launched_at, timedelta(0))
        before = pools.get(pool, PoolHistory(Decimal(0), 0))
        hours = before.hours + Decimal(ran // _MICROSECOND) / _MICROSECONDS_PER_HOUR
        pools[pool] = PoolHistory(hours, before.interruptions + _was_taken_back(attempt))
    return found


def _was_taken_back(attempt: Attempt) -> bool:
    return attempt.taken_back or attempt.ended_by == "cloud"


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Reads it for an owner, and remembers it for ten minutes."""

    store: JobStore
    clock: Clock
    known: dict[str, tuple[datetime, History]] = field(default_factory=dict)

    def __call__(self, owner: str) -> History:
        """What happened to the machines of the owner's newest jobs."""
        now = self.clock()
        if owner in self.known and now - self.known[owner][0] < LOOK_AGAIN_AFTER:
            return self.known[owner][1]
        jobs = self.store.list_jobs(owner, JOBS).jobs
        history = history_of((attempt for job in jobs for attempt in self.store.attempts_of(job.job_id)), now)
        if len(self.known) >= _MOST_OWNERS:
            self.known.clear()
        self.known[owner] = (now, history)
        return history
