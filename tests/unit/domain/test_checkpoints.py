"""When a job is checkpointed by itself, and which checkpoint goes where."""

from datetime import timedelta
from decimal import Decimal
from math import exp, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.domain.checkpoints import (
    LONGEST,
    SHORTEST,
    best_work_seconds,
    interval,
    is_memory_image,
)
from spotferry.domain.interruption_rates import told_by, told_rate
from spotferry.types import Candidate, Checkpoint, Job, JobFile, JobState, Upload
from spotferry.types.provider import PoolRate
from tests.builders import JOB_ID, NOW, SHA, a_job, a_manifest, an_attempt
from tests.fakes import an_offer


def wasted(work: float, cost: float, mtbf: float) -> float:
    """Wall time per unit of work with failures at random times (Daly's model, restart time aside)."""
    return mtbf * (exp((work + cost) / mtbf) - 1) / work


@given(st.floats(0.1, 1000), st.floats(60, 1e6))
def test_no_other_interval_loses_noticeably_less(cost: float, mtbf: float) -> None:
    """Against the exact model, half and twice the interval are never better, and no try between by 1 %."""
    best = best_work_seconds(cost, mtbf)
    loss = wasted(best, cost, mtbf)
    if cost < mtbf / 2:
        assert loss <= min(wasted(best * factor, cost, mtbf) for factor in (0.5, 2))
        assert loss <= 1.01 * min(wasted(best * (0.5 + 0.05 * step), cost, mtbf) for step in range(31))


@pytest.mark.parametrize(
    ("cost", "mtbf", "seconds"), [(10, 36_000, 842.0), (60, 3600, 617.9), (600, 3600, 1697.7), (7200, 3600, 3600)]
)
def test_the_estimate_by_the_numbers(cost: float, mtbf: float, seconds: float) -> None:
    """Young's square root for cheap checkpoints, less where they cost much, and the mtbf itself from there on."""
    assert best_work_seconds(cost, mtbf) == pytest.approx(seconds, rel=0.01)
    assert cost < mtbf / 10 or best_work_seconds(cost, mtbf) < sqrt(2 * cost * mtbf)


def job(interval_seconds: int | None = None, **changes: object) -> Job:
    """A job whose task has run for ten hours."""
    spec = JobFile.model_validate({"task": {"run": "x"}, "checkpoint": {"interval_seconds": interval_seconds}})
    fields: dict[str, object] = {"spec": spec, "started_at": NOW - timedelta(hours=10), **changes}
    return a_job(JobState.RUNNING, **fields)


def test_what_the_job_file_says_holds() -> None:
    """Also where it is more often than the broker would; 0 is none."""
    assert interval(job(10), an_attempt(1), NOW) == timedelta(seconds=10)
    assert interval(job(0), an_attempt(1), NOW) is None


def test_a_restless_pool_is_saved_more_often() -> None:
    """The rate that was known at launch counts; a quiet pool and a machine at list price get the ceiling."""
    often = interval(job(), an_attempt(1, interruptions_per_hour=Decimal("0.5")), NOW)
    seldom = interval(job(), an_attempt(1, interruptions_per_hour=Decimal("0.05")), NOW)
    assert often
    assert seldom
    assert SHORTEST < often < seldom < LONGEST
    assert interval(job(), an_attempt(1), NOW) == LONGEST
    assert interval(job(), an_attempt(1, market="on_demand"), NOW) == LONGEST


def test_a_job_that_was_interrupted_again_and_again_is_saved_more_often() -> None:
    """What befell the job itself corrects what was known of the pool."""
    quiet, restless = (interval(job(interruptions=count), an_attempt(1, provider="gcp"), NOW) for count in (0, 40))
    assert quiet
    assert restless
    assert restless < quiet


def test_what_the_last_checkpoint_cost_counts() -> None:
    """A task that stands still for long is saved less often, and never is more time spent sending than is left."""
    azure = an_attempt(1, provider="azure", interruptions_per_hour=Decimal(1))
    cheap = interval(job(last_checkpoint_paused_seconds=0.1, last_checkpoint_seconds=1.0), azure, NOW)
    dear = interval(job(last_checkpoint_paused_seconds=60.0, last_checkpoint_seconds=70.0), azure, NOW)
    slow = interval(job(last_checkpoint_paused_seconds=0.1, last_checkpoint_seconds=900.0), azure, NOW)
    assert cheap == SHORTEST
    assert dear
    assert dear > SHORTEST
    assert slow == timedelta(seconds=900)


def test_before_the_first_one_the_work_directory_is_measured() -> None:
    """A large one is expected to take longer to pack."""
    azure = an_attempt(1, provider="azure")
    small, large = (
        interval(job(upload=Upload(sha256=SHA, size_bytes=size)), azure, NOW) for size in (1000, 4_000_000_000)
    )
    assert small
    assert large
    assert small < large


def a_checkpoint(number: int, engine: str, **machine: str) -> Checkpoint:
    """One that was made on a machine."""
    manifest = a_manifest(number).model_copy(update={"engine": engine, "machine": machine})
    return Checkpoint(
        job_id=JOB_ID, number=number, manifest_key="m", manifest=manifest, instance_id="i-1", committed_at=NOW
    )


def test_only_criu_makes_memory_images() -> None:
    """Files go anywhere; processes do not."""
    points = [a_checkpoint(3, "criu"), a_checkpoint(2, "workdir"), a_checkpoint(1, "paths")]
    assert [is_memory_image(point) for point in points] == [True, False, False]


def test_the_told_rate_of_a_pool() -> None:
    """A zone's own before its region's; none for another region, type or market."""
    rates = told_by(
        PoolRate(
            provider="aws",
            region="us-east-1",
            zone=zone,
            instance_type="M5.Large",
            per_hour=Decimal(rate),
            source="x",
            read_at=NOW,
        )
        for zone, rate in (("", "0.1"), ("us-east-1a", "0.2"))
    )

    def told(zone: str, market: str = "spot", kind: str = "m5.large") -> Decimal | None:
        offer = an_offer(kind, zone, "0.02")
        fields = {"offer": offer, "market": market, "price_usd_hour": Decimal(1), "disk_gb": 8}
        return told_rate(rates, Candidate.model_validate(fields))

    assert told("us-east-1a") == Decimal("0.2")
    assert told("us-east-1b") == Decimal("0.1")
    assert told("eu-west-1a") is told("us-east-1a", kind="t3.small") is told("us-east-1a", "on_demand") is None
