"""Whole runs: inputs that are dear to carry, fallback to on-demand, and expected cost."""

import random
from dataclasses import replace
from decimal import Decimal

import pytest

from spotferry.domain.interruption_rates import PoolHistory, class_rate, pool_rate
from spotferry.domain.placement import Limits, OfferIndex, choose, plan
from spotferry.domain.run_cost import BOOT_HOURS, COPY_GB_HOUR, LOST_HOURS
from spotferry.domain.transfer import transfer_usd
from spotferry.types import Candidate, Offer, UserInstanceSpecs
from spotferry.types.job_file import Input
from tests.unit.domain.offers import a_choice, a_gpu_offer, a_plan, an_offer, chosen_type

DATA = Input(uri="s3://data/set", location="aws/us-east-1", size_gb=Decimal(500))
HERE = an_offer("here.large", "0.0300")
THERE = an_offer("there.large", "0.0250", region="eu-west-1", zone="eu-west-1a")
CLOUD = an_offer("n1-standard-2", "0.0100", provider="gcp", region="us-central1", zone="us-central1-a")
ALL = [HERE, THERE, CLOUD]
WITH_DATA = Limits(inputs=(DATA,))


def test_data_is_not_carried_out_of_its_cloud_to_save_a_cent() -> None:
    """500 GB cost 45 dollars to another cloud and 10 to another region: the dearer machine beside them wins."""
    assert chosen_type(ALL) == "n1-standard-2"
    proof = a_plan(ALL, WITH_DATA)
    assert proof.chosen is not None
    assert proof.chosen.offer.instance_type == "here.large"
    assert [run.transfer_usd for run in proof.runs] == [0, 10, 60 * Decimal("0.75")]
    assert [run.usd for run in proof.runs] == [Decimal("0.03"), Decimal("10.025"), Decimal("45.01")]


def test_long_runs_are_worth_the_way() -> None:
    """Where the work takes so long that the cheaper machine saves more than the way costs, the data travels."""
    assert chosen_type(ALL, replace(WITH_DATA, expected_hours=Decimal(1999))) == "here.large"
    assert chosen_type(ALL, replace(WITH_DATA, expected_hours=Decimal(2001))) == "there.large"
    assert chosen_type(ALL, replace(WITH_DATA, expected_hours=Decimal(2334))) == "n1-standard-2"


def test_only_regions_that_were_asked_for_count() -> None:
    """Where the data's own region is not among them, the nearest that is wins, and pays the way."""
    proof = a_plan([*ALL, HERE], WITH_DATA, regions=["eu-west-1", "us-central1"])
    assert proof.chosen is not None
    assert (proof.chosen.offer.instance_type, proof.runs[0].transfer_usd) == ("there.large", Decimal(10))
    opened = replace(WITH_DATA, open_regions=frozenset({("gcp", "us-central1"), ("aws", "us-east-1")}))
    assert chosen_type(ALL, opened, regions=["us-central1"]) == "n1-standard-2"


def test_cap_is_on_the_hour_not_on_the_way() -> None:
    """`max_price_usd_hour` says what machine and disk may cost; it leaves a machine that the data is far from."""
    proof = a_plan(ALL, WITH_DATA, max_price_usd_hour="0.029")
    assert proof.chosen is not None
    assert (proof.chosen.offer.instance_type, proof.fit) == ("there.large", 2)
    assert proof.excluded["max_price_usd_hour"] == 1


def test_inputs_need_room_on_the_disk() -> None:
    """Without a size the disk grows by them; a size that does not hold image and inputs excludes the machine."""
    found = a_choice([HERE], WITH_DATA)
    assert found is not None
    assert found.disk_gb == 530
    assert a_choice([HERE], WITH_DATA, disk_gb=508) is not None
    proof = a_plan([HERE, a_gpu_offer()], WITH_DATA, disk_gb=507)
    assert (proof.impossible, proof.blocker) == (True, "disk_gb")
    own = replace(WITH_DATA, custom_image=True)
    assert a_choice([HERE], own, disk_gb=500) is not None
    assert a_choice([HERE], own, disk_gb=499) is None


def test_plan_tells_the_sum_for_an_expected_duration() -> None:
    """In words and in JSON; a plan that nobody asked for whole runs has none."""
    proof = a_plan(ALL, replace(WITH_DATA, expected_hours=Decimal(10)))
    assert "by the cost of the whole run the cheapest of 3 that fit" in proof.words
    assert "For 10 hours of work it comes to $0.3000: $0.3000 for 10 machine hours" in proof.words
    assert "$0.0000 to bring 500 GB of inputs to us-east-1." in proof.words
    printed = proof.to_json()
    chosen, following = printed["chosen"], printed["next"]
    assert isinstance(chosen, dict)
    assert isinstance(following, list)
    assert (chosen["run_usd"], chosen["run_hours"], chosen["run_transfer_usd"]) == (0.3, 10.0, 0.0)
    assert [one["run_usd"] for one in following] == [10.25, 45.1]
    plain = a_plan(ALL)
    assert "work" not in plain.words
    assert "run_usd" not in str(plain.to_json())
    assert "For 1 hour of work (expected_hours says otherwise)" in a_plan(ALL, WITH_DATA).words


def test_equal_runs_go_by_memory_then_name() -> None:
    """Ties of whole runs are broken as ties of prices are, and said."""
    offers = [an_offer("b.large"), an_offer("a.large"), an_offer("z.large", memory_gib=16)]
    limits = Limits(expected_hours=Decimal("3.7"))
    proof = a_plan(offers, limits)
    assert proof.chosen is not None
    assert proof.chosen.offer.instance_type == "z.large"
    assert "Others cost the same" in proof.words
    assert chosen_type(offers[:2], limits) == "a.large"


# ---- spot: fallback


def test_fallback_takes_spot_while_there_is_any() -> None:
    """The on-demand machine stands back, even where it would be cheaper."""
    offers = [an_offer("m5.large", "0.05", on_demand_usd_hour="0.04")]
    found = a_choice(offers, spot="fallback")
    assert found is not None
    assert found.market == "spot"
    assert a_plan(offers, spot="fallback") == a_plan(offers, spot=True)


def test_fallback_takes_on_demand_while_no_spot_machine_is_free() -> None:
    """Banned pools, avoided ones, types without a spot price: the list price is paid, and the words say why."""
    banned = Limits(bans={("aws", "spot"): ["*/*/*"]})
    proof = a_plan([an_offer()], banned, spot="fallback")
    assert proof.chosen is not None
    assert (proof.chosen.market, proof.chosen.price_usd_hour) == ("on_demand", Decimal("0.096"))
    assert "On demand, because of spot: Nothing that fits is free now" in proof.words
    assert sum(proof.excluded.values()) + proof.fit == proof.considered
    unsold = a_choice([an_offer("x1.large", None)], spot="fallback")
    assert unsold is not None
    assert unsold.market == "on_demand"


def test_fallback_waits_where_neither_is_free_now() -> None:
    """Nothing is impossible while one of the markets only has to be waited for."""
    everything = Limits(bans={("aws", "spot"): ["*/*/*"], ("aws", "on_demand"): ["*/*/*"]})
    proof = a_plan([an_offer()], everything, spot="fallback")
    assert (proof.chosen, proof.impossible, proof.blocker) == (None, False, "banned")
    assert proof.words.startswith("Spot: Nothing that fits is free now")
    assert "On demand: Nothing that fits is free now" in proof.words
    listed_only = a_plan([an_offer("x1.large", None)], everything, spot="fallback")
    assert (listed_only.impossible, listed_only.blocker) == (False, "banned")


def test_fallback_that_nothing_can_meet_is_impossible() -> None:
    """Neither market has it: it fails at once, naming the key."""
    proof = a_plan([an_offer()], spot="fallback", cpu_cores=64)
    assert (proof.impossible, proof.blocker) == (True, "cpu_cores")
    capped = a_plan([an_offer(spot="0.05")], spot="fallback", max_price_usd_hour="0.04")
    assert (capped.impossible, capped.blocker) == (True, "max_price_usd_hour")


# ---- objective: expected_cost

CALM = an_offer("calm.large", "0.03001")
RESTLESS = an_offer("n1-standard-2", "0.0300", provider="gcp", region="us-central1", zone="us-central1-a")


def by_expected_cost(hours: str = "10", **changes: object) -> Limits:
    """The mode, for so many hours."""
    return replace(Limits(objective="expected_cost", expected_hours=Decimal(hours)), **changes)  # type: ignore[arg-type]  # fields


def test_restless_pool_loses_where_restarts_cost_more_than_it_saves() -> None:
    """By price Google's machine wins by a hair; by expected cost the restarts eat that up, and more."""
    assert chosen_type([CALM, RESTLESS]) == "n1-standard-2"
    proof = a_plan([CALM, RESTLESS], by_expected_cost())
    assert proof.chosen is not None
    assert proof.chosen.offer.instance_type == "calm.large"
    assert proof.runs[0].interruptions < proof.runs[1].interruptions
    assert proof.to_json()["objective"] == "expected_cost"
    assert "interruptions expected from what is known of its class." in proof.words


def test_formula_is_the_one_in_the_docs() -> None:
    """Hours = (work + start) / (1 - rate * (start + lost)); usd = price * hours + transfer * (1 + rate * hours)."""
    limits = by_expected_cost(inputs=(DATA,))
    run = a_plan([THERE], limits).runs[0]
    rate = Decimal("0.08") / 730
    start = BOOT_HOURS + 500 / COPY_GB_HOUR
    hours = (10 + start) / (1 - rate * (start + LOST_HOURS))
    assert run.hours == hours
    assert run.interruptions == rate * hours
    assert run.transfer_usd == 10 * (1 + rate * hours)
    assert run.usd == Decimal("0.0250") * hours + run.transfer_usd


def test_list_price_is_never_interrupted() -> None:
    """On-demand machines cost their hours, and one start."""
    run = a_plan([CALM], by_expected_cost(), spot=False).runs[0]
    assert (run.interruptions, run.hours) == (Decimal(0), 10 + BOOT_HOURS)
    assert class_rate("aws", "on_demand", has_gpu=True) == 0
    assert pool_rate(Decimal(0), PoolHistory(Decimal(5), 3)) == 0


def test_classes_are_told_apart() -> None:
    """GPU machines are taken back more often; a cloud that nobody knows is not taken for a calm one."""
    for cloud in ("aws", "gcp", "azure"):
        assert class_rate(cloud, "spot", has_gpu=True) > class_rate(cloud, "spot", has_gpu=False) > 0
    assert class_rate("nimbus", "spot", has_gpu=False) >= class_rate("azure", "spot", has_gpu=False)


def test_own_history_outweighs_the_class_the_longer_it_is() -> None:
    """A day of our own weighs as much as the table; a long one decides."""
    usual = Decimal("0.01")
    assert pool_rate(usual, PoolHistory(Decimal(0), 0)) == usual
    assert pool_rate(usual, PoolHistory(Decimal(24), 0)) == usual / 2
    long = pool_rate(usual, PoolHistory(Decimal(10_000), 2_000))
    assert abs(long - Decimal("0.2")) < Decimal("0.001")


def test_pool_that_took_our_machines_back_is_corrected_alone() -> None:
    """The other zone of the same type, other types and the other market keep their class's rate."""
    offers = [an_offer(), an_offer(zone="us-east-1b", spot="0.0301"), an_offer("c5.large", "0.0302")]
    past = {
        "us-east-1/us-east-1a/m5.large": PoolHistory(Decimal(10), 30),
        "nowhere/at/all": PoolHistory(Decimal(1), 1),
        "us-east-1/us-east-1a/none": PoolHistory(Decimal(1), 1),
    }
    assert a_plan(offers, by_expected_cost()).chosen == a_plan(offers).chosen
    proof = a_plan(offers, by_expected_cost(history={("aws", "spot"): past}))
    assert proof.chosen is not None
    assert (proof.chosen.offer.zone, proof.next[-1].offer.zone) == ("us-east-1b", "us-east-1a")
    assert proof.runs[-1].interruptions > 8
    assert proof.runs[1].interruptions < 1
    elsewhere = {("gcp", "spot"): past, ("aws", "on_demand"): past}
    assert a_plan(offers, by_expected_cost(history=elsewhere)).chosen == a_plan(offers).chosen


def test_pool_without_headway_still_has_a_cost() -> None:
    """One that interrupts faster than machines start is dear, not infinite: where nothing else is free it is taken."""
    hopeless = {("aws", "spot"): {"us-east-1/us-east-1a/m5.large": PoolHistory(Decimal(1), 10_000)}}
    proof = a_plan([an_offer()], by_expected_cost(history=hopeless))
    assert proof.chosen is not None
    assert proof.runs[0].hours > 1000


@pytest.mark.parametrize("seed", range(20))
def test_expected_cost_is_the_least_that_brute_force_finds(seed: int) -> None:
    """Over random offers, histories, inputs and durations, with and without a cap."""
    dice = random.Random(seed)  # noqa: S311 (a seed, so that a failure repeats)
    offers = _random_offers(dice)
    pools = [f"{o.region}/{o.zone}/{o.instance_type}" for o in offers if o.provider == "aws"]
    past = {pool: PoolHistory(Decimal(dice.randint(1, 200)), dice.randint(0, 9)) for pool in dice.sample(pools, 5)}
    limits = by_expected_cost(
        str(dice.choice([0.5, 3, 40])),
        inputs=dice.choice([(), (DATA,)]),
        history={("aws", "spot"): past},
    )
    specs = UserInstanceSpecs(max_price_usd_hour=dice.choice([Decimal(0), Decimal("0.05")]))
    index = OfferIndex(offers)
    proof = plan(index, specs, limits)
    assert choose(index, specs, limits) == proof.chosen
    costs = sorted(_cost(offer, limits, past) for offer in offers if _within(offer, specs, limits))
    assert [run.usd for run in proof.runs] == costs[:11]
    assert proof.fit == len(costs)


def _random_offers(dice: random.Random) -> list[Offer]:
    places = [("aws", "us-east-1", "a"), ("aws", "us-east-1", "b"), ("aws", "eu-west-1", "a"), ("gcp", "us-east1", "b")]
    return [
        an_offer(
            f"t{number}.large",
            f"{dice.uniform(0.01, 0.06):.4f}",
            provider=provider,
            region=region,
            zone=region + zone,
            disk_usd_gib_month=dice.choice(["0", "0.08", "0.1"]),
        )
        for number in range(12)
        for provider, region, zone in places
    ]


def _within(offer: Offer, specs: UserInstanceSpecs, limits: Limits) -> bool:
    cap = specs.max_price_usd_hour
    return not cap or _candidate(offer, limits).total_usd_hour <= cap


def _candidate(offer: Offer, limits: Limits) -> Candidate:
    found = choose(OfferIndex([offer]), UserInstanceSpecs(), limits)
    assert found is not None
    return found


def _cost(offer: Offer, limits: Limits, past: dict[str, PoolHistory]) -> Decimal:
    rate = Decimal("0.08") / 730 if offer.provider == "aws" else Decimal("0.10") / 24
    own = past.get(f"{offer.region}/{offer.zone}/{offer.instance_type}") if offer.provider == "aws" else None
    if own is not None:
        rate = (rate * 24 + own.interruptions) / (24 + own.hours)
    gb = sum(given.size_gb for given in limits.inputs)
    start = Decimal(5) / 60 + gb / Decimal(360)
    hours = (limits.expected_hours + start) / (1 - min(rate * (start + Decimal(5) / 60), Decimal("0.99")))
    copies = transfer_usd(limits.inputs, offer.provider, offer.region) * (1 + rate * hours)
    return _candidate(offer, limits).total_usd_hour * hours + copies
