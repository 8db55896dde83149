"""Reading Google's billing catalogue: which SKU is whose rate, and which is nobody's."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.providers.gcp.pricing_rates import CORE, DISK, GPU, MACHINE, RAM, SSD, Part, Rates, part_of
from spotferry.providers.pricing import BAD_PRICE
from spotferry.providers.rest import Json
from tests.unit.providers.gcp.gcp_answers import sku

READ = datetime(2026, 12, 1, tzinfo=UTC)


def rates(*skus: Json) -> tuple[Rates, list[str]]:
    """The rates of these SKUs, and the regions of what was odd."""
    read = Rates(READ)
    odd = [oddity.region for row in skus for oddity in read.add(row) if oddity.what == BAD_PRICE]
    return read, odd


@pytest.mark.parametrize(
    ("description", "part"),
    [
        ("N1 Predefined Instance Core running in Americas", Part(CORE, "n1")),
        ("Spot Preemptible N1 Predefined Instance Ram running in Sao Paulo", Part(RAM, "n1")),
        ("Preemptible N1 Predefined Instance Ram running in Sao Paulo", Part(RAM, "n1")),
        ("N2D AMD Instance Core running in Salt Lake City", Part(CORE, "n2d")),
        ("C4A Arm Instance Ram running in Mexico", Part(RAM, "c4a")),
        ("T2D AMD Instance Core running in Americas", Part(CORE, "t2d")),
        ("C3D Instance Core running in Americas", Part(CORE, "c3d")),
        ("A3Plus Instance Core running in Americas", Part(CORE, "a3plus")),
        ("M3 Memory-optimized Instance Core running in Phoenix", Part(CORE, "m3")),
        ("M4Ultramem224 Instance Ram running in Americas", Part(RAM, "m4ultramem224")),
        ("Compute optimized Core running in Americas", Part(CORE, "c2")),
        ("Compute optimized Instance Ram running in Americas", Part(RAM, "c2")),
        ("Memory-optimized Instance Core running in Americas", Part(CORE, "m1")),
        (
            "Memory Optimized Upgrade Premium for Memory-optimized Instance Ram running in Tokyo",
            Part(RAM, "m2 premium"),
        ),
        ("Nvidia Tesla T4 GPU running in Americas", Part(GPU, "Tesla T4")),
        ("Nvidia Tesla T4 GPU attached to VMs running in asia-southeast1", Part(GPU, "Tesla T4")),
        ("Nvidia Tesla A100 80GB GPU attached to Spot Preemptible VMs running in Iowa", Part(GPU, "Tesla A100 80GB")),
        ("Nvidia H100 80GB Mega GPU attached to Spot Preemptible VMs running in Tokyo", Part(GPU, "H100 80GB Mega")),
        ("Nvidia L4 GPU attached to Preemptible VMs running in Tokyo", Part(GPU, "L4")),
        ("SSD backed Local Storage", Part(SSD, "")),
        ("SSD backed Local Storage in Paris", Part(SSD, "")),
        ("SSD backed Local Storage attached to Spot Preemptible VMs in Paris", Part(SSD, "")),
        ("Spot Preemptible C4D Instance Local SSD running in Frankfurt", Part(SSD, "c4d")),
        ("Small Instance with 1 VCPU running in Americas", Part(MACHINE, "g1-small")),
        ("Spot Preemptible Micro Instance with burstable CPU running in EMEA", Part(MACHINE, "f1-micro")),
        ("Balanced PD Capacity", Part(DISK, "pd-balanced")),
        ("Hyperdisk Balanced Capacity in Milan", Part(DISK, "hyperdisk-balanced")),
    ],
)
def test_words_name_a_part(description: str, part: Part) -> None:
    """Every way in which the catalogue names what our machines are made of is understood."""
    assert part_of(description) == part


@pytest.mark.parametrize(
    "description",
    [
        "N2 Custom Instance Core running in Americas",
        "N2D AMD Custom Instance Ram running in Americas",
        "N2 Custom Extended Instance Ram running in Americas",
        "C3 Sole Tenancy Instance Core running in Americas",
        "Sole Tenancy Premium for C4 Sole Tenancy Instance Core running in Americas",
        "Commitment v1: Compute optimized Cpu in Dallas for 1 Year",
        "Commitment v1: N2 Ram in Americas for 3 Years",
        "DWS Defined Duration A3 Core running in Americas",
        "Reserved M4 Core in Americas",
        "Nvidia H100 80GB Mega GPU Calendar Mode running in Americas",
        "DWS Defined Duration Nvidia L4 GPU running in Americas",
        "A4 Nvidia B200 (1 gpu slice) running in Americas",
        "Regional Balanced PD Capacity in Iowa",
        "Hyperdisk Balanced IOPS in Iowa",
        "Hyperdisk Balanced High Availability Capacity in Iowa",
        "Network Inter Region Egress from Americas to EMEA",
        "TpuV5e running in Americas",
    ],
)
def test_other_words_name_nothing(description: str) -> None:
    """Commitments, sole tenancy, custom shapes, reservations and storage pools never become a machine's rate."""
    assert part_of(description) is None


def test_spot_and_on_demand_are_told_apart() -> None:
    """The words tell spot, also for a SKU that is filed under OnDemand."""
    read, _ = rates(
        sku("N2 Instance Core running in Americas", "0.03"),
        sku("Spot Preemptible N2 Instance Core running in Americas", "0.01"),
        sku("SSD backed Local Storage attached to Spot Preemptible VMs", "0.073", "GiBy.mo", usage="OnDemand"),
    )
    assert read.get("us-central1", Part(CORE, "n2"), spot=False) == Decimal("0.03")
    assert read.get("us-central1", Part(CORE, "n2"), spot=True) == Decimal("0.01")
    assert read.get("us-central1", Part(SSD, ""), spot=True) == pytest.approx(Decimal("0.0001"))
    assert read.get("us-central1", Part(SSD, ""), spot=False) is None


def test_a_rate_holds_in_every_region_of_its_sku() -> None:
    """A SKU for several regions is a rate in each; another region has none."""
    read, _ = rates(sku("N2 Instance Core running in Americas", "0.03", regions=["us-central1", "us-east1"]))
    assert read.regions() == {"us-central1", "us-east1"}
    assert read.get("europe-west1", Part(CORE, "n2"), spot=False) is None


def test_units_and_nanos_make_the_price() -> None:
    """Whole dollars and billionths are added exactly."""
    read, _ = rates(sku("Nvidia H100 80GB GPU running in Americas", "9.796550569"))
    assert read.get("us-central1", Part(GPU, "H100 80GB"), spot=False) == Decimal("9.796550569")


def test_the_last_tier_and_the_newest_price_count() -> None:
    """A free first tier makes nothing free, and an older price is no price any more."""
    row = sku("Balanced PD Capacity in Iowa", "0.1", "GiBy.mo")
    old, free = sku("", "0.2", "GiBy.mo"), sku("", "0", "GiBy.mo")
    tiers = row["pricingInfo"][0]["pricingExpression"]["tieredRates"]
    tiers.insert(0, free["pricingInfo"][0]["pricingExpression"]["tieredRates"][0])
    row["pricingInfo"].insert(0, old["pricingInfo"][0])
    read, _ = rates(row)
    assert read.get("us-central1", Part(DISK, "pd-balanced"), spot=False) == Decimal("0.1")


def test_of_two_skus_for_the_same_the_dearer_counts() -> None:
    """A machine never looks cheaper than it may be, whatever the order of the SKUs."""
    skus = [sku("N2 Instance Core running in Americas", "0.03"), sku("N2 Instance Core running in Iowa", "0.04")]
    for order in (skus, skus[::-1]):
        read, _ = rates(*order)
        assert read.get("us-central1", Part(CORE, "n2"), spot=False) == Decimal("0.04")


def negative() -> Json:
    """A price below zero."""
    row = sku("N2 Instance Core running in Americas", "0.03")
    row["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["nanos"] = -1
    return row


def euros() -> Json:
    """A price in another currency."""
    row = sku("N2 Instance Core running in Americas", "0.03")
    row["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["currencyCode"] = "EUR"
    return row


@pytest.mark.parametrize(
    "row",
    [
        sku("N2 Instance Core running in Americas", "0"),
        sku("N2 Instance Core running in Americas", None),
        sku("N2 Instance Core running in Americas", "0.03", unit="mo"),
        {**sku("N2 Instance Core running in Americas", "0.03"), "pricingInfo": []},
        negative(),
        euros(),
    ],
    ids=["zero", "no rates", "another unit", "no price at all", "negative", "euros"],
)
def test_no_price_is_no_rate(row: Json) -> None:
    """What is no price above zero in our money and unit gives no rate, and is told."""
    read, odd = rates(row)
    assert read.get("us-central1", Part(CORE, "n2"), spot=False) is None
    assert odd == ["us-central1"]


@pytest.mark.parametrize("row", [{}, {"description": 7}, {"description": "x", "category": [], "skuId": "A"}])
def test_a_row_that_is_no_sku_is_told(row: Json) -> None:
    """A row of another shape stops nothing, and is told without a region."""
    assert rates(row)[1] == [""]


def test_commitments_are_passed_over_in_silence() -> None:
    """Thousands of SKUs are none of our business; they are no oddities."""
    read, odd = rates(sku("N2 Instance Core running in Americas", "0", usage="Commit1Yr"))
    assert (read.regions(), odd) == (set(), [])
