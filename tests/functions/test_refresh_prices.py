"""The schedule of prices, and people's orders for new ones."""

import json
from decimal import Decimal

import pytest

from spotferry.types import Misconfigured, ProviderError, ProviderUnavailable
from tests.fake_prices import FakePricing
from tests.fakes import an_offer
from tests.functions.deployment import Deployment, event

SCHEDULE = event("refresh_prices", "schedule")
ORDER = event("refresh_prices", "order")
ANYTHING = "task:\n  run: x\n"
CHEAP = an_offer("t3.small", "us-east-1a", "0.001")
FAR = an_offer("t3.small", "eu-west-1a", "0.002")


def test_a_refresh_is_told_in_figures(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is plain JSON, and what an alarm may watch is counted."""
    told = deployment.invoke("refresh_prices", SCHEDULE)
    assert json.loads(json.dumps(told)) == {
        "built_at": told["built_at"],
        "offers": 5,
        "problems": [],
        "oddities": {},
    }
    out = capsys.readouterr().out
    assert '"OffersInCatalogue":[5.0]' in out
    assert '"RegionsWithoutNewPrices":[0.0]' in out


def test_the_next_plan_goes_by_the_new_prices(deployment: Deployment) -> None:
    """What was read is what placement compares; nothing else has to happen in between."""
    deployment.prices.clouds["aws"] = FakePricing({"us-east-1": [CHEAP], "eu-west-1": [FAR]})
    deployment.invoke("refresh_prices", SCHEDULE)
    chosen = deployment.call("submit_job", "POST /plan", ANYTHING).json["chosen"]
    assert (chosen["zone"], Decimal(str(chosen["price_usd_hour"]))) == ("us-east-1a", Decimal("0.001"))


def test_prices_that_grew_too_old_fail_the_call_after_the_rest_is_in_force(
    deployment: Deployment, capsys: pytest.CaptureFixture[str]
) -> None:
    """The alarm on the function's errors hears of it; the region that did answer is in force, the other is kept."""
    deployment.prices.clouds["aws"] = FakePricing({"us-east-1": [CHEAP], "eu-west-1": ProviderError("Denied", "no")})
    with pytest.raises(ProviderUnavailable, match=r"StalePrices: .*aws eu-west-1: .*Denied"):
        deployment.invoke("refresh_prices", SCHEDULE)
    assert '"RegionsWithoutNewPrices":[1.0]' in capsys.readouterr().out
    told = deployment.answer("submit_job", event("submit_job", "catalog")).json
    regions = {region["region"]: (region["offers"], region["problem"]) for region in told["regions"]}
    assert regions == {"us-east-1": (1, ""), "eu-west-1": (2, "Denied: no")}
    assert {region["tried_at"] for region in told["regions"]} == {told["built_at"]}


def test_a_deployment_without_open_regions_says_so(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call fails, and the catalogue stays."""
    monkeypatch.setattr(deployment.wiring.parameters, "regions", list)
    before = deployment.written()
    with pytest.raises(Misconfigured, match="no launch region"):
        deployment.invoke("refresh_prices", SCHEDULE)
    assert deployment.written() == before


def test_an_order_goes_to_the_function_in_the_callers_name(deployment: Deployment) -> None:
    """202 at once; the function gets the time that the answer names."""
    answer = deployment.answer("submit_job", event("submit_job", "refresh_catalog"))
    assert answer.status == 202
    (order,) = deployment.refreshes
    assert order == {"asked_at": answer.json["asked_at"], "asked_by": "arn:aws:iam::123456789012:user/mary"}
    assert deployment.invoke("refresh_prices", order)["offers"] == 5
    assert deployment.invoke("refresh_prices", order) == {"skipped": "the catalogue is newer than the order"}


@pytest.mark.parametrize("what", [event("refresh_prices", "malformed"), {"asked_at": "2026-03-01T12:00:00"}, []])
def test_what_is_no_order_is_set_aside(deployment: Deployment, what: object) -> None:
    """It is logged and counted, and nobody is asked for prices."""
    before = deployment.written()
    assert "set_aside" in deployment.invoke("refresh_prices", what)  # type: ignore[arg-type]  # that is the point
    assert deployment.written() == before


def test_get_catalog_tells_what_is_in_force(deployment: Deployment) -> None:
    """Also when no refresh has made it."""
    told = deployment.answer("submit_job", event("submit_job", "catalog")).json
    assert told["sources"]["aws"]["offers"] == 5
    assert {region["tried_at"] for region in told["regions"]} == {None}
