"""AWS's prices out of answers in the shape of its APIs, faults included; nothing leaves the process."""

from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.providers.pricing import ABOVE_ON_DEMAND, BAD_PRICE, NO_DISK_PRICE, NO_PRICE, UNKNOWN_TYPE
from spotferry.types.errors import ProviderError, ProviderUnavailable, SkipProvider
from tests.unit.providers.aws.price_answers import (
    OFFERINGS_QUESTION,
    SPOT_QUESTION,
    USUAL_DISK,
    PriceRig,
    disk,
    fact,
    gpus,
    machine,
    offerings,
    product,
    products_question,
    spot_page,
    spot_row,
    term,
    zones,
)
from tests.unit.providers.aws.rig import NOW, REGION

M5, P4DE = "m5.large", "p4de.24xlarge"
AZ4, AZ6 = "use1-az4", "use1-az6"


def test_an_offer_joins_spot_price_list_price_size_and_disk() -> None:
    """One offer for each type and zone that is offered, its zone by id, all prices as exact decimals."""
    rig = PriceRig()
    rig.answer(
        pools=[(M5, AZ4), (M5, AZ6), (P4DE, AZ6)],
        spot=[spot_row(M5, "us-east-1a", "0.035100"), spot_row(P4DE, "us-east-1b", "12.5")],
        listed=[machine(M5, "0.0960000000"), machine(P4DE, "40.9657000000")],
        facts=[fact(M5, "i386", "x86_64"), fact(P4DE, vcpus=96, memory_mib=1_179_648, gpus=gpus("A100", 8, 81_920))],
    )
    first, second, third = rig.pricing.offers(REGION)
    assert (first.instance_type, first.zone, first.spot_usd_hour) == (M5, AZ4, Decimal("0.0351"))
    assert (first.on_demand_usd_hour, first.disk_usd_gib_month) == (Decimal("0.096"), Decimal("0.08"))
    assert (first.arch, first.vcpus, first.memory_gib, first.gpu_count, first.read_at) == ("x86_64", 2, 8, 0, NOW)
    assert (second.zone, second.spot_usd_hour, second.on_demand_usd_hour) == (AZ6, None, Decimal("0.096"))
    assert (third.gpu_name, third.gpu_maker, third.gpu_count, third.vram_mib) == ("A100-80GB", "NVIDIA", 8, 655_360)
    assert rig.notes == []
    rig.done()


def test_pages_are_followed_past_empty_ones() -> None:
    """An empty page with a token is not the last; an empty token is."""
    rig = PriceRig()
    ec2, prices = rig.stub(), rig.stub("pricing")
    ec2.add_response("describe_availability_zones", zones(), {})
    ec2.add_response("describe_instance_type_offerings", offerings(token="o-2"), OFFERINGS_QUESTION)
    ec2.add_response(
        "describe_instance_type_offerings", offerings((M5, AZ4)), OFFERINGS_QUESTION | {"NextToken": "o-2"}
    )
    ec2.add_response("describe_spot_price_history", spot_page(token="s-2"), SPOT_QUESTION)
    last = spot_page(spot_row(M5, "us-east-1a", "0.03"), token="")
    ec2.add_response("describe_spot_price_history", last, SPOT_QUESTION | {"NextToken": "s-2"})
    prices.add_response("get_products", {"PriceList": [], "NextToken": "p-2"}, products_question())
    prices.add_response("get_products", {"PriceList": [machine(M5, "0.1")]}, products_question(token="p-2"))
    prices.add_response("get_products", {"PriceList": [disk("0.09")]}, products_question(disks=True))
    ec2.add_response("describe_instance_types", {"InstanceTypes": [fact(M5)]}, {"InstanceTypes": [M5]})
    [offer] = rig.pricing.offers(REGION)
    assert (offer.spot_usd_hour, offer.on_demand_usd_hour) == (Decimal("0.03"), Decimal("0.1"))
    rig.done()


@pytest.mark.parametrize("price", ["0.000000", "-0.01", "", "NaN", None])
def test_a_spot_price_that_is_none_closes_the_market_alone(price: str | None) -> None:
    """Zero, negative or missing: the machine is still sold on demand, and the oddity is noted."""
    rig = PriceRig()
    rig.answer([(M5, AZ4)], [spot_row(M5, "us-east-1a", price)], [machine(M5, "0.096")], [fact(M5)])
    [offer] = rig.pricing.offers(REGION)
    assert (offer.spot_usd_hour, offer.on_demand_usd_hour) == (None, Decimal("0.096"))
    assert rig.notes == [(REGION, BAD_PRICE, f"{M5} in {AZ4}, spot")]


@pytest.mark.parametrize(
    "listed",
    [
        machine(M5, "0.0000000000"),
        machine(M5, None),
        product([], instanceType=M5),
        product([term("0.6", currency="CNY")], instanceType=M5),
        product([term("0.096", unit="Quantity")], instanceType=M5),
        product([term("0.096", begins="2099-01-01T00:00:00Z")], instanceType=M5),
    ],
)
def test_a_list_price_that_is_none_closes_the_market_alone(listed: str) -> None:
    """Zero, missing, without terms, in another currency or unit, or not in force yet: spot is left."""
    rig = PriceRig()
    rig.answer([(M5, AZ4)], [spot_row(M5, "us-east-1a", "0.03")], [listed], [fact(M5)])
    [offer] = rig.pricing.offers(REGION)
    assert (offer.spot_usd_hour, offer.on_demand_usd_hour) == (Decimal("0.03"), None)
    assert rig.notes == [(REGION, BAD_PRICE, f"{M5}, on-demand")]


def test_what_has_no_price_at_all_is_no_offer() -> None:
    """Offered by EC2, priced in no market: left out and noted."""
    rig = PriceRig()
    rig.answer([(M5, AZ4), ("t3.micro", AZ4)], [], [machine(M5, "0.096")], [fact(M5), fact("t3.micro")])
    assert [offer.instance_type for offer in rig.pricing.offers(REGION)] == [M5]
    assert rig.notes == [(REGION, NO_PRICE, f"t3.micro in {AZ4}")]


def test_spot_above_on_demand_is_told_as_it_is() -> None:
    """The price stays as it was read; the report says that it is odd."""
    rig = PriceRig()
    rig.answer([(M5, AZ4)], [spot_row(M5, "us-east-1a", "0.2")], [machine(M5, "0.096")], [fact(M5)])
    [offer] = rig.pricing.offers(REGION)
    assert offer.spot_usd_hour == Decimal("0.2")
    assert rig.notes == [(REGION, ABOVE_ON_DEMAND, f"{M5} in {AZ4}")]


def test_the_newest_of_two_prices_of_a_pool_holds() -> None:
    """A price that moved while the pages were read is the newer one, in whatever order they come."""
    rig = PriceRig()
    rows = [
        spot_row(M5, "us-east-1a", "0.03"),
        spot_row(M5, "us-east-1a", "0.05", NOW),
        spot_row(M5, "us-east-1a", "0.04", NOW - timedelta(hours=3)),
    ]
    rig.answer([(M5, AZ4)], rows, [machine(M5, "0.096")], [fact(M5)])
    [offer] = rig.pricing.offers(REGION)
    assert offer.spot_usd_hour == Decimal("0.05")


def test_an_id_in_the_history_is_taken_before_a_name() -> None:
    """Rows that have the zone's id need no translation."""
    rig = PriceRig()
    row = spot_row(M5, "us-east-1x", "0.03") | {"AvailabilityZoneId": AZ6}
    rig.answer([(M5, AZ6)], [row], [machine(M5, "0.096")], [fact(M5)])
    [offer] = rig.pricing.offers(REGION)
    assert (offer.zone, offer.spot_usd_hour) == (AZ6, Decimal("0.03"))


def test_zones_outside_of_the_region_are_left_out() -> None:
    """A local zone has list prices of its own: its spot price makes no offer, and is noted."""
    rig = PriceRig()
    rows = [spot_row(M5, "us-east-1-bos-1a", "0.01"), spot_row(M5, "us-east-1a", "0.03")]
    rig.answer([(M5, AZ4), (M5, "use1-bos1-az1")], rows, [machine(M5, "0.096")], [fact(M5)])
    assert [offer.zone for offer in rig.pricing.offers(REGION)] == [AZ4]
    assert rig.notes == [(REGION, UNKNOWN_TYPE, f"{M5} in us-east-1-bos-1a")]


def test_a_type_that_ec2_does_not_describe_is_left_out() -> None:
    """A spot price of a type that is not offered has no size: no offer, one note."""
    rig = PriceRig()
    rows = [spot_row("m1.small", "us-east-1a", "0.001"), spot_row(M5, "us-east-1a", "0.03")]
    rig.answer([(M5, AZ4)], rows, [machine(M5, "0.096")], [fact(M5)])
    assert [offer.instance_type for offer in rig.pricing.offers(REGION)] == [M5]
    assert rig.notes == [(REGION, UNKNOWN_TYPE, f"m1.small in {AZ4}")]


@pytest.mark.parametrize("disks", [(), (disk("0.0"),), (disk(None),)])
def test_a_disk_without_a_price_has_the_usual_one(disks: tuple[str, ...]) -> None:
    """The table steps in, and the report says so."""
    rig = PriceRig()
    rig.answer([(M5, AZ4)], [], [machine(M5, "0.096")], [fact(M5)], disks)
    [offer] = rig.pricing.offers(REGION)
    assert offer.disk_usd_gib_month == USUAL_DISK
    assert rig.notes == [(REGION, NO_DISK_PRICE, "gp3")]


def test_sizes_are_asked_for_once() -> None:
    """A second region asks EC2 only about the types that the first one does not have."""
    rig = PriceRig()
    rig.answer([(M5, AZ4)], [], [machine(M5, "0.096")], [fact(M5)])
    list(rig.pricing.offers(REGION))
    ec2, prices = rig.stub(), rig.stub("pricing")
    ec2.add_response("describe_availability_zones", zones(), {})
    ec2.add_response("describe_instance_type_offerings", offerings((M5, AZ4)), OFFERINGS_QUESTION)
    ec2.add_response("describe_spot_price_history", spot_page(), SPOT_QUESTION)
    prices.add_response("get_products", {"PriceList": [machine(M5, "0.1")]}, products_question())
    prices.add_response("get_products", {"PriceList": [disk("0.08")]}, products_question(disks=True))
    assert [offer.vcpus for offer in rig.pricing.offers(REGION)] == [2]
    rig.done()


def test_throttling_is_waited_out() -> None:
    """A listing that is throttled twice goes on after growing pauses."""
    rig = PriceRig()
    for _ in range(2):
        rig.stub("pricing").add_client_error("get_products", "ThrottlingException", "slow down", 400)
    rig.answer([(M5, AZ4)], [], [machine(M5, "0.096")], [fact(M5)])
    assert len(list(rig.pricing.offers(REGION))) == 1
    assert len(rig.time.pauses) == 2
    rig.done()


def test_a_region_that_answers_403_fails_whole() -> None:
    """Nothing of it is given, and the error says that we may not."""
    rig = PriceRig()
    rig.stub().add_client_error("describe_availability_zones", "UnauthorizedOperation", "not you", 403)
    with pytest.raises(SkipProvider):
        next(rig.pricing.offers(REGION))


def test_prices_that_are_denied_fail_the_region() -> None:
    """Spot prices alone would be half of the truth: the region keeps what it had."""
    rig = PriceRig()
    rig.stub().add_response("describe_availability_zones", zones(), {})
    rig.stub().add_response("describe_instance_type_offerings", offerings((M5, AZ4)), OFFERINGS_QUESTION)
    rig.stub().add_response("describe_spot_price_history", spot_page(), SPOT_QUESTION)
    rig.stub("pricing").add_client_error("get_products", "AccessDeniedException", "pricing:GetProducts", 400)
    with pytest.raises(SkipProvider, match="GetProducts"):
        next(rig.pricing.offers(REGION))


def test_a_broken_listing_gives_no_part_of_a_region() -> None:
    """A page that fails in the middle is a failure of the region, not a short list."""
    rig = PriceRig()
    rig.stub().add_response("describe_availability_zones", zones(), {})
    rig.stub().add_response("describe_instance_type_offerings", offerings((M5, AZ4)), OFFERINGS_QUESTION)
    rig.stub().add_response("describe_spot_price_history", spot_page(token="s-2"), SPOT_QUESTION)
    for _ in range(5):
        rig.stub().add_client_error("describe_spot_price_history", "InternalError", "", 500)
    with pytest.raises(ProviderUnavailable):
        next(rig.pricing.offers(REGION))


def test_the_regions_are_those_of_the_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is open to the account, in a steady order, asked in the deployment's own region."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    rig = PriceRig()
    regions = {"Regions": [{"RegionName": "us-east-1"}, {"RegionName": "eu-west-1"}]}
    rig.stub("ec2", "eu-west-1").add_response("describe_regions", regions, {})
    assert rig.pricing.regions() == ["eu-west-1", "us-east-1"]


def test_regions_that_ec2_does_not_tell_are_a_failure() -> None:
    """No list of regions is not an empty list."""
    rig = PriceRig()
    rig.stub().add_client_error("describe_regions", "UnauthorizedOperation", "not you", 403)
    with pytest.raises(ProviderError):
        rig.pricing.regions()
