"""A process that goes on elsewhere is placed where its processor is."""

import pytest

from spotferry.domain.cpu_families import cpu_family
from spotferry.domain.placement import Limits
from tests.unit.domain.offers import a_choice, a_plan, an_offer, chosen_type

OFFERS = [
    an_offer("c5.large", "0.01"),
    an_offer("m5.large", "0.02"),
    an_offer("m5.xlarge", "0.03", vcpus=4),
    an_offer("m5a.large", "0.015"),
    an_offer("m5.large", "0.005", provider="gcp"),
]
ON_M5 = Limits(cpu_families=frozenset({("aws", "m5")}))


@pytest.mark.parametrize(
    ("provider", "instance_type", "family"),
    [
        ("aws", "m5.large", "m5"),
        ("aws", "c7gn.16xlarge", "c7gn"),
        ("gcp", "n2-highmem-4", "n2"),
        ("azure", "Standard_D4s_v5", "standard_d*s_v5"),
        ("azure", "Standard_D96ads_v5", "standard_d*ads_v5"),
        ("azure", "Standard_E4-2ds_v4", "standard_e*ds_v4"),
        ("paperspace", "C5", "c5"),
    ],
)
def test_a_family_is_what_shares_its_processors(provider: str, instance_type: str, family: str) -> None:
    """Each cloud's names are read its own way; the size is no part of the family."""
    assert cpu_family(provider, instance_type) == family


def test_the_cheapest_of_the_family_wins() -> None:
    """Cheaper machines with another processor, or of another cloud, are excluded and counted."""
    assert chosen_type(OFFERS, ON_M5) == "m5.large"
    proof = a_plan(OFFERS, ON_M5)
    assert proof.chosen is not None
    assert proof.chosen.offer.provider == "aws"
    assert proof.excluded["checkpoint_processor"] == 3
    assert [c.offer.instance_type for c in proof.next] == ["m5.xlarge"]


def test_without_a_checkpoint_there_is_no_such_condition() -> None:
    """Anywhere means anywhere, and the proof does not mention processors."""
    proof = a_plan(OFFERS)
    assert proof.chosen is not None
    assert proof.chosen.offer.provider == "gcp"
    assert "checkpoint_processor" not in proof.excluded


def test_a_family_that_is_not_to_be_had_may_come_back() -> None:
    """Where only the processor is missing the job may wait: nothing is impossible, and the words say what there is."""
    proof = a_plan(OFFERS, Limits(cpu_families=frozenset({("aws", "x9")})))
    assert (proof.chosen, proof.impossible, proof.blocker) == (None, False, "checkpoint_processor")
    assert sum(proof.excluded.values()) == proof.considered
    assert "x9 of aws" in proof.words
    assert "m5.large in us-east-1a (gcp, spot)" in proof.words


def test_what_fits_nowhere_is_impossible_for_its_own_reason() -> None:
    """The processor is not blamed for what no machine could do."""
    proof = a_plan(OFFERS, ON_M5, cpu_cores=1000)
    assert (proof.impossible, proof.blocker) == (True, "cpu_cores")
    assert a_choice(OFFERS, ON_M5, cpu_cores=1000) is None


def test_fallback_looks_for_the_processor_in_both_markets() -> None:
    """A family without spot machines is taken on demand where the job allows that."""
    offers = [an_offer("c5.large", "0.01"), an_offer("m5.large", None)]
    proof = a_plan(offers, ON_M5, spot="fallback")
    assert proof.chosen is not None
    assert (proof.chosen.offer.instance_type, proof.chosen.market) == ("m5.large", "on_demand")
