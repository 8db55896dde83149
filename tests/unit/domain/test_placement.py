"""Placement chooses the cheapest machine that fits, and nothing else."""

from decimal import Decimal

import pytest

from spotferry.domain.placement import Limits, OfferIndex, Plan, choose
from spotferry.types import Offer, UserInstanceSpecs
from tests.unit.domain.offers import a_choice, a_gpu_offer, a_plan, an_offer, chosen_type

MANY_ZONES = [an_offer(zone=f"us-east-1{letter}", spot=f"0.03{n:02}") for n, letter in enumerate("abcdefghijkl")]


def test_cheapest_of_all_zones_wins() -> None:
    """The lowest price wins, wherever it stands."""
    found = a_choice(reversed(MANY_ZONES))
    assert found is not None
    assert found.offer.zone == "us-east-1a"


def test_nothing_to_choose_from_chooses_nothing() -> None:
    """An empty catalogue chooses nothing, and does not blame the specification."""
    proof = a_plan([])
    assert (proof.chosen, proof.considered, proof.impossible) == (None, 0, False)


@pytest.mark.parametrize("price", [None, "0", "-0.01"])
def test_offer_without_a_true_price_never_wins(price: str | None) -> None:
    """A missing, zero or negative price is no price."""
    assert chosen_type([an_offer("bogus.large", price), an_offer("m5.large", "0.9")]) == "m5.large"


@pytest.mark.parametrize("broken", [{"instance_type": ""}, {"vcpus": 0}, {"memory_gib": 0}])
def test_what_is_no_machine_never_wins(broken: dict[str, object]) -> None:
    """An accelerator sold alone, or a row without processors or memory, is no machine."""
    proof = a_plan([an_offer(spot="0.001").model_copy(update=broken), an_offer("m5.large")])
    assert proof.chosen is not None
    assert proof.chosen.offer.instance_type == "m5.large"
    assert proof.excluded["not_a_machine"] == 2


def test_more_memory_decides_between_equal_prices() -> None:
    """Equal prices: more memory wins, then the name, then the place."""
    offers = [an_offer("b.large"), an_offer("a.large"), an_offer("z.large", memory_gib=16)]
    assert chosen_type(offers) == "z.large"
    assert chosen_type(offers[:2]) == "a.large"


def test_order_of_the_offers_changes_nothing() -> None:
    """The same offers in another order give the same choice and the same next ten."""
    assert a_plan(MANY_ZONES).next == a_plan(reversed(MANY_ZONES)).next


def test_next_ten_follow_the_chosen_in_order_of_price() -> None:
    """The plan lists the next ten, cheapest first, without the chosen one."""
    proof = a_plan(MANY_ZONES)
    assert [candidate.offer.zone[-1] for candidate in proof.next] == list("bcdefghijk")


@pytest.mark.parametrize(
    ("specs", "winner"),
    [
        ({"memory_gb": 8}, "m5.large"),
        ({"memory_gb": 8.01}, "m5.xlarge"),
        ({"cpu_cores": 2}, "m5.large"),
        ({"cpu_cores": 3}, "m5.xlarge"),
        ({"instance_type": "m5.xlarge"}, "m5.xlarge"),
        ({"arch": "arm64"}, "m6g.large"),
        ({"regions": ["eu-west-1"]}, "c5.large"),
        ({"providers": ["gcp"]}, "n1-standard-2"),
        ({"gpu": "t4"}, "g4dn.xlarge"),
        ({"gpu": " Nvidia "}, "g4dn.xlarge"),
        ({"gpu": "V100"}, "p3dn.24xlarge"),
        ({"gpu": "V100-32gb"}, "p3dn.24xlarge"),
        ({"gpu_count": 1}, "g4dn.xlarge"),
        ({"gpu_count": 2}, "p3dn.24xlarge"),
        ({"vram_gb": 16}, "g4dn.xlarge"),
        ({"vram_gb": 16.5}, "p3dn.24xlarge"),
        ({"spot": False}, "m5.xlarge"),
        ({"spot": False, "max_price_usd_hour": "0.08"}, None),
        ({"max_price_usd_hour": "0.03"}, "m5.large"),
        ({"max_price_usd_hour": "0.0299"}, None),
        ({"gpu": "K80"}, None),
    ],
)
def test_each_condition_is_met(specs: dict[str, object], winner: str | None) -> None:
    """Sizes mean at least, names mean exactly, a GPU is called by its name or its maker."""
    offers = [
        an_offer("m5.large"),
        an_offer("m5.xlarge", "0.06", vcpus=4, memory_gib=16, on_demand_usd_hour="0.09"),
        an_offer("m6g.large", "0.031", arch="arm64"),
        an_offer("c5.large", "0.032", region="eu-west-1", zone="eu-west-1a"),
        an_offer("n1-standard-2", "0.033", provider="gcp", region="us-central1", zone="us-central1-a"),
        a_gpu_offer("g4dn.xlarge", "0.2"),
        a_gpu_offer("p3dn.24xlarge", "9", gpu_name="V100-32GB", gpu_count=8, vram_mib=262_144),
    ]
    assert chosen_type(offers, None, **specs) == winner


def test_job_without_a_gpu_gets_one_only_where_it_is_cheapest() -> None:
    """A GPU machine that costs more than the cheapest without one is not chosen; one that costs less is."""
    assert chosen_type([an_offer("m5.large", "0.2"), a_gpu_offer(spot="0.21")]) == "m5.large"
    assert chosen_type([an_offer("m5.large", "0.2"), a_gpu_offer(spot="0.19")]) == "g4dn.xlarge"


def test_disk_counts_in_the_price() -> None:
    """A cheaper machine loses where its region's disk makes it dearer, and only for disks large enough."""
    dear_disk = an_offer("m5.large", "0.030", disk_usd_gib_month="0.2")
    cheap_disk = an_offer("m5a.large", "0.034", disk_usd_gib_month="0.05")
    assert chosen_type([dear_disk, cheap_disk], disk_gb=10) == "m5.large"
    found = a_choice([dear_disk, cheap_disk], disk_gb=500)
    assert found is not None
    assert (found.offer.instance_type, found.disk_usd_hour) == ("m5a.large", Decimal("0.034246575"))


def test_cap_is_on_machine_and_disk_together() -> None:
    """A cap that the machine meets alone but not with its disk excludes it."""
    offers = [an_offer(spot="0.030", disk_usd_gib_month="0.073")]
    assert chosen_type(offers, disk_gb=100, max_price_usd_hour="0.040") == "m5.large"
    assert chosen_type(offers, disk_gb=100, max_price_usd_hour="0.039999") is None


@pytest.mark.parametrize(("asked", "plain", "with_gpu"), [(0, 30, 45), (60, 60, 60), (45, 45, 45), (8, 8, None)])
def test_disk_holds_the_image(asked: int, plain: int, with_gpu: int | None) -> None:
    """Without a size the disk holds the default and the image; a size that does not hold it excludes the machine."""
    ordinary, gpu = a_choice([an_offer()], disk_gb=asked), a_choice([a_gpu_offer()], disk_gb=asked)
    assert ordinary is not None
    assert ordinary.disk_gb == plain
    assert (gpu.disk_gb if gpu else None) == with_gpu


def test_disk_smaller_than_every_image_is_impossible() -> None:
    """A disk that no image fits on fails at once and names disk_gb; an image of the job's own is not checked."""
    proof = a_plan([an_offer(), a_gpu_offer()], disk_gb=4)
    assert (proof.impossible, proof.blocker) == (True, "disk_gb")
    assert chosen_type([an_offer()], Limits(custom_image=True), disk_gb=4) == "m5.large"


def test_cloud_without_a_spot_market_serves_spot_jobs_at_list_price() -> None:
    """A spot job may go to a cloud that has no spot market; elsewhere spot never means on-demand."""
    listed: dict[str, object] = {"provider": "paperspace", "region": "NY2", "zone": "", "on_demand_usd_hour": "0.01"}
    found = a_choice([an_offer("C1", None, **listed), an_offer("m5.large", None, on_demand_usd_hour="0.001")])
    assert found is not None
    assert (found.offer.instance_type, found.market) == ("C1", "on_demand")


def test_same_place_may_offer_a_type_twice() -> None:
    """Two prices for one type in one zone are two candidates; the lower one wins."""
    proof = a_plan([an_offer(spot="0.05"), an_offer(spot="0.04"), an_offer(spot="0.06")])
    assert proof.fit == 3
    assert proof.chosen is not None
    assert proof.chosen.price_usd_hour == Decimal("0.04")


def test_regions_that_are_not_set_up_are_left_out_and_counted() -> None:
    """Only regions that were set up are used, those of the right cloud."""
    offers = [an_offer(), an_offer("c5.large", "0.05", region="eu-west-1", zone="eu-west-1a")]
    limits = Limits(open_regions=frozenset({("aws", "eu-west-1"), ("gcp", "us-east-1")}))
    proof = a_plan(offers, limits)
    assert proof.chosen is not None
    assert proof.chosen.offer.region == "eu-west-1"
    assert proof.excluded["region_not_set_up"] == 1


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("us-east-1/us-east-1a/m5.large", 3),
        ("us-east-1/us-east-1a/*", 2),
        ("us-east-1/*/*", 1),
        ("*/*/*", 0),
        ("*/*/m5.*", 1),
        ("us-east-1/*/m5.*", 2),
        ("us-east-1/*/m5", 4),
        ("*/*/c5.large", 3),
        ("mars/*/*", 4),
        ("us-east-1", 4),
    ],
)
def test_banned_pools_are_left_alone(pattern: str, left: int) -> None:
    """A ban covers a pool, zone, region, family or cloud; so do pools to avoid; what is no pattern covers nothing."""
    offers = [
        an_offer("m5.large", zone="us-east-1a"),
        an_offer("m5.xlarge", zone="us-east-1b"),
        an_offer("c5.large", zone="us-east-1a"),
        an_offer("m5.large", region="eu-west-1", zone="eu-west-1a"),
    ]
    banned = a_plan(offers, Limits(bans={("aws", "spot"): [pattern]}))
    assert (banned.fit, banned.excluded["banned"], banned.excluded["avoided"]) == (left, 4 - left, 0)
    avoided = a_plan(offers, Limits(avoid=[pattern]))
    assert (avoided.fit, avoided.excluded["banned"], avoided.excluded["avoided"]) == (left, 0, 4 - left)


def test_ban_holds_for_its_cloud_and_market_only() -> None:
    """A ban of spot leaves on-demand alone, and a ban of one cloud leaves the others alone."""
    offers = [an_offer()]
    assert chosen_type(offers, Limits(bans={("aws", "on_demand"): ["*/*/*"], ("gcp", "spot"): ["*/*/*"]})) == "m5.large"
    assert chosen_type(offers, Limits(bans={("aws", "on_demand"): ["*/*/*"]}), spot=False) is None


def test_bans_do_not_leak_into_the_next_question() -> None:
    """One index answers many questions; what one set aside, the next one finds."""
    index, specs = OfferIndex(MANY_ZONES), UserInstanceSpecs()
    assert choose(index, specs, Limits(avoid=["*/*/*"])) is None
    assert choose(index, specs, Limits()) is not None


def test_excluded_names_the_conditions_in_order_and_counts_each_candidate_once() -> None:
    """A candidate counts at the first condition that it fails."""
    offers = [
        an_offer("a", spot=None),
        an_offer("b", region="eu-west-1", memory_gib=2),
        an_offer("c", memory_gib=2),
        an_offer("d", spot="9", gpu_count=0),
        an_offer("e"),
    ]
    proof = a_plan(offers, regions=["us-east-1"], memory_gb=4, max_price_usd_hour=1)
    assert {name: count for name, count in proof.excluded.items() if count} == {
        "no_price": 1,
        "market": 5,
        "regions": 1,
        "memory_gb": 1,
        "max_price_usd_hour": 1,
    }
    assert (proof.considered, proof.fit) == (10, 1)
    assert list(proof.excluded) == [
        "not_a_machine",
        "no_price",
        "market",
        "providers",
        "regions",
        "region_not_set_up",
        "arch",
        "instance_type",
        "cpu_cores",
        "memory_gb",
        "gpu",
        "gpu_count",
        "vram_gb",
        "disk_gb",
        "max_price_usd_hour",
        "banned",
        "avoided",
    ]


def test_plan_survives_being_stored() -> None:
    """The plan as JSON text and back is the same plan."""
    proof = a_plan(MANY_ZONES)
    assert Plan.model_validate_json(proof.model_dump_json()) == proof


def test_plan_prints_flat_machines_with_prices_as_numbers() -> None:
    """The printed plan has exactly the agreed keys, and prices as JSON numbers with their own digits."""
    printed = a_plan([an_offer(spot="0.067006", disk_usd_gib_month="0.08")]).to_json()
    assert list(printed) == ["version", "chosen", "considered", "fit", "excluded", "next", "why"]
    assert printed["chosen"] == {
        "provider": "aws",
        "region": "us-east-1",
        "zone": "us-east-1a",
        "instance_type": "m5.large",
        "market": "spot",
        "arch": "x86_64",
        "vcpus": 2,
        "memory_gib": 8,
        "gpu_name": "",
        "gpu_count": 0,
        "price_usd_hour": 0.067006,
        "disk_gb": 30,
        "disk_usd_hour": 0.003287671,
        "total_usd_hour": 0.070293671,
        "on_demand_usd_hour": 0.096,
        "price_read_at": None,
    }


def test_index_takes_offers_of_clouds_that_nobody_knows() -> None:
    """A new cloud needs no change here."""
    offers: list[Offer] = [an_offer(provider="nimbus", region="r", zone="")]
    assert chosen_type(offers, providers=["nimbus"]) == "m5.large"
