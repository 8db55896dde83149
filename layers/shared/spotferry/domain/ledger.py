"""The ledger: all that a job has cost, its machines and what the broker spent on it, from its records alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from decimal import Decimal

from spotferry.domain.costs import Cost, job_cost
from spotferry.domain.service_prices import (
    ARCHIVE,
    CHANGE,
    CHUNK,
    GIB,
    HEARTBEAT,
    HOURS_PER_MONTH,
    PLACEMENT,
    S3_GIB_MONTH,
)
from spotferry.domain.transfer import transfer_usd, usd_per_gb
from spotferry.types.instance import Attempt
from spotferry.types.job import Checkpoint, Job

CHUNK_BYTES = 8 * 1024 * 1024
"""How large a piece an archive travels in; only one of more than 8 GB takes longer ones, beyond that."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Where archives are kept, and how long an object stays; None: for ever."""

    provider: str
    region: str
    kept_for: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """What one job or many have cost; nothing is rounded, so parts add up.

    Attributes:
        machines: machines and their disks.
        storage_usd: checkpoints in the bucket, up to now.
        transfer_usd: checkpoints, work directories and inputs where they are and the machines.
        requests_usd: the broker's own requests: API, functions, tables, queues, bucket.
        requests: agents' heartbeats and saved changes: what the broker was called for.
        jobs, instances, interruptions: counts; an instance is a machine that came to be.
    """

    machines: Cost = field(default_factory=Cost)
    storage_usd: Decimal = Decimal(0)
    transfer_usd: Decimal = Decimal(0)
    requests_usd: Decimal = Decimal(0)
    requests: int = 0
    jobs: int = 0
    instances: int = 0
    interruptions: int = 0

    def __add__(self, other: "Ledger") -> "Ledger":
        """Both together."""
        return Ledger(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def total_usd(self) -> Decimal:
        """All of it."""
        return self.machines.usd + self.storage_usd + self.transfer_usd + self.requests_usd

    @property
    def saved_usd(self) -> Decimal:
        """What the same machines would have cost more at list price, with nothing of the broker's to pay."""
        return self.machines.on_demand_usd - self.total_usd


def ledger_of(
    job: Job, attempts: Sequence[Attempt], checkpoints: Sequence[Checkpoint], bucket: Bucket, now: datetime
) -> Ledger:
    """What a job has cost up to now.

    Args:
        job: the job.
        attempts: all of its.
        checkpoints: all that it committed, and those of its parent that it began with.
        bucket: where they are kept.
        now: machines that run and archives that are kept cost up to here.
    """
    heartbeats = sum(attempt.heartbeats for attempt in attempts)
    own = [c for c in checkpoints if c.manifest.job_id == job.job_id]  # what it began with is its parent's to pay
    return Ledger(
        machines=job_cost(attempts, now),
        storage_usd=_storage(own, bucket.kept_for, now),
        transfer_usd=_up(attempts, own, bucket) + _down(job, attempts, checkpoints, bucket),
        requests_usd=_requests(job, heartbeats, len(attempts), own),
        requests=heartbeats + job.revision,
        jobs=1,
        instances=sum(attempt.launched_at is not None for attempt in attempts),
        interruptions=job.interruptions,
    )


def size_bytes(checkpoint: Checkpoint) -> int:
    """What a checkpoint takes in the bucket."""
    return sum(part.size_bytes for part in checkpoint.manifest.parts)


def _sent_bytes(checkpoint: Checkpoint) -> int:
    """What of a checkpoint was sent for it: the rest an earlier one had."""
    return sum(part.size_bytes for part in checkpoint.manifest.parts if part.same_as is None)


def _storage(checkpoints: Sequence[Checkpoint], kept_for: timedelta | None, now: datetime) -> Decimal:
    """Each object from its first checkpoint's commit until the last one that uses it is pruned."""
    first: dict[str, datetime] = {}
    last: dict[str, datetime] = {}
    size: dict[str, int] = {}
    for checkpoint in checkpoints:
        for part in checkpoint.manifest.parts:
            first[part.key] = min(first.get(part.key, checkpoint.committed_at), checkpoint.committed_at)
            last[part.key] = max(last.get(part.key, first[part.key]), checkpoint.pruned_at or now)
            size[part.key] = part.size_bytes
    return sum((_kept_usd(size[key], first[key], last[key], kept_for) for key in size), Decimal(0))


def _kept_usd(count: int, since: datetime, until: datetime, kept_for: timedelta | None) -> Decimal:
    kept = max(until - since, timedelta(0))
    hours = Decimal(min(kept, kept_for or kept) // timedelta(seconds=1)) / 3600
    return S3_GIB_MONTH * _gib(count) * hours / HOURS_PER_MONTH


def _up(attempts: Sequence[Attempt], checkpoints: Sequence[Checkpoint], bucket: Bucket) -> Decimal:
    """Each checkpoint left the machine that made it."""
    origins = {attempt.cedana_id: f"{attempt.provider}/{attempt.region}" for attempt in attempts}
    home = f"{bucket.provider}/{bucket.region}"
    return sum(
        (
            usd_per_gb(origins.get(c.instance_id, home), bucket.provider, bucket.region) * _gib(_sent_bytes(c))
            for c in checkpoints
        ),
        Decimal(0),
    )


def _down(job: Job, attempts: Sequence[Attempt], checkpoints: Sequence[Checkpoint], bucket: Bucket) -> Decimal:
    """Each machine that said hello fetched inputs, work directory, and the newest checkpoint of those before it."""
    home, upload = f"{bucket.provider}/{bucket.region}", job.upload.size_bytes if job.upload else 0
    total = Decimal(0)
    for attempt in attempts:
        if attempt.arrived_at is not None:
            before = [c for c in checkpoints if _came_before(c, attempt)]
            restored = size_bytes(max(before, key=lambda c: c.number)) if before else 0
            total += usd_per_gb(home, attempt.provider, attempt.region) * _gib(upload + restored)
            total += transfer_usd(job.spec.inputs, attempt.provider, attempt.region)
    return total


def _came_before(checkpoint: Checkpoint, attempt: Attempt) -> bool:
    return checkpoint.manifest.job_id != attempt.job_id or checkpoint.manifest.epoch < attempt.epoch


def _requests(job: Job, heartbeats: int, attempts: int, checkpoints: Sequence[Checkpoint]) -> Decimal:
    sent = [part for c in checkpoints for part in c.manifest.parts if part.same_as is None]
    chunks = sum(-(-part.size_bytes // CHUNK_BYTES) for part in sent)
    return (
        HEARTBEAT.usd * heartbeats
        + CHANGE.usd * job.revision
        + PLACEMENT.usd * attempts
        + ARCHIVE.usd * len(checkpoints)
        + CHUNK.usd * chunks
    )


def _gib(count: int) -> Decimal:
    return Decimal(count) / GIB
