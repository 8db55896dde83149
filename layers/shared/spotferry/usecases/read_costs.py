"""What jobs cost: the ledger as people read it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from spotferry.domain.ledger import Bucket, Ledger, ledger_of
from spotferry.ports.cloud import Clock
from spotferry.ports.store import JobStore
from spotferry.types.base import Json
from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.job import Job
from spotferry.usecases.read_jobs import instance_json

LABEL = "label="
_PLACES = Decimal("0.000000001")

KeyOf = Callable[[Job], str]


@dataclass(frozen=True, slots=True)
class ReadCosts:
    """Adds up what jobs have cost, from the prices stored with their attempts: no catalogue is looked at."""

    store: JobStore
    bucket: Bucket
    clock: Clock

    def asked(self, owner: str, query: Mapping[str, str], limit: int) -> Json:
        """What a query asks for: one job (`job`), or a page of the owner's (`by`, `since`, `cursor`).

        Raises:
            InvalidInput: a parameter is not what it should be, or makes no sense beside `job`.
            NotFound: there is no such job.
        """
        if "job" not in query:
            return self(owner, query.get("by", ""), query.get("since", ""), limit, query.get("cursor"))
        for name in ("by", "since", "cursor"):
            if name in query:
                raise InvalidInput([Problem(name, "makes no sense for one job")])
        return self.of_job(query["job"])

    def __call__(self, owner: str, by: str, since: str, limit: int, cursor: str | None) -> Json:
        """One page of the owner's jobs, newest first, added up by group; the pages' groups add up to the whole.

        Args:
            owner: whose jobs.
            by: "job", "project" or "label=KEY"; "" is "job".
            since: only jobs submitted at this time or later (a date, or RFC 3339); "" for all.
            limit: at most so many jobs on the page.
            cursor: of the page before.

        Raises:
            InvalidInput: a parameter is not what it should be.
        """
        key_of, start = _grouping(by), _time(since)
        page = self.store.list_jobs(owner, limit, cursor)
        jobs = [job for job in page.jobs if start is None or job.created_at is None or job.created_at >= start]
        groups: dict[str, Ledger] = {}
        for job in jobs:
            key = key_of(job)
            groups[key] = groups.get(key, Ledger()) + self.ledger(job)
        return {**_answer(by or "job", groups), "cursor": page.cursor if len(jobs) == len(page.jobs) else None}

    def of_job(self, job_id: str) -> Json:
        """What one job has cost, machine by machine.

        Raises:
            NotFound: there is no such job.
        """
        job, now = self.store.get_job(job_id), self.clock()
        attempts = self.store.attempts_of(job_id) if job.epoch else ()
        answer = _answer("job", {job_id: self.ledger(job)})
        return {**answer, "cursor": None, "instances": [instance_json(attempt, now) for attempt in attempts]}

    def ledger(self, job: Job) -> Ledger:
        """What a job that is at hand has cost."""
        attempts = self.store.attempts_of(job.job_id) if job.epoch else ()
        checkpoints = self.store.checkpoints(job.job_id) if job.checkpoint else ()
        return ledger_of(job, attempts, checkpoints, self.bucket, self.clock())


def ledger_json(ledger: Ledger) -> Json:
    """The ledger as JSON has it; dollars to the billionth, for requests cost less than a millionth."""
    machines = ledger.machines
    usd: Mapping[str, Decimal] = {
        "machine_usd": machines.machine_usd,
        "disk_usd": machines.disk_usd,
        "storage_usd": ledger.storage_usd,
        "transfer_usd": ledger.transfer_usd,
        "broker_usd": ledger.requests_usd,
        "total_usd": ledger.total_usd,
        "waived_usd": machines.waived_usd,
        "on_demand_usd": machines.on_demand_usd,
        "saved_usd": ledger.saved_usd,
    }
    return {
        "jobs": ledger.jobs,
        "instances": ledger.instances,
        "interruptions": ledger.interruptions,
        "requests": ledger.requests,
        "seconds": int(machines.seconds),
        **{name: float(value.quantize(_PLACES)) for name, value in usd.items()},
    }


def _answer(by: str, groups: Mapping[str, Ledger]) -> Json:
    rows: Sequence[Json] = [{"key": key, **ledger_json(ledger)} for key, ledger in groups.items()]
    return {"by": by, "groups": rows, "total": ledger_json(sum(groups.values(), Ledger()))}


def _grouping(by: str) -> KeyOf:
    if by in {"", "job"}:
        return lambda job: job.job_id
    if by == "project":
        return lambda job: job.spec.project
    label = by.removeprefix(LABEL)
    if label and label != by:
        return lambda job: job.spec.labels.get(label, "")
    raise InvalidInput([Problem("by", "must be job, project or label=KEY")])


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput([Problem("since", "must be a date (2026-11-01) or a time (RFC 3339)")]) from error
