"""The sets that placement works with, and the prices of disks that differ from zone to zone."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.domain.bitsets import AtLeast, Weights, members, sets_by_key, union
from spotferry.domain.costs import disk_usd_hour
from spotferry.types import Offer
from tests.unit.domain.offers import a_choice, a_gpu_offer, a_plan, an_offer

DISK_PRICES = ("0.05", "0.08", "0.1", "0.152")


def offers_with_many_disk_prices(count: int) -> list[Offer]:
    """One type in many zones, at prices that differ little, beside disks that differ much."""
    return [
        an_offer(zone=f"z{n:03}", spot=f"0.0{300 + 7 * n % 97}", disk_usd_gib_month=DISK_PRICES[n % len(DISK_PRICES)])
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [3, 20, 200])
@pytest.mark.parametrize("disk_gb", [8, 500, 4000])
def test_cap_is_exact_whatever_the_disks_cost(count: int, disk_gb: int) -> None:
    """For caps at, just below and between the totals, exactly those within fit."""
    offers = offers_with_many_disk_prices(count)
    totals = sorted(_total(offer, disk_gb) for offer in offers)
    for cap in (totals[0], totals[count // 2], totals[-1]):
        for exact in (cap, cap - Decimal("1e-9"), cap + Decimal("1e-9")):
            proof = a_plan(offers, disk_gb=disk_gb, max_price_usd_hour=exact)
            assert proof.fit == sum(total <= exact for total in totals)


def test_cheapest_is_found_among_disks_that_differ() -> None:
    """The zone with the lowest total wins, not the one with the lowest price."""
    offers = offers_with_many_disk_prices(200)
    found = a_choice(offers, disk_gb=2000)
    assert found is not None
    assert found.total_usd_hour == min(_total(offer, 2000) for offer in offers)


def test_type_whose_disk_is_dearer_everywhere_is_passed_over() -> None:
    """A machine that is cheaper alone but never with the disk that its image needs does not win."""
    gpu = a_gpu_offer(spot="0.0300", disk_usd_gib_month="0.5")
    found = a_choice([an_offer(spot="0.0301", disk_usd_gib_month="0.05"), gpu])
    assert found is not None
    assert found.offer.instance_type == "m5.large"
    dear = a_gpu_offer(spot="0.0302", disk_usd_gib_month="0.5")
    assert a_choice([an_offer(spot="0.0301", disk_usd_gib_month="0.05"), dear]) == found


@given(st.sets(st.integers(0, 300)))
def test_members_of_a_set_come_back_ascending(numbers: set[int]) -> None:
    """A set gives back what went in."""
    assert list(members(union(1 << number for number in numbers))) == sorted(numbers)


@given(st.lists(st.integers(0, 5)), st.integers(-1, 6))
def test_at_least_finds_the_positions_of_values_that_large(values: list[int], least: int) -> None:
    """The set holds exactly the positions whose value is that large."""
    expected = [position for position, value in enumerate(values) if value >= least]
    assert list(members(AtLeast(values)(least))) == expected


@given(st.lists(st.integers(0, 5000)), st.integers(0))
def test_weights_add_up(weights: list[int], bits: int) -> None:
    """The total of a set is the sum of its members' weights."""
    chosen = [weight for position, weight in enumerate(weights) if bits >> position & 1]
    assert Weights(weights).total(bits) == sum(chosen)


@given(st.lists(st.sampled_from("abc")))
def test_sets_by_key_part_the_positions(keys: list[str]) -> None:
    """Each position is in the set of its key, and in no other."""
    sets = sets_by_key(keys)
    assert {position: key for key, bits in sets.items() for position in members(bits)} == dict(enumerate(keys))


def _total(offer: Offer, disk_gb: int) -> Decimal:
    assert offer.spot_usd_hour is not None
    return offer.spot_usd_hour + disk_usd_hour(offer.disk_usd_gib_month, disk_gb)
