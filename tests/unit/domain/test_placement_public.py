"""Plans for what people ask, over the public lists of three clouds; each figure is read from the lists by hand."""

import csv
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.catalog.importer import import_price_list
from spotferry.domain.placement import Limits, OfferIndex, Plan, plan
from spotferry.types import JobFile, init_job_file, read_job_file
from tests.unit.domain.price_list_oracle import SHARED_LISTS

JOBS = SHARED_LISTS.parent / "jobs"
CLOUDS = ("aws", "gcp", "paperspace")
pytestmark = pytest.mark.skipif(
    not all((SHARED_LISTS / f"{cloud}.csv").is_file() for cloud in CLOUDS) or not JOBS.is_dir(),
    reason="the public price lists are not beside this repository",
)


@pytest.fixture(scope="module")
def index() -> OfferIndex:
    """All three lists."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    lists = {cloud: (SHARED_LISTS / f"{cloud}.csv").read_bytes() for cloud in CLOUDS}
    return OfferIndex([offer for cloud, data in lists.items() for offer in import_price_list(data, cloud, now)[0]])


def planned(index: OfferIndex, text: str) -> Plan:
    """The plan for a job file of these lines and a task; its counts add up."""
    return proven(index, read_job_file(f"{text}\ntask: {{run: ls}}\n"))


def proven(index: OfferIndex, job: JobFile) -> Plan:
    """The plan for a job; its counts add up, and there is a choice."""
    made = plan(index, job.instance_specs, Limits.of_job(job))
    assert sum(made.excluded.values()) + made.fit == made.considered
    return made


def lowest(column: str, fits: Callable[[dict[str, str]], bool], cloud: str = "aws") -> Decimal:
    """The lowest price of a column of a list among the rows that fit."""
    with (SHARED_LISTS / f"{cloud}.csv").open(newline="") as file:
        return min(Decimal(row[column]) for row in csv.DictReader(file) if row[column] and fits(row))


@pytest.mark.parametrize(("name", "cap", "memory"), [("llama_server.yml", "1.0", 16), ("simulate.yml", "0.2", 0)])
def test_job_files_of_the_field_are_planned_as_they_are(index: OfferIndex, name: str, cap: str, memory: int) -> None:
    """Something fits, within the cap, and the proof is in words."""
    made = proven(index, init_job_file(JOBS / name))
    assert made.chosen is not None
    assert made.chosen.total_usd_hour <= Decimal(cap)
    assert made.chosen.offer.memory_gib >= memory
    assert f"the cheapest of {made.fit} that fit" in made.words


def test_t4_is_planned_over_all_clouds(index: OfferIndex) -> None:
    """The cheapest T4 beats the cheapest one of AWS's list, and is a T4."""
    made = planned(index, "instance_specs: {gpu: T4}")
    assert made.chosen is not None
    assert made.chosen.offer.gpu_name == "T4"
    assert made.chosen.price_usd_hour <= lowest("SpotPrice", lambda row: row["AcceleratorName"] == "T4")


def test_a100_on_google_is_host_and_accelerators_together(index: OfferIndex) -> None:
    """The list prices host and A100 apart: the plan's price is their sum."""
    made = planned(index, "instance_specs: {gpu: A100, providers: [gcp]}")
    assert made.chosen is not None
    offer = made.chosen.offer
    assert (offer.instance_type, offer.gpu_name, offer.gpu_count) == ("a2-highgpu-1g", "A100", 1)

    def price(kind: str, gpu: str, count: str) -> Decimal:
        def is_it(row: dict[str, str]) -> bool:
            named = (row["InstanceType"], row["AcceleratorName"], row["AcceleratorCount"]) == (kind, gpu, count)
            return named and row["AvailabilityZone"] == offer.zone

        return lowest("SpotPrice", is_it, "gcp")

    assert made.chosen.price_usd_hour == price("a2-highgpu-1g", "", "") + price("", "A100", "1")
    eight = planned(index, "instance_specs: {gpu: a100, gpu_count: 8, providers: [gcp]}")
    assert eight.chosen is not None
    assert eight.chosen.offer.instance_type == "a2-highgpu-8g"


def test_arm_job_gets_an_arm_machine(index: OfferIndex) -> None:
    """No x86 machine is chosen, or among the next ten."""
    made = planned(index, "instance_specs: {arch: arm64, cpu_cores: 4}")
    assert made.chosen is not None
    assert {candidate.offer.arch for candidate in (made.chosen, *made.next)} == {"arm64"}


@pytest.mark.parametrize(
    ("uri", "home"),
    [
        ("s3://data/set", "aws/us-east-1"),
        ("s3://my.data/set", "aws/ap-northeast-1"),
        ("gs://data/set", "gcp/us-central1"),
        ("gs://data/set", "gcp/us-west1"),
    ],
)
def test_500_gb_stay_in_their_cloud(index: OfferIndex, uri: str, home: str) -> None:
    """A job of hours runs where its data is, whatever is a cent cheaper elsewhere; the way there costs nothing."""
    made = planned(
        index,
        f"instance_specs: {{cpu_cores: 8}}\nexpected_hours: 5\n"
        f"inputs: [{{uri: {uri}, location: {home}, size_gb: 500}}]",
    )
    assert made.chosen is not None
    assert f"{made.chosen.offer.provider}/{made.chosen.offer.region}" == home
    assert made.chosen.disk_gb == 530
    assert made.runs[0].transfer_usd == 0
    without = planned(index, "instance_specs: {cpu_cores: 8, disk_gb: 530}")
    assert without.chosen is not None
    assert without.chosen.total_usd_hour <= made.chosen.total_usd_hour


def test_expected_cost_prefers_the_calmer_of_near_equals(index: OfferIndex) -> None:
    """The choice costs no more than the cheapest by the hour would, all told."""
    asked = "instance_specs: {cpu_cores: 4, memory_gb: 16}\nexpected_hours: 100\n"
    by_cost = planned(index, f"{asked}objective: expected_cost")
    by_price = planned(index, asked)
    assert by_cost.chosen is not None
    assert by_price.chosen is not None
    assert by_cost.chosen.total_usd_hour >= by_price.chosen.total_usd_hour
    assert by_cost.runs[0].usd <= min(run.usd for run in by_cost.runs)
