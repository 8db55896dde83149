"""Rates of interruptions that clouds tell: between what is known of a class and our own machines' history."""

import random
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest
from pydantic import ValidationError

from spotferry.domain.interruption_rates import PoolHistory, class_rate, told_by
from spotferry.domain.placement import Limits, OfferIndex, choose, plan
from spotferry.domain.plan import Plan
from spotferry.types import Offer, UserInstanceSpecs
from spotferry.types.provider import PoolRate
from tests.builders import NOW
from tests.unit.domain.offers import an_offer

ANY = UserInstanceSpecs()
EXPECTED = Limits(objective="expected_cost", expected_hours=Decimal(10))
START = Decimal(5) / 60


def told(per_hour: str = "0.2", zone: str = "", **changes: object) -> PoolRate:
    """What the cloud tells of m5.large in us-east-1."""
    rate = PoolRate(
        provider="aws",
        region="us-east-1",
        zone=zone,
        instance_type="m5.large",
        per_hour=Decimal(per_hour),
        source="azure_eviction_rate",
        read_at=NOW,
    )
    return rate.model_copy(update=changes)


def planned(offers: Sequence[Offer], rates: Sequence[PoolRate], limits: Limits = EXPECTED, **specs: object) -> Plan:
    """The plan over these offers, told these rates."""
    return plan(OfferIndex(offers, told=told_by(rates)), UserInstanceSpecs.model_validate(specs), limits)


def rate_of(proof: Plan, number: int = 0) -> Decimal:
    """The rate of interruptions that a run in the proof is made of."""
    return proof.runs[number].interruptions / proof.runs[number].hours


def test_what_the_cloud_tells_outdoes_the_class() -> None:
    """A pool that is told to be restless loses to its dearer neighbour; whatever the case that its type is told in."""
    offers = [an_offer(), an_offer("c5.large", "0.0302")]
    for name in ("m5.large", "M5.Large"):
        proof = planned(offers, [told(instance_type=name)])
        assert proof.chosen is not None
        assert proof.chosen.offer.instance_type == "c5.large"
        assert [run.interruptions_source for run in proof.runs] == ["class", "azure_eviction_rate"]
        assert abs(rate_of(proof, 1) - Decimal("0.2")) < Decimal("1e-20")
        assert abs(rate_of(proof) - class_rate("aws", "spot", has_gpu=False)) < Decimal("1e-20")


def test_a_zone_outdoes_its_region() -> None:
    """What is told of all zones holds where nothing is told of the zone itself."""
    offers = [an_offer(), an_offer(zone="us-east-1b", spot="0.0301"), an_offer(region="eu-west-1", spot="0.0302")]
    proof = planned(offers, [told("0.3"), told("0.01", zone="us-east-1b")])
    assert proof.chosen is not None
    by_zone = {
        candidate.offer.region + candidate.offer.zone[-1:]: (
            run.interruptions_source,
            round(run.interruptions / run.hours, 9),
        )
        for candidate, run in zip((proof.chosen, *proof.next), proof.runs, strict=True)
    }
    usual = round(class_rate("aws", "spot", has_gpu=False), 9)
    assert sorted(by_zone.values()) == [
        ("azure_eviction_rate", Decimal("0.010000000")),
        ("azure_eviction_rate", Decimal("0.300000000")),
        ("class", usual),
    ]


def test_own_machines_correct_what_the_cloud_tells() -> None:
    """The told rate is what a day of our own is weighed against, pool by pool; the proof names both."""
    offers = [an_offer(), an_offer(zone="us-east-1b", spot="0.0301")]
    past = {("aws", "spot"): {"us-east-1/us-east-1a/m5.large": PoolHistory(Decimal(24), 0)}}
    proof = planned(offers, [told("0.2")], replace(EXPECTED, history=past))
    assert [run.interruptions_source for run in proof.runs] == [
        "own_history+azure_eviction_rate",
        "azure_eviction_rate",
    ]
    assert abs(rate_of(proof) - Decimal("0.1")) < Decimal("1e-20")
    assert abs(rate_of(proof, 1) - Decimal("0.2")) < Decimal("1e-20")
    untold = planned(offers, [], replace(EXPECTED, history=past))
    assert {run.interruptions_source for run in untold.runs} == {"own_history+class", "class"}


def test_the_proof_names_its_source() -> None:
    """In words and in JSON; a source that nobody has words for stands as it is."""
    proof = planned([an_offer()], [told()])
    assert proof.words.endswith("interruptions expected from Azure's eviction rate.")
    chosen = proof.to_json()["chosen"]
    assert isinstance(chosen, dict)
    assert chosen["run_interruptions_source"] == "azure_eviction_rate"
    past = {("aws", "spot"): {"us-east-1/us-east-1a/m5.large": PoolHistory(Decimal(1), 0)}}
    both = planned([an_offer()], [told(source="rumour")], replace(EXPECTED, history=past))
    assert both.words.endswith("expected from rumour and what became of your own machines there.")


def test_the_list_price_is_not_told_to_be_interrupted() -> None:
    """A rate is of spot machines; on-demand ones of the same type keep none."""
    run = planned([an_offer()], [told()], spot=False).runs[0]
    assert (run.interruptions, run.interruptions_source) == (Decimal(0), "class")


def test_rates_of_what_is_not_offered_change_nothing() -> None:
    """Other clouds, regions, zones and types."""
    strangers = [
        told(provider="gcp"),
        told(region="mars-1"),
        told(zone="us-east-1z"),
        told(instance_type="m5.larger"),
    ]
    assert planned([an_offer()], strangers) == planned([an_offer()], [])


@pytest.mark.parametrize("wrong", ["0", "-0.1", "NaN", "Infinity"])
def test_no_cloud_promises_none(wrong: str) -> None:
    """A rate is finite and above zero."""
    with pytest.raises(ValidationError):
        PoolRate.model_validate(told().model_dump() | {"per_hour": wrong})


def _random_world(dice: random.Random) -> tuple[list[Offer], list[PoolRate], dict[str, PoolHistory]]:
    zones = [("us-east-1", "us-east-1a"), ("us-east-1", "us-east-1b"), ("eu-west-1", "eu-west-1a")]
    names = [f"t{number}.large" for number in range(10)]
    offers = [
        an_offer(name, f"{dice.uniform(0.01, 0.03):.4f}", region=region, zone=zone)
        for name in names
        for region, zone in zones
    ]
    rates = [
        told(f"{dice.uniform(0.001, 0.9):.3f}", dice.choice(["", zone]), region=region, instance_type=name)
        for name in names
        for region, zone in dice.sample(zones, 2)
        if dice.random() < 0.8
    ]
    unique = {(rate.instance_type, rate.region, rate.zone): rate for rate in rates}
    pools = [f"{offer.region}/{offer.zone}/{offer.instance_type}" for offer in dice.sample(offers, 8)]
    past = {pool: PoolHistory(Decimal(dice.randint(1, 99)), dice.randint(0, 9)) for pool in pools}
    return offers, list(unique.values()), past


def _cost(offer: Offer, rates: Sequence[PoolRate], past: dict[str, PoolHistory], limits: Limits) -> Decimal:
    """The formula of the docs, over whatever is said of this one offer."""
    said = [rate for rate in rates if (rate.region, rate.instance_type) == (offer.region, offer.instance_type)]
    exact = [rate.per_hour for rate in said if rate.zone == offer.zone]
    wide = [rate.per_hour for rate in said if not rate.zone]
    (rate, *_) = [*exact, *wide, Decimal("0.08") / 730]
    own = past.get(f"{offer.region}/{offer.zone}/{offer.instance_type}")
    if own is not None:
        rate = (rate * 24 + own.interruptions) / (24 + own.hours)
    hours = (limits.hours + START) / (1 - min(rate * (START + START), Decimal("0.99")))
    alone = choose(OfferIndex([offer]), ANY, Limits())
    assert alone is not None
    return alone.total_usd_hour * hours


@pytest.mark.parametrize("seed", range(30))
def test_expected_cost_over_told_rates_is_what_brute_force_finds(seed: int) -> None:
    """Over random offers, rates of zones and of regions, and histories."""
    offers, rates, past = _random_world(dice := random.Random(seed))  # noqa: S311 (a seed, so that a failure repeats)
    limits = replace(EXPECTED, expected_hours=Decimal(dice.choice([1, 8, 100])), history={("aws", "spot"): past})
    index = OfferIndex(offers, told=told_by(rates))
    proof = plan(index, ANY, limits)
    assert choose(index, ANY, limits) == proof.chosen
    costs = sorted(_cost(offer, rates, past, limits) for offer in offers)
    assert [run.usd for run in proof.runs] == costs[:11]


@pytest.mark.parametrize("seed", range(30))
def test_the_objective_price_hears_nothing_of_rates(seed: int) -> None:
    """The same plan to the last word, with and without rates and histories."""
    offers, rates, past = _random_world(random.Random(seed))  # noqa: S311 (as above)
    limits = Limits(expected_hours=Decimal(5), history={("aws", "spot"): past})
    proof = planned(offers, rates, limits)
    assert proof == planned(offers, [], replace(limits, history={}))
    assert {run.interruptions_source for run in proof.runs} == {""}
    assert "run_interruptions_source" not in str(proof.to_json())
