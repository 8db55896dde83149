"""Paperspace's list: every row is an offer, its age is told, and a wrong row never becomes a price."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.providers import registry
from spotferry.providers.context import PricingContext
from spotferry.providers.paperspace.pricing import LISTED_AT, PaperspacePricing, listed
from spotferry.providers.pricing import BAD_PRICE, NO_PRICE
from spotferry.types.errors import ProviderError

NOW = datetime(2026, 12, 1, tzinfo=UTC)
REGIONS = ["AMS1", "CA1", "NY2"]
ROW = {
    "type": "C1",
    "vcpus": "1",
    "memory_gib": "0.5",
    "gpu": "",
    "vram_gib": "",
    "usd_hour": "0.0045",
    "regions": "NY2",
}


def context() -> PricingContext:
    """A context whose disks cost a tenth of a dollar."""
    return PricingContext(clock=lambda: NOW, disk_usd_gib_month=lambda _provider, _region: Decimal("0.1"))


def test_every_row_is_an_offer_in_each_of_its_regions() -> None:
    """Nothing of the list is lost, all is on demand, and no type is listed twice in a region."""
    model = registry.load_pricing("paperspace")(context())
    assert list(model.regions()) == REGIONS
    offers = [offer for region in model.regions() for offer in model.offers(region)]
    assert len(offers) == sum(len(row["regions"].split()) for row in listed())
    assert len({(offer.region, offer.instance_type) for offer in offers}) == len(offers)
    assert all(offer.spot_usd_hour is None and offer.on_demand_usd_hour for offer in offers)
    assert {offer.disk_usd_gib_month for offer in offers} == {Decimal("0.1")}


def test_a_gpu_machine_is_told_whole() -> None:
    """Name, maker, count and memory of the GPU."""
    model = registry.load_pricing("paperspace")(context())
    [offer] = [offer for offer in model.offers("NY2") if offer.instance_type == "A100-80G"]
    assert (offer.gpu_name, offer.gpu_maker, offer.gpu_count, offer.vram_mib) == ("A100-80GB", "NVIDIA", 1, 81_920)
    assert (offer.vcpus, offer.memory_gib, offer.on_demand_usd_hour, offer.zone) == (12, 90, Decimal("3.18"), "")


def test_the_age_of_the_list_is_told() -> None:
    """A list that nobody reads anew grows old in sight: its offers were read when the pages were, not now."""
    model = registry.load_pricing("paperspace")(context())
    assert {offer.read_at for offer in model.offers("CA1")} == {LISTED_AT}


@pytest.mark.parametrize("price", ["0", "", "-1", "NaN", "call us"])
def test_a_row_without_a_price_is_left_out_and_noted(price: str) -> None:
    """A hole in the list is no machine that is free of charge."""
    notes: list[tuple[str, str, str]] = []
    noting = PricingContext(clock=lambda: NOW, note=lambda *note: notes.append(note))
    assert list(PaperspacePricing(noting, [ROW | {"usd_hour": price}]).offers("NY2")) == []
    assert [(region, oddity) for region, oddity, _ in notes] == [("NY2", BAD_PRICE), ("NY2", NO_PRICE)]


def test_a_region_that_the_list_lacks_fails() -> None:
    """An unknown region is not one without machines."""
    with pytest.raises(ProviderError, match="MARS"):
        list(PaperspacePricing(context(), [ROW]).offers("MARS"))
