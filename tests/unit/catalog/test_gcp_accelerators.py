"""GCP's accelerators and their hosts are priced apart, and offered together where a host can have them."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.catalog import importer
from spotferry.catalog.importer import ImportReport, import_price_list
from spotferry.types import Offer

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
STANDARD_4 = "n1-standard-4,,,4.0,15.0,,0.19,0.04,us-central1,us-central1-a"


def take(*rows: str, provider: str = "gcp") -> tuple[list[Offer], ImportReport]:
    """Import a list of these rows."""
    return import_price_list("\n".join([HEADER, *rows]).encode(), provider, NOW)


def gpu(name: str, count: int, zone: str = "us-central1-a", prices: str = "0.35,0.11") -> str:
    """A row of accelerators alone."""
    return f",{name},{count},,,{name},{prices},{zone[:-2]},{zone}"


def host(instance_type: str, vcpus: int, memory: float, zone: str = "us-central1-a") -> str:
    """A row of a machine alone."""
    return f"{instance_type},,,{vcpus}.0,{memory},,1.0,0.3,{zone[:-2]},{zone}"


def test_n1_machine_is_offered_with_and_without_its_accelerator() -> None:
    """The prices of both markets are those of machine and accelerator together, exact; the machine alone stays."""
    offers, report = take(STANDARD_4, gpu("T4", 2))
    alone, together = offers
    assert (alone.gpu_count, alone.spot_usd_hour) == (0, Decimal("0.04"))
    assert together == alone.model_copy(
        update={
            "gpu_name": "T4",
            "gpu_maker": "NVIDIA",
            "gpu_count": 2,
            "vram_mib": 32_768,
            "spot_usd_hour": Decimal("0.15"),
            "on_demand_usd_hour": Decimal("0.54"),
        }
    )
    assert report == ImportReport(rows=2, taken=2, offers=2, left_out={})


@pytest.mark.parametrize(
    ("machine", "accelerator", "fits"),
    [
        (host("n1-standard-8", 8, 30), gpu("K80", 1), True),
        (host("n1-standard-16", 16, 60), gpu("K80", 1), False),
        (host("n1-highmem-16", 16, 104), gpu("P100", 1), True),
        (host("n1-standard-32", 32, 120), gpu("P100", 1), False),
        (host("n1-standard-96", 96, 360), gpu("P100", 4), True),
        (host("n1-standard-96", 96, 360, "europe-west1-b"), gpu("P100", 4, "europe-west1-b"), False),
        (host("n1-highmem-64", 64, 416, "us-east1-c"), gpu("P100", 4, "us-east1-c"), False),
        (host("n1-highmem-32", 32, 208, "us-east1-c"), gpu("P100", 4, "us-east1-c"), True),
        (host("n1-highmem-64", 64, 416, "asia-east1-a"), gpu("K80", 8, "asia-east1-a"), False),
        (host("n1-highmem-64", 64, 416), gpu("K80", 8), True),
        (host("n1-standard-8", 8, 30), gpu("V100", 1), True),
        (host("n1-standard-16", 16, 60), gpu("V100", 1), False),
        (host("n1-standard-96", 96, 360), gpu("V100", 8), True),
        (host("n1-standard-16", 16, 60), gpu("P4", 1), True),
        (host("n1-standard-32", 32, 120), gpu("P4", 1), False),
        (host("n1-standard-96", 96, 360), gpu("T4", 4), True),
        (host("n1-standard-4", 4, 15), gpu("T4", 3), False),
        (host("n1-standard-4", 4, 15), gpu("T4", 1, "us-central1-b"), False),
        (host("n2-standard-4", 4, 16), gpu("T4", 1), False),
        (host("g1-small", 1, 1.7), gpu("T4", 1), False),
        (host("n1-standard-4", 4, 15), gpu("A100", 1), False),
    ],
)
def test_only_machines_that_can_have_it_get_it(machine: str, accelerator: str, fits: bool) -> None:  # noqa: FBT001
    """Series, zone, count, processors and memory decide; an accelerator that nothing takes is left out and said."""
    offers, report = take(machine, accelerator)
    assert [offer.gpu_count > 0 for offer in offers] == [False, True][: 1 + fits]
    assert report.left_out == ({} if fits else {importer.ACCELERATOR_ALONE: 1})


@pytest.mark.parametrize(
    ("instance_type", "name", "count"),
    [
        ("a2-highgpu-1g", "A100", 1),
        ("a2-megagpu-16g", "A100", 16),
        ("a2-ultragpu-4g", "A100-80GB", 4),
        ("a3-highgpu-8g", "H100", 8),
        ("g2-standard-24", "L4", 2),
    ],
)
def test_host_is_offered_with_its_own_accelerators_only(instance_type: str, name: str, count: int) -> None:
    """A host that always comes with accelerators gets exactly those, and is no offer without them."""
    offers, report = take(host(instance_type, 12, 85), gpu(name, count), gpu(name, count * 2), gpu("T4", count))
    assert [(o.instance_type, o.gpu_name, o.gpu_count) for o in offers] == [(instance_type, name, count)]
    assert report.left_out == {importer.ACCELERATOR_ALONE: 2}


@pytest.mark.parametrize("instance_type", ["a2-highgpu-1g", "a2-odd", "g2-standard-5", "ct5lp-hightpu-1t"])
def test_host_without_its_accelerators_is_left_out(instance_type: str) -> None:
    """A host's price alone is not what the machine costs."""
    offers, report = take(host(instance_type, 12, 85), gpu("A100", 2))
    assert offers == []
    assert report.left_out == {importer.ACCELERATOR_ALONE: 1, importer.HOST_ALONE: 1}


def test_market_needs_the_price_of_both() -> None:
    """Where the accelerator or the machine has no price in a market, both together have none there."""
    offers, _ = take(STANDARD_4, gpu("T4", 1, prices="0.35,"), gpu("T4", 2, prices=",0.22"))
    assert [(o.gpu_count, o.spot_usd_hour, o.on_demand_usd_hour) for o in offers[1:]] == [
        (1, None, Decimal("0.54")),
        (2, Decimal("0.26"), None),
    ]


def test_parts_with_no_market_in_common_are_no_machine() -> None:
    """A machine sold only as spot and an accelerator sold only on demand cannot be bought together."""
    offers, report = take("n1-standard-4,,,4,15,,,0.04,us-central1,us-central1-a", gpu("T4", 1, prices="0.35,"))
    assert [offer.gpu_count for offer in offers] == [0]
    assert report.left_out == {importer.ACCELERATOR_ALONE: 1}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (gpu("tpu-v3-8", 1), importer.ACCELERATOR_ALONE),
        (gpu("T4", 1, prices=","), importer.NO_PRICE),
        (gpu("T4", 1, prices="-1,0.1"), importer.MALFORMED),
        (",T4,1,,,T4,0.35,0.11,,us-central1-a", importer.NO_REGION),
    ],
)
def test_accelerator_that_cannot_be_offered_is_counted_by_its_reason(row: str, reason: str) -> None:
    """What is no GPU, or has no price or region, joins nothing."""
    offers, report = take(STANDARD_4, row)
    assert len(offers) == 1
    assert report.left_out == {reason: 1}


def test_other_clouds_are_not_joined() -> None:
    """Only GCP sells accelerators apart."""
    offers, report = take(STANDARD_4, gpu("T4", 1), provider="azure")
    assert len(offers) == 1
    assert report.left_out == {importer.ACCELERATOR_ALONE: 1}
