"""What may enter the catalogue, whatever a pricing model lets through."""

from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.types import Offer
from spotferry.usecases.sound_offers import sound_offers
from tests.builders import NOW

GOOD = Offer(
    provider="aws",
    region="r",
    zone="r-a",
    instance_type="m",
    vcpus=2,
    memory_gib=8,
    spot_usd_hour=Decimal("0.2"),
    on_demand_usd_hour=Decimal("0.1"),
    read_at=NOW - timedelta(minutes=1),
)


def sift(*offers: Offer) -> tuple[list[Offer], list[tuple[str, str, str]]]:
    """What is taken, and what is noted."""
    noted: list[tuple[str, str, str]] = []
    return sound_offers(iter(offers), "aws", "r", NOW, lambda *words: noted.append(words)), noted


def test_a_good_offer_is_taken_as_it_is() -> None:
    """Also one whose spot price is above its list price: that is what was read."""
    taken, noted = sift(GOOD)
    assert taken[0] is GOOD
    assert noted == []


@pytest.mark.parametrize("price", ["0", "-0.1", "NaN", "Infinity", "-Infinity"])
def test_what_is_no_price_closes_its_market(price: str) -> None:
    """The other market stays open; when that is closed too there is no offer."""
    odd = GOOD.model_copy(update={"spot_usd_hour": Decimal(price)})
    assert sift(odd)[0] == [GOOD.model_copy(update={"spot_usd_hour": None})]
    nothing = odd.model_copy(update={"on_demand_usd_hour": Decimal(price)})
    assert sift(nothing) == ([], [("r", "no price", "m in r-a")])


@pytest.mark.parametrize(
    ("changes", "oddity"),
    [
        ({"region": "s"}, "of another cloud or region"),
        ({"provider": "gcp"}, "of another cloud or region"),
        ({"vcpus": 0}, "no processors or no memory"),
        ({"memory_gib": 0}, "no processors or no memory"),
        ({"instance_type": ""}, "no processors or no memory"),
    ],
)
def test_what_is_no_machine_of_the_region_is_left_out(changes: dict[str, object], oddity: str) -> None:
    """It is noted under the region that was asked."""
    taken, noted = sift(GOOD, GOOD.model_copy(update=changes))
    assert taken == [GOOD]
    assert [(region, what) for region, what, _ in noted] == [("r", oddity)]


def test_the_first_of_two_alike_counts() -> None:
    """A machine with another GPU is not alike."""
    again, other = GOOD.model_copy(update={"spot_usd_hour": Decimal(9)}), GOOD.model_copy(update={"gpu_count": 1})
    taken, noted = sift(GOOD, again, other)
    assert taken == [GOOD, other]
    assert noted == [("r", "listed twice", "m in r-a")]


def test_an_offer_without_a_time_gets_that_of_the_refresh() -> None:
    """Every price has an age."""
    ((offer,), _) = sift(GOOD.model_copy(update={"read_at": None}))
    assert offer.read_at == NOW
