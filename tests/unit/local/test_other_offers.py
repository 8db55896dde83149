"""What the laptop's other clouds sell: one price in the catalogue and in the market."""

from datetime import UTC, datetime

import pytest

from local import azure_facts, gcp_facts, paperspace_facts
from local.azure_pricing import AzurePricingFace
from local.gcp_pricing import GcpPricingFace
from local.market import Market
from local.market_faults import Faults
from local.market_model import PoolKey, Purchase, Shape
from local.other_offers import CLOUDS, offers_of, regions_of
from local.paperspace import PaperspaceFace
from spotferry.providers.context import PricingContext
from spotferry.providers.registry import load_pricing

NOW = datetime(2026, 5, 1, tzinfo=UTC)
SHAPES = {
    "gcp": {name: kind.shape for name, kind in gcp_facts.KINDS.items()},
    "azure": {name: kind.shape for name, kind in azure_facts.KINDS.items()},
    "paperspace": {name: kind.shape for name, kind in paperspace_facts.KINDS.items()},
}


@pytest.fixture
def market() -> Market:
    """A market that all faces have opened."""
    market, faults = Market(lambda: NOW), Faults()
    GcpPricingFace(market, faults)
    AzurePricingFace(market, faults)
    PaperspaceFace(market, faults)
    return market


@pytest.mark.parametrize("cloud", [cloud for cloud in CLOUDS if cloud != "aws"])
def test_the_market_asks_what_the_catalogue_says(market: Market, cloud: str) -> None:
    """Every offer costs in the market what it costs in the catalogue, in each way that it is sold."""
    offers = offers_of(cloud)
    assert {offer.region for offer in offers} == set(regions_of(cloud))
    for offer in offers:
        assert offer.provider == cloud
        shape: Shape = SHAPES[cloud][offer.instance_type]
        assert (shape.vcpus, shape.arch) == (offer.vcpus, offer.arch)
        for purchase, price in ((Purchase.SPOT, offer.spot_usd_hour), (Purchase.ON_DEMAND, offer.on_demand_usd_hour)):
            pool = PoolKey(cloud, offer.region, offer.zone, offer.instance_type, purchase)
            assert market.prices.price(pool, shape, NOW) == price, pool


def test_paperspace_is_sold_as_its_own_list_says() -> None:
    """Types, regions and prices are those that the pricing model reads."""
    model = load_pricing("paperspace")(PricingContext(lambda: NOW))
    read = {
        (o.region, o.zone, o.instance_type, o.on_demand_usd_hour, o.gpu_name, o.vram_mib)
        for region in model.regions()
        for o in model.offers(region)
    }
    assert {
        (o.region, o.zone, o.instance_type, o.on_demand_usd_hour, o.gpu_name, o.vram_mib)
        for o in offers_of("paperspace")
    } == read
