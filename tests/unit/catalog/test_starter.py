"""The starter offers are usable and consistent."""

from decimal import Decimal

from spotferry.catalog.importer import import_price_list
from spotferry.catalog.starter import READ_AT, starter_offers
from spotferry.domain.placement import Limits, OfferIndex, choose
from spotferry.types import UserInstanceSpecs


def test_every_row_is_taken() -> None:
    """The list that ships has no row that its own importer leaves out."""
    assert len(starter_offers()) > 600
    assert {offer.read_at for offer in starter_offers()} == {READ_AT}


def test_types_zones_and_prices_are_consistent() -> None:
    """Three zones in each region; spot is below the list price; the list price is one a region."""
    listed: dict[tuple[str, str], set[Decimal | None]] = {}
    for offer in starter_offers():
        assert offer.zone in {f"{offer.region}{letter}" for letter in "abc"}
        assert offer.spot_usd_hour is not None
        assert offer.on_demand_usd_hour is not None
        assert offer.on_demand_usd_hour * Decimal("0.25") < offer.spot_usd_hour < offer.on_demand_usd_hour
        assert offer.disk_usd_gib_month > 0
        listed.setdefault((offer.region, offer.instance_type), set()).add(offer.on_demand_usd_hour)
    assert {region for region, _ in listed} == {"us-east-1", "us-west-2", "eu-west-1"}
    assert all(len(prices) == 1 for prices in listed.values())
    assert len({instance_type for _, instance_type in listed}) >= 60


def test_usual_jobs_can_be_placed() -> None:
    """A small job, a GPU job, a large one and one for ARM each find a machine in each region."""
    index = OfferIndex(starter_offers())
    for region in ("us-east-1", "us-west-2", "eu-west-1"):
        for asked in ({}, {"gpu": "T4"}, {"gpu": "A100"}, {"memory_gb": 64}, {"arch": "arm64"}, {"spot": False}):
            specs = UserInstanceSpecs.model_validate({**asked, "regions": [region]})
            assert choose(index, specs, Limits()) is not None, (region, asked)


def test_arm_types_are_said_to_be_arm_and_inferred_the_same() -> None:
    """The list's own column agrees with what the importer reads off the names."""
    header = "InstanceType,vCPUs,MemoryGiB,Price,Region"
    for offer in starter_offers():
        row = f"{offer.instance_type},1,1,1,us-east-1"
        (inferred,), _ = import_price_list(f"{header}\n{row}".encode(), "aws", READ_AT)
        assert inferred.arch == offer.arch
