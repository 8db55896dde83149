"""What all pricing models share: what a price is, what is odd, and prices of all regions out of regions and offers."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.providers.context import DEAREST_DISK_USD_GIB_MONTH, PricingContext
from spotferry.providers.pricing import (
    ABOVE_ON_DEMAND,
    NO_PRICE,
    REGIONS_AT_ONCE,
    PricesByRegion,
    checked,
    priced_instances,
    usd,
)
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Instance, Offer
from spotferry.types.provider import PricingModel

NOW = datetime(2026, 5, 4, tzinfo=UTC)


def an_offer(region: str = "r-1", name: str = "small", **changes: object) -> Offer:
    """An offer on both markets."""
    fields: dict[str, object] = {
        "provider": "cloud",
        "region": region,
        "zone": f"{region}-a",
        "instance_type": name,
        "vcpus": 2,
        "memory_gib": 8,
        "spot_usd_hour": Decimal("0.03"),
        "on_demand_usd_hour": Decimal("0.1"),
    }
    return Offer.model_validate(fields | changes)


class Notebook:
    """Keeps what is noted."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str, str]] = []
        self.context = PricingContext(clock=lambda: NOW, note=lambda *note: self.notes.append(note))


class Regions(PricesByRegion):
    """Regions with one offer each; those in `failing` break off after it."""

    def __init__(self, names: Sequence[str], failing: Sequence[str] = ()) -> None:
        self.names = names
        self.failing = failing
        self.begun: list[str] = []

    def regions(self) -> Sequence[str]:
        """All of them."""
        return self.names

    def offers(self, region: str) -> Iterator[Offer]:
        """The region's offer, then its failure."""
        self.begun.append(region)
        yield an_offer(region)
        if region in self.failing:
            raise ProviderError("Denied", "no", region)


@pytest.mark.parametrize(
    ("given", "price"),
    [
        ("0.0960000000", "0.096"),
        ("10.00", "10"),
        (0.1, "0.1"),
        (" 3 ", "3"),
        ("0.0000000000", None),
        ("-0.1", None),
        ("NaN", None),
        ("Infinity", None),
        ("", None),
        ("free", None),
        (None, None),
    ],
)
def test_only_a_finite_number_above_zero_is_a_price(given: object, price: str | None) -> None:
    """Zero, negative, endless and missing prices are none, so that they never win a placement."""
    found = usd(given)
    assert (None if found is None else str(found)) == price


def test_an_offer_without_a_price_is_no_offer() -> None:
    """What no market has a price for is left out, and noted once with its place."""
    book = Notebook()
    assert checked(an_offer(spot_usd_hour=None, on_demand_usd_hour=None), book.context) is None
    assert book.notes == [("r-1", NO_PRICE, "small in r-1-a")]


def test_spot_above_on_demand_is_kept_as_read_and_noted() -> None:
    """The ledger must be true: the price stays what the cloud said, the report says that it is odd."""
    book = Notebook()
    offer = an_offer(spot_usd_hour=Decimal("0.2"))
    assert checked(offer, book.context) == offer
    assert book.notes == [("r-1", ABOVE_ON_DEMAND, "small in r-1-a")]


def test_an_ordinary_offer_is_passed_without_a_note() -> None:
    """One market is enough."""
    book = Notebook()
    for offer in (an_offer(), an_offer(spot_usd_hour=None), an_offer(on_demand_usd_hour=None)):
        assert checked(offer, book.context) == offer
    assert book.notes == []


def test_an_offer_becomes_an_instance_for_each_open_market() -> None:
    """The seed's records: each with the price of its market, its GPUs readable again."""
    gpus: dict[str, object] = {"gpu_name": "T4", "gpu_maker": "NVIDIA", "gpu_count": 4, "vram_mib": 65_536}
    spot, on_demand = priced_instances(an_offer().model_copy(update=gpus))
    assert (spot.tag, spot.price, on_demand.tag, on_demand.price) == (
        "spot",
        Decimal("0.03"),
        "on_demand",
        Decimal("0.1"),
    )
    assert (spot.get_gpus().gpus[0].count, spot.get_gpus().total_gpu_memory_in_mib) == (4, 65_536)
    assert [i.tag for i in priced_instances(an_offer(spot_usd_hour=None))] == ["on_demand"]
    assert next(priced_instances(an_offer())).gpus == ""


def test_all_prices_come_in_the_order_of_the_regions() -> None:
    """Whatever is read at once, the result is the same every time."""
    names = [f"r-{n}" for n in range(2 * REGIONS_AT_ONCE + 1)]
    model: PricingModel = Regions(names)
    assert [i.region for i in model.get_prices() if i.tag == "spot"] == names


def test_a_failed_region_takes_nothing_from_the_others() -> None:
    """The rest is given whole, nothing of the failed region is, and the failure is told at the end."""
    given: list[Instance] = []
    prices = Regions(["r-1", "r-2", "r-3"], failing=["r-2"]).get_prices()
    with pytest.raises(ProviderError) as failure:
        given.extend(prices)
    assert {i.region for i in given} == {"r-1", "r-3"}
    assert failure.value.region == "r-2"


def test_only_a_few_regions_are_read_ahead() -> None:
    """Memory is bounded: a reader that stops early has caused no more than the regions at once and one."""
    model = Regions([f"r-{n}" for n in range(50)])
    prices = iter(model.get_prices())
    next(prices)
    prices.close()  # type: ignore[attr-defined] # it is a generator: closing it ends its readers
    assert len(model.begun) <= REGIONS_AT_ONCE + 1


def test_an_unknown_disk_is_a_dear_one() -> None:
    """Without word of its price, a disk costs more than any cloud asks."""
    context = PricingContext(clock=lambda: NOW)
    assert context.disk_usd_gib_month("cloud", "r-1") == DEAREST_DISK_USD_GIB_MONTH
    context.note("r-1", NO_PRICE, "nobody listens")
