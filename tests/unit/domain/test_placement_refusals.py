"""Where nothing fits, the plan says why, and tells never from not now."""

import pytest

from spotferry.domain.placement import Limits, OfferIndex, plan, refuse_impossible
from spotferry.types import ImpossibleSpecs, UserInstanceSpecs
from tests.unit.domain.offers import a_gpu_offer, a_plan, an_offer

OFFERS = [
    an_offer("m5.large"),
    an_offer("m5.xlarge", "0.06", memory_gib=16, vcpus=4),
    an_offer("m6g.large", arch="arm64"),
    a_gpu_offer(),
]


@pytest.mark.parametrize(
    ("specs", "field", "says"),
    [
        ({"memory_gb": 100}, "memory_gb", "The most on offer is 16."),
        ({"cpu_cores": 100}, "cpu_cores", "The most on offer is 4."),
        ({"vram_gb": 100}, "vram_gb", "The most on offer is 16."),
        ({"gpu_count": 9}, "gpu_count", "The most on offer is 1."),
        ({"gpu": "H100"}, "gpu", "There are: T4."),
        ({"instance_type": "m5.lrage"}, "instance_type", "The nearest names are m5.large"),
        ({"instance_type": "zz"}, "instance_type", "No type has a name like it."),
        ({"regions": ["us-esat-1"]}, "regions", "There are: us-east-1."),
        ({"providers": ["azure"]}, "providers", "There are: aws."),
        ({"max_price_usd_hour": "0.001"}, "max_price_usd_hour", "Without it the cheapest that fits is m5.large"),
        ({"disk_gb": 1}, "disk_gb", "Without it the cheapest that fits is m5.large"),
    ],
)
def test_impossible_specification_is_refused_by_its_key(specs: dict[str, object], field: str, says: str) -> None:
    """A specification that nothing can meet is refused at once; the field is named, and what there is instead."""
    asked = UserInstanceSpecs.model_validate(specs)
    proof = plan(OfferIndex(OFFERS), asked, Limits())
    with pytest.raises(ImpossibleSpecs) as refused:
        refuse_impossible(proof, asked)
    assert [problem.field for problem in refused.value.problems] == [f"instance_specs.{field}"]
    assert says in str(refused.value)


def test_later_condition_is_named_when_two_exclude_the_same() -> None:
    """Of conditions that exclude equally many the later one is named."""
    assert a_plan(OFFERS, memory_gb=1000, cpu_cores=1000).blocker == "memory_gb"


def test_condition_that_excludes_most_by_itself_is_named() -> None:
    """The one to blame is found by what each condition excludes alone, not by what it was left to exclude."""
    proof = a_plan(OFFERS, arch="arm64", gpu="T4", spot=True)
    assert proof.impossible
    assert proof.blocker == "gpu"
    assert "Without it the cheapest that fits is m6g.large" in proof.words


def test_price_cap_is_named_where_it_alone_stands_in_the_way() -> None:
    """A cap can be moved, the machine is what the job needs: the price of what fits is told as well."""
    proof = a_plan(OFFERS, gpu="T4", max_price_usd_hour="0.1")
    assert proof.blocker == "max_price_usd_hour"
    assert proof.words == (
        "No offer fits: max_price_usd_hour 0.1 is too low. Without it the cheapest that fits is g4dn.xlarge in "
        "us-east-1a (aws, spot) at $0.200000 an hour with its disk of 45 GB."
    )
    assert a_plan(OFFERS, Limits(avoid=["*/*/*"]), gpu="T4", max_price_usd_hour="0.1").blocker == proof.blocker
    assert a_plan(OFFERS, gpu="H100", max_price_usd_hour="0.1").blocker == "gpu"


def test_market_is_named_as_the_key_that_a_person_writes() -> None:
    """The condition `market` comes from the key `spot`."""
    proof = a_plan([an_offer(on_demand_usd_hour=None)], spot=False)
    with pytest.raises(ImpossibleSpecs, match=r"instance_specs\.spot") as refused:
        refuse_impossible(proof, UserInstanceSpecs(spot=False))
    assert "spot false" in str(refused.value)


def test_region_that_was_not_set_up_is_named_as_such() -> None:
    """Where only the regions set up stand in the way, the words say so and name what else there would be."""
    proof = a_plan([an_offer()], Limits(open_regions=frozenset()))
    assert (proof.impossible, proof.blocker) == (True, "region_not_set_up")
    assert "set up for this deployment" in proof.words
    assert "Without it the cheapest that fits is m5.large in us-east-1a" in proof.words
    with pytest.raises(ImpossibleSpecs, match=r"instance_specs\.regions"):
        refuse_impossible(proof, UserInstanceSpecs())


def test_two_conditions_in_the_way_are_both_named() -> None:
    """Where lifting the worst condition would not help, the others are named too."""
    proof = a_plan(OFFERS, memory_gb=100, cpu_cores=100)
    assert "Without it nothing fits either: see" in proof.words
    assert "cpu_cores 100" in proof.words


@pytest.mark.parametrize(
    ("limits", "blocker"),
    [
        (Limits(bans={("aws", "spot"): ["*/*/*"]}), "banned"),
        (Limits(avoid=["*/*/*"]), "avoided"),
        (Limits(bans={("aws", "spot"): ["*/*/m5.large"]}, avoid=["*/*/m5.xlarge", "*/*/g4dn.*"]), "avoided"),
    ],
)
def test_what_is_set_aside_for_a_while_is_not_impossible(limits: Limits, blocker: str) -> None:
    """Bans and pools to avoid pass: the job waits, and the words say what it waits for."""
    proof = a_plan(OFFERS, limits)
    assert (proof.chosen, proof.impossible, proof.blocker) == (None, False, blocker)
    assert "The cheapest of them is m5.large" in proof.words
    refuse_impossible(proof, UserInstanceSpecs())


def test_catalogue_without_prices_is_nobodys_fault() -> None:
    """Where no offer has a price, the specification is not blamed."""
    proof = a_plan([an_offer(spot=None, on_demand_usd_hour=None)], memory_gb=1000)
    assert (proof.impossible, proof.blocker) == (False, "no_price")
    assert "refresh" in proof.words


def test_plan_that_chose_is_not_refused() -> None:
    """A plan with a choice passes, names no blocker, and says why it is the one."""
    proof = a_plan(OFFERS)
    refuse_impossible(proof, UserInstanceSpecs())
    assert proof.blocker == ""
    assert proof.words.startswith("m5.large in us-east-1a (aws, spot) at $0.030000 an hour with its disk of 30 GB")
    assert a_plan(OFFERS[:1]).words.endswith("is the only one that fits, of 2 considered.")
