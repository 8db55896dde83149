"""`spotferry catalog refresh` orders new prices, and `show` tells what the broker places by."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from cli.catalog_view import age
from tests.unit.cli.conftest import FakeBroker, Run

ASKED = "2026-03-01T12:00:00+00:00"
OLD, NEW = "2026-03-01T09:00:00+00:00", "2026-03-01T12:00:01+00:00"


def catalogue(built_at: str, problem: str = "") -> dict[str, object]:
    """The broker's catalogue as the API tells it."""
    source = {"offers": 3, "oldest": OLD, "newest": built_at}
    region = {"provider": "aws", "region": "us-east-1", **source, "tried_at": built_at, "problem": problem}
    return {"version": 2, "built_at": built_at, "sources": {"aws": source}, "regions": [region]}


def test_an_order_returns_at_once(run: Run, broker: FakeBroker) -> None:
    """It says where to look for the outcome."""
    broker.on("POST /catalog/refresh", httpx.Response(202, json={"asked_at": ASKED}))
    result = run("catalog", "refresh")
    assert result.exit_code == 0
    assert "spotferry catalog show" in result.stdout
    assert broker.calls() == ["POST /catalog/refresh"]
    assert json.loads(run("catalog", "refresh", "--json").stdout) == {"asked_at": ASKED}


def test_waiting_ends_when_newer_prices_are_in_force(run: Run, broker: FakeBroker) -> None:
    """The catalogue of before does not count."""
    broker.on("POST /catalog/refresh", httpx.Response(202, json={"asked_at": ASKED}))
    broker.on("GET /catalog", catalogue(OLD), catalogue(OLD), catalogue(NEW))
    result = run("catalog", "refresh", "--wait")
    assert result.exit_code == 0, result.output
    assert "built 2026-03-01 12:00:01" in result.stdout
    assert broker.pauses == [3.0, 3.0]


def test_a_region_without_new_prices_ends_with_1(run: Run, broker: FakeBroker) -> None:
    """The table is printed all the same, and stderr names the region and the reason."""
    broker.on("POST /catalog/refresh", httpx.Response(202, json={"asked_at": ASKED}))
    broker.on("GET /catalog", catalogue(NEW, "AccessDenied: no"))
    result = run("catalog", "refresh", "--wait", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["built_at"] == NEW
    assert "aws us-east-1: AccessDenied: no" in result.stderr


def test_waiting_has_an_end(run: Run, broker: FakeBroker) -> None:
    """A refresh that does not come is told, with where to look."""
    broker.on("POST /catalog/refresh", httpx.Response(202, json={"asked_at": ASKED}))
    broker.on("GET /catalog", catalogue(OLD))
    result = run("catalog", "refresh", "--wait", "--timeout", "9")
    assert result.exit_code == 1
    assert "no new prices within 9 seconds; the log of refresh_prices says why" in result.stderr
    assert broker.pauses == [3.0, 3.0, 3.0]


def test_a_broker_that_refuses_is_told(
    run: Run, broker: FakeBroker, make_problem: Callable[..., httpx.Response]
) -> None:
    """A person who may not is told so."""
    broker.on("POST /catalog/refresh", make_problem(403, "not you"))
    result = run("catalog", "refresh")
    assert result.exit_code == 1
    assert "not you" in result.stderr


def test_show_without_a_file_asks_the_broker(run: Run, broker: FakeBroker) -> None:
    """What jobs are placed by, region by region, with what came in the way."""
    broker.on("GET /catalog", catalogue(NEW, "Throttling: busy"))
    result = run("catalog", "show")
    assert result.exit_code == 0
    assert "us-east-1  3       2026-03-01 09:00:00" in result.stdout
    assert "Throttling: busy" in result.stdout
    assert json.loads(run("catalog", "show", "--json").stdout) == catalogue(NEW, "Throttling: busy")


@pytest.mark.parametrize(
    ("old", "says"),
    [
        (timedelta(minutes=3), "3m00s"),
        (timedelta(hours=3, minutes=5), "3h05m"),
        (timedelta(hours=50), "2 days"),
        (timedelta(seconds=-5), "0s"),
    ],
)
def test_an_age_is_said_as_a_person_says_it(old: timedelta, says: str) -> None:
    """Also of a clock that is a little ahead; a price whose time nobody knows has none."""
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert age((now - old).isoformat(), now) == says
    assert age(None, now) == "-"
