"""Placement scores as rates, out of answers in EC2's shape, faults included; nothing leaves the process."""

from decimal import Decimal

import pytest

from spotferry.domain.interruption_rates import class_rate
from spotferry.providers.aws.placement_scores import FACTORS, FAMILIES_A_REGION, LIMIT_REACHED, SOURCE, families
from spotferry.providers.pricing import BAD_RATE
from spotferry.types.errors import ProviderError, ProviderUnavailable, SkipProvider
from spotferry.types.provider import PoolRate, TellsInterruptionRates
from tests.unit.providers.aws.price_answers import OFFERINGS_QUESTION, Answer, PriceRig, fact, gpus, offerings
from tests.unit.providers.aws.rig import NOW, REGION

AZ4, AZ6 = "use1-az4", "use1-az6"
M5 = ["m5.2xlarge", "m5.large", "m5.xlarge"]
G5 = ["g5.2xlarge", "g5.4xlarge", "g5.xlarge"]


def question(types: list[str], token: str = "") -> Answer:
    """What must be asked, to the letter."""
    asked: Answer = {
        "InstanceTypes": types,
        "TargetCapacity": 1,
        "SingleAvailabilityZone": True,
        "RegionNames": [REGION],
        "MaxResults": 100,
    }
    return asked | ({"NextToken": token} if token else {})


def scores(token: str | None = None, **by_zone: int) -> Answer:
    """An answer with these scores; zones are written with an underscore."""
    rows = [
        {"Region": REGION, "AvailabilityZoneId": zone.replace("_", "-"), "Score": score}
        for zone, score in by_zone.items()
    ]
    return {"SpotPlacementScores": rows} | ({} if token is None else {"NextToken": token})


class ScoreRig(PriceRig):
    """A pricing model whose region offers m5 in two zones and g5 in one."""

    def __init__(self) -> None:
        super().__init__()
        pools = [*((name, zone) for name in M5 for zone in (AZ4, AZ6)), *((name, AZ4) for name in G5), ("x1.big", AZ4)]
        self.ec2 = self.stub()
        self.ec2.add_response("describe_instance_type_offerings", offerings(*pools), OFFERINGS_QUESTION)

    def shapes(self, *types: str) -> None:
        """Let these types be described."""
        facts = [fact(name, gpus=gpus("A10G", 1, 24_576) if name in G5 else None) for name in types]
        self.ec2.add_response("describe_instance_types", {"InstanceTypes": facts}, {"InstanceTypes": sorted(types)})

    def rates(self) -> list[PoolRate]:
        """All rates of the region."""
        return list(self.pricing.interruption_rates(REGION))


def test_a_score_is_a_factor_on_the_class() -> None:
    """Each type of a family has its zone's score; a family of one type is not asked for, pages are followed."""
    rig = ScoreRig()
    rig.ec2.add_response("get_spot_placement_scores", scores(token="s-2", use1_az4=9), question(M5))
    rig.ec2.add_response("get_spot_placement_scores", scores(use1_az6=3), question(M5, "s-2"))
    rig.ec2.add_response("get_spot_placement_scores", scores(use1_az4=1, use1_az6=1), question(G5))
    rig.shapes(*M5, *G5)
    found = {(rate.instance_type, rate.zone): rate for rate in rig.rates()}
    usual, with_gpu = (class_rate("aws", "spot", has_gpu=gpu) for gpu in (False, True))
    assert len(found) == len(M5) * 2 + len(G5)
    assert found["m5.large", AZ4].per_hour == usual * Decimal("0.5")
    assert found["m5.xlarge", AZ6].per_hour == usual * 2
    assert found["g5.xlarge", AZ4].per_hour == with_gpu * 3
    assert (found["g5.xlarge", AZ4].source, found["g5.xlarge", AZ4].read_at) == (SOURCE, NOW)
    rig.done()


def test_better_scores_are_never_worse_rates() -> None:
    """Every score has a factor, and the factors fall as the scores rise."""
    assert sorted(FACTORS) == list(range(1, 11))
    assert [FACTORS[score] for score in sorted(FACTORS)] == sorted(FACTORS.values(), reverse=True)


def test_a_score_that_nobody_knows_is_no_rate() -> None:
    """It is noted; a zone without a score has none either."""
    rig = ScoreRig()
    rig.ec2.add_response("get_spot_placement_scores", scores(use1_az4=11), question(M5))
    rig.ec2.add_response("get_spot_placement_scores", scores(), question(G5))
    assert rig.rates() == []
    assert rig.notes == [(REGION, BAD_RATE, "m5 in use1-az4: score 11")]
    rig.done()


def test_the_day_s_last_question_ends_the_asking() -> None:
    """What was answered before counts; where nothing was, it is a failure."""
    rig = ScoreRig()
    rig.ec2.add_response("get_spot_placement_scores", scores(use1_az4=8), question(M5))
    rig.ec2.add_client_error("get_spot_placement_scores", LIMIT_REACHED, "no more", 400)
    rig.shapes(*M5)
    assert {rate.instance_type for rate in rig.rates()} == set(M5)
    rig.done()
    rig = ScoreRig()
    rig.ec2.add_client_error("get_spot_placement_scores", LIMIT_REACHED, "no more", 400)
    with pytest.raises(ProviderError, match=LIMIT_REACHED):
        rig.rates()


@pytest.mark.parametrize(
    ("code", "status", "error", "times"),
    [("UnauthorizedOperation", 403, SkipProvider, 1), ("RequestLimitExceeded", 503, ProviderUnavailable, 5)],
)
def test_refusals_are_ours(code: str, status: int, error: type[ProviderError], times: int) -> None:
    """A denial is told at once, throttling after the last repeat."""
    rig = ScoreRig()
    for _ in range(times):
        rig.ec2.add_client_error("get_spot_placement_scores", code, "no", status)
    with pytest.raises(error, match=code):
        rig.rates()
    rig.done()


def test_few_questions_are_asked_and_always_the_same() -> None:
    """The largest families by a fixed order, whatever the order of the listing."""
    pools = [(f"{family}.{size}", AZ4) for family in "abcdefgh" for size in "123"]
    pools += [("g6.1", AZ4), ("g6.2", AZ4), ("g6.3", AZ4), ("z9.1", AZ4), ("z9.2", AZ4)]
    chosen = families(pools)
    assert chosen == families(reversed(pools))
    assert len(chosen) == FAMILIES_A_REGION
    assert [types[0] for types in chosen] == ["g6.1", "a.1", "b.1", "c.1", "d.1"]


def test_the_model_says_that_it_tells() -> None:
    """A refresh asks models that have the part."""
    assert isinstance(PriceRig().pricing, TellsInterruptionRates)
