"""The ledger adds up all that a job cost, from its records alone."""

from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.domain.costs import HOURS_PER_MONTH, job_cost
from spotferry.domain.ledger import CHUNK_BYTES, Bucket, Ledger, ledger_of
from spotferry.domain.service_prices import ARCHIVE, CHANGE, CHUNK, GIB, HEARTBEAT, PLACEMENT, Effort
from spotferry.types import ArchivePart, Attempt, Checkpoint, Job, JobFile, Upload
from tests.builders import JOB_ID, NOW, SHA, a_job, a_manifest, an_attempt

HOME = Bucket("aws", "us-east-1", timedelta(days=90))


def checkpoint(number: int, gib: float, epoch: int = 1, age: timedelta = timedelta(0)) -> Checkpoint:
    """A checkpoint of that size, committed so long ago by the attempt of that epoch."""
    part = ArchivePart(name="workdir.tar.gz", key=f"k{number}", size_bytes=int(gib * GIB), sha256=SHA)
    manifest = a_manifest(number, epoch).model_copy(update={"parts": (part,)})
    return Checkpoint(
        job_id=JOB_ID,
        number=number,
        manifest_key="m",
        manifest=manifest,
        instance_id=f"i-{epoch}",
        committed_at=NOW - age,
    )


def ledger(job: Job | None = None, *attempts: Attempt, points: tuple[Checkpoint, ...] = ()) -> Ledger:
    """The ledger of these records."""
    return ledger_of(job or a_job(revision=0), attempts, points, HOME, NOW)


def test_what_a_checkpoint_took_over_is_paid_once() -> None:
    """A part that two checkpoints use was sent once, and is stored until the last of them is pruned."""
    day = timedelta(days=1)
    first = checkpoint(1, 1, age=3 * day).model_copy(update={"pruned_at": NOW - 2 * day})
    kept = first.manifest.parts[0].model_copy(update={"same_as": 1})
    second = checkpoint(2, 1, age=2 * day).model_copy(update={"pruned_at": NOW - day})
    second = second.model_copy(update={"manifest": second.manifest.model_copy(update={"parts": (kept,)})})
    abroad = an_attempt(1, provider="gcp", region="us-central1")
    once, both = (ledger(None, abroad, points=points) for points in ((first,), (first, second)))
    assert once.storage_usd == pytest.approx(Decimal("0.023") * 24 / HOURS_PER_MONTH)
    assert both.storage_usd == 2 * once.storage_usd
    assert both.transfer_usd == once.transfer_usd > 0


def test_machines_are_the_sum_of_the_attempts() -> None:
    """What attempts cost is what the ledger says of machines."""
    attempts = [an_attempt(n, heartbeats=3) for n in (1, 2)]
    found = ledger(a_job(interruptions=1), *attempts)
    assert found.machines == job_cost(attempts, NOW)
    assert (found.jobs, found.instances, found.interruptions) == (1, 2, 1)


def test_refused_launches_are_no_machines() -> None:
    """A launch that was refused counts as a placement, and not as a machine."""
    found = ledger(None, an_attempt(1, launched_at=None, arrived_at=None, gone_at=NOW))
    assert (found.instances, found.machines.usd) == (0, Decimal(0))
    assert found.requests_usd == PLACEMENT.usd


def test_storage_is_billed_by_the_month_until_it_expires() -> None:
    """A GiB for a month of S3; what has left the bucket costs no more."""
    month = timedelta(hours=HOURS_PER_MONTH)
    assert ledger(points=(checkpoint(1, 1, age=month),)).storage_usd == Decimal("0.023")
    kept = Decimal(90 * 24) / HOURS_PER_MONTH
    old = ledger(points=(checkpoint(1, 2, age=timedelta(days=400)),))
    assert old.storage_usd == pytest.approx(2 * Decimal("0.023") * kept)
    assert ledger(points=(checkpoint(1, 1),)).storage_usd == 0


def test_bytes_that_stay_in_their_region_cost_nothing_to_move() -> None:
    """Bucket and machine in one region: no transfer."""
    job = a_job(upload=Upload(sha256=SHA, size_bytes=GIB))
    assert ledger(job, an_attempt(1), an_attempt(2), points=(checkpoint(1, 5),)).transfer_usd == 0


def test_a_checkpoint_pays_its_way_out_and_back() -> None:
    """Up from the machine that made it, down to each that came after it and said hello; the newest before it."""
    there = {"provider": "gcp", "region": "europe-west4"}
    first, second = an_attempt(1, **there), an_attempt(2)
    third = an_attempt(3, **there)
    points = (checkpoint(1, 2), checkpoint(2, 4), checkpoint(3, 8, epoch=2))
    found = ledger(a_job(revision=0), first, second, third, points=points)
    up = Decimal("0.12") * 6
    down = Decimal("0.09") * 8
    assert found.transfer_usd == up + down
    silent = ledger(a_job(revision=0), first, an_attempt(3, **there, arrived_at=None), points=points[:2])
    assert silent.transfer_usd == up


def test_inputs_and_work_directory_are_carried_to_every_machine() -> None:
    """A job that moves on fetches again what it started from."""
    spec = JobFile.model_validate(
        {"task": {"run": "true"}, "inputs": [{"uri": "s3://b/k", "location": "aws/us-east-1", "size_gb": 10}]}
    )
    job = a_job(revision=0, spec=spec, upload=Upload(sha256=SHA, size_bytes=GIB))
    far = {"region": "us-west-2"}
    found = ledger(job, an_attempt(1, **far), an_attempt(2, **far))
    assert found.transfer_usd == 2 * (Decimal("0.02") * 10 + Decimal("0.02"))


def test_the_brokers_requests_are_counted_and_priced() -> None:
    """Heartbeats, changes, placements, archives and their chunks, each by what it takes."""
    points = (checkpoint(1, 2.5 * CHUNK_BYTES / GIB),)
    found = ledger(a_job(revision=11), an_attempt(1, heartbeats=70), points=points)
    assert found.requests == 81
    assert found.requests_usd == (HEARTBEAT.usd * 70 + CHANGE.usd * 11 + PLACEMENT.usd + ARCHIVE.usd + CHUNK.usd * 3)


def test_a_quiet_hour_costs_less_than_a_tenth_of_a_cent() -> None:
    """The requests of a running job that nobody watches, seventy an hour: what keeps the broker cheap."""
    assert HEARTBEAT.usd * 70 < Decimal("0.001")
    assert Effort(api_requests=Decimal(1_000_000)).usd == 1


def test_ledgers_add_up() -> None:
    """Two jobs together cost what they cost apart, to the last digit."""
    one = ledger(a_job(revision=3), an_attempt(1, heartbeats=5), points=(checkpoint(1, 1, age=timedelta(days=3)),))
    other = ledger(a_job(revision=5), an_attempt(2))
    both = one + other
    assert both.total_usd == one.total_usd + other.total_usd
    assert both.total_usd == both.machines.usd + both.storage_usd + both.transfer_usd + both.requests_usd
    assert both.saved_usd == one.saved_usd + other.saved_usd
    assert (both.jobs, both.requests) == (2, one.requests + other.requests)


def test_what_a_restored_job_began_with_is_its_parents_to_pay() -> None:
    """Storage and the way up are in the parent's ledger; the way down to each of its own machines is in its own."""
    manifest = checkpoint(3, 1).manifest.model_copy(update={"job_id": "j-parent", "epoch": 7})
    begun = checkpoint(3, 1, age=timedelta(days=30)).model_copy(update={"manifest": manifest})
    far = an_attempt(1, region="eu-west-1")
    found = ledger(None, far, points=(begun,))
    assert found.storage_usd == 0
    assert found.requests_usd == PLACEMENT.usd
    assert found.transfer_usd == Decimal("0.02")
    assert ledger(None, far).transfer_usd == 0
