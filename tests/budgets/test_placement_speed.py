"""Placement keeps its budget over a list as long as the real ones: by counts, and by times with room to spare."""

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from statistics import median

import pytest

from benchmarks.offer_lists import REAL_SIZE, made_up, times
from benchmarks.specifications import SPECIFICATIONS
from spotferry.domain.interruption_rates import ToldRate
from spotferry.domain.offer_index import TypeRow
from spotferry.domain.placement import Limits, OfferIndex, choose, plan
from spotferry.types import UserInstanceSpecs
from spotferry.types.job_file import Input

LIMITS = Limits()
HELD = Limits(
    open_regions=frozenset({("aws", "us-east-1"), ("aws", "us-west-2"), ("aws", "eu-west-1-3")}),
    bans={("aws", "spot"): ["us-east-1/*/m5.*", "us-west-2/us-west-2a/*", "us-east-1/us-east-1b/c5.large"]},
    avoid=["us-east-1/us-east-1a/t3.micro"],
)
FAR = replace(
    LIMITS,
    inputs=(Input(uri="s3://data/x", location="aws/us-east-1", size_gb=Decimal(500)),),
    expected_hours=Decimal(8),
)
EXPECTED = replace(LIMITS, objective="expected_cost", expected_hours=Decimal(8))


@pytest.fixture(scope="module")
def index() -> OfferIndex:
    """An index over a list as long as the public ones together."""
    found = OfferIndex(made_up())
    assert len(found.offers) >= REAL_SIZE
    return found


@pytest.fixture(scope="module")
def longer(index: OfferIndex) -> OfferIndex:
    """An index over five times as many offers of the same types."""
    return OfferIndex(times(index.offers, 5))


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Each cell that a search looks at adds to the list."""
    seen: list[int] = []
    cells_in = TypeRow.cells_in

    def counting(row: TypeRow, zones: int) -> Iterator[int]:
        for at in cells_in(row, zones):
            seen.append(at)
            yield at

    monkeypatch.setattr(TypeRow, "cells_in", counting)
    return seen


def test_index_grows_with_types_not_with_offers(index: OfferIndex, longer: OfferIndex) -> None:
    """Five times the offers of the same types are the same rows: machine types are far fewer than offers."""
    assert len(longer.rows) == len(index.rows) < REAL_SIZE / 20


@pytest.mark.parametrize("specs", SPECIFICATIONS, ids=str)
def test_choice_looks_at_few_prices(index: OfferIndex, visits: list[int], specs: UserInstanceSpecs) -> None:
    """Of tens of thousands of prices a choice looks at a few hundred at most, also where nothing fits."""
    choose(index, specs, LIMITS)
    assert len(visits) <= 300


@pytest.mark.parametrize("specs", SPECIFICATIONS, ids=str)
def test_choice_over_a_longer_list_looks_at_hardly_more(
    index: OfferIndex, longer: OfferIndex, visits: list[int], specs: UserInstanceSpecs
) -> None:
    """Five times the offers do not mean five times the work."""
    choose(index, specs, LIMITS)
    before = len(visits)
    choose(longer, specs, LIMITS)
    assert len(visits) - before <= 2 * before + 20


@pytest.mark.parametrize("limits", [LIMITS, HELD, FAR, EXPECTED], ids=["free", "held", "far", "expected"])
@pytest.mark.parametrize(("decide", "median_ms", "worst_ms"), [(choose, 1.0, 10.0), (plan, 5.0, 30.0)])
def test_decision_takes_no_longer_than_its_budget(
    index: OfferIndex, limits: Limits, decide: Callable[..., object], median_ms: float, worst_ms: float
) -> None:
    """Five and three times the promised times are enough on a machine that is busy with other things."""
    series: list[float] = []
    gc.disable()  # its walk over the heap of a whole test session is no part of a decision
    try:
        for specs in SPECIFICATIONS * 5:
            start = time.thread_time_ns()
            decide(index, specs, limits)
            series.append((time.thread_time_ns() - start) / 1e6)
    finally:
        gc.enable()
    assert median(series) <= median_ms
    assert max(series[len(SPECIFICATIONS) :]) <= worst_ms


@pytest.mark.parametrize(("decide", "median_ms", "worst_ms"), [(choose, 1.0, 10.0), (plan, 5.0, 30.0)])
def test_rates_that_clouds_tell_keep_the_budget(
    index: OfferIndex, decide: Callable[..., object], median_ms: float, worst_ms: float
) -> None:
    """Also where every type has one in every region and in some zones."""
    told: dict[tuple[str, str], list[ToldRate]] = {}
    places = sorted({(offer.provider, offer.region, offer.zone) for offer in index.offers})
    for number, (provider, name) in enumerate(sorted({(o.provider, o.instance_type) for o in index.offers})):
        told[provider, name.casefold()] = [
            ToldRate(region, zone if spot % 3 else "", Decimal(1 + (number + spot) % 5) / 40, "told")
            for spot, (cloud, region, zone) in enumerate(places)
            if cloud == provider
        ]
    test_decision_takes_no_longer_than_its_budget(
        OfferIndex(index.offers, told=told), EXPECTED, decide, median_ms, worst_ms
    )
