"""Azure's eviction rates over replayed answers: steps, pages, and everything that can be wrong with an answer."""

from decimal import Decimal

import pytest

from spotferry.providers.azure.eviction_rates import SOURCE, STEPS
from spotferry.providers.pricing import BAD_RATE
from spotferry.providers.rest import Json
from spotferry.types.errors import ProviderUnavailable
from spotferry.types.provider import PoolRate, TellsInterruptionRates
from tests.unit.providers.azure.azure_answers import NOW, Azure
from tests.unit.providers.replay import Answer, refused

GRAPH = "Microsoft.ResourceGraph/resources"


def row(name: str = "standard_d4s_v5", step: object = "5-10") -> Json:
    """A row of the table, as the question projects it."""
    return {"skuName": name, "evictionRate": step}


def page(*rows: Json, token: str | None = None) -> Answer:
    """An answer of Resource Graph."""
    body: dict[str, object] = {"totalRecords": len(rows), "count": len(rows), "data": list(rows), "facets": []}
    return Answer(body | ({"$skipToken": token} if token else {}))


def rates(*answers: Answer | Exception) -> tuple[Azure, list[PoolRate]]:
    """What comes of these answers."""
    azure = Azure()
    azure.pool.answer(GRAPH, *answers)
    return azure, list(azure.model.interruption_rates("eastus"))


def test_each_step_is_a_rate_for_an_hour() -> None:
    """The middle of each documented step; the type keeps Azure's spelling, the zone is any."""
    _, found = rates(page(*(row(f"standard_d{number}", step) for number, step in enumerate(STEPS))))
    assert [rate.per_hour * 1000 for rate in found] == [25, 75, 125, 175, 225]
    assert found[0] == PoolRate(
        provider="azure",
        region="eastus",
        zone="",
        instance_type="standard_d0",
        per_hour=Decimal("0.025"),
        source=SOURCE,
        read_at=NOW,
    )


def test_pages_are_followed_by_their_token() -> None:
    """The question is posted with our token and names the region; later pages carry what the one before gave."""
    azure, found = rates(page(row("a"), token="t-2"), page(token="t-3"), page(row("b")))
    assert [rate.instance_type for rate in found] == ["a", "b"]
    assert [asked.question["options"].get("$skipToken") for asked in azure.pool.asked] == [None, "t-2", "t-3"]
    for asked in azure.pool.asked:
        assert (asked.method, asked.headers["Authorization"]) == ("POST", "Bearer secret")
        assert "location =~ 'eastus'" in asked.question["query"]
        assert "subscriptions" not in asked.question


@pytest.mark.parametrize("step", ["25-30", "", None, "low", "5"])
def test_a_step_that_nobody_knows_is_no_rate(step: object) -> None:
    """It is noted, and the others stand; so is a row without a name."""
    azure, found = rates(page(row(step=step), row("", "0-5"), row("b")))
    assert [rate.instance_type for rate in found] == ["b"]
    assert azure.oddities() == {BAD_RATE: 2}


def test_no_rows_are_no_rates() -> None:
    """A region that the table does not know has none."""
    assert rates(page())[1] == []


def test_a_refusal_names_its_code() -> None:
    """A 403 is told at once, with Azure's words."""
    with refused("AuthorizationFailed"):
        rates(Answer({"error": {"code": "AuthorizationFailed", "message": "no"}}, 403))


def test_throttling_is_waited_out() -> None:
    """A 429 and a 503 are asked again; one that goes on is no verdict."""
    busy = Answer({"error": {"code": "RateLimiting", "message": "slow down"}}, 429, {"Retry-After": "5"})
    _, found = rates(busy, Answer(b"oops", 503), page(row()))
    assert len(found) == 1
    with refused("RateLimiting", ProviderUnavailable):
        rates(busy)


def test_an_answer_that_is_none_is_refused() -> None:
    """Rows that are no objects, or a listing that never ends."""
    with refused("InvalidAnswer"):
        rates(Answer({"data": {"columns": [], "rows": []}}))
    with refused("EndlessPages"):
        rates(page(row(), token="again"))


def test_a_region_cannot_carry_a_question() -> None:
    """What is no name of a region never reaches the query."""
    with refused("InvalidRegion"):
        list(Azure().model.interruption_rates("x' or true"))


def test_the_model_says_that_it_tells() -> None:
    """A refresh asks models that have the part."""
    assert isinstance(Azure().model, TellsInterruptionRates)
