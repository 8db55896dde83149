"""`spotferry cost`."""

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.cli.conftest import FakeBroker, Run

LEDGER = {
    "jobs": 1,
    "instances": 2,
    "interruptions": 1,
    "requests": 80,
    "seconds": 5400,
    "machine_usd": 0.1,
    "disk_usd": 0.01,
    "storage_usd": 0.001,
    "transfer_usd": 0.0,
    "broker_usd": 0.0002,
    "total_usd": 0.1112,
    "waived_usd": 0.05,
    "on_demand_usd": 0.4,
    "saved_usd": 0.2888,
}


def page(keys: list[str], cursor: str | None = None) -> dict[str, object]:
    """One page of the answer, a group for each key."""
    rows = [{"key": key, **LEDGER} for key in keys]
    total = {name: value * len(keys) for name, value in LEDGER.items()}
    return {"by": "project", "groups": rows, "total": total, "cursor": cursor}


def test_groups_of_all_pages_are_added_up(run: "Run", broker: "FakeBroker") -> None:
    """A project that is on two pages is one row; the last row is all of them."""
    broker.on("GET /costs", page(["vision", ""], "next"), page(["vision"]))
    lines = run("cost", "--by", "project", "--since", "2026-01-01").stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["vision", "2", "4", "3h00m"],
        ["-", "1", "2", "1h30m"],
        ["all", "3", "6", "4h30m"],
    ]
    assert lines[1].split()[4] == "$0.200000"
    assert lines[-1].split()[-2:] == ["$0.333600", "$1.200000"]


def test_json_is_the_sum_of_the_pages(run: "Run", broker: "FakeBroker") -> None:
    """One document, whatever the number of pages."""
    broker.on("GET /costs", page(["a"], "next"), page(["a", "b"]))
    found = json.loads(run("cost", "--by", "project", "--json").stdout)
    assert {row["key"]: row["jobs"] for row in found["groups"]} == {"a": 2, "b": 1}
    assert found["total"]["jobs"] == 3
    assert found["total"]["machine_usd"] == 0.3


def test_one_job_is_shown_machine_by_machine(
    run: "Run", broker: "FakeBroker", job: dict[str, Any]
) -> None:  # Any: JSON
    """The parts of its cost, then its machines with their prices and who ended them."""
    machines = [
        {**m, "disk_usd_hour": 0.002, "on_demand_usd_hour": None, "ended_by": "cloud"} for m in job["instances"]
    ]
    answer = {"by": "job", "groups": [{"key": "j-1", **LEDGER}], "total": LEDGER, "cursor": None, "instances": machines}
    broker.on("GET /costs", answer)
    shown = run("cost", "j-1").stdout
    assert "total:              $0.111200" in shown
    assert "not billed:         $0.050000" in shown
    assert shown.splitlines()[-1].split()[0] == "2"
    assert shown.splitlines()[-1].split()[-1] == "cloud"
    assert json.loads(run("cost", "j-1", "--json").stdout)["instances"] == machines


@pytest.mark.parametrize(("taken_back", "words"), [(True, "us, at its notice"), (False, "us")])
def test_a_machine_that_left_at_a_notice_is_told_apart(
    run: "Run",
    broker: "FakeBroker",
    job: dict[str, Any],  # Any: JSON
    taken_back: bool,  # noqa: FBT001 (a parameter of the test)
    words: str,
) -> None:
    """We end a machine that gave its job back before the cloud does: the cloud's notice is still the cause."""
    told = {"disk_usd_hour": 0, "on_demand_usd_hour": None, "ended_by": "us", "taken_back": taken_back}
    machines = [{**job["instances"][0], **told}]
    broker.on("GET /costs", {"by": "job", "groups": [], "total": LEDGER, "cursor": None, "instances": machines})
    assert run("cost", "j-1").stdout.splitlines()[-1].endswith(f"  {words}")


def test_no_jobs_is_said(run: "Run", broker: "FakeBroker") -> None:
    """An empty ledger is a word."""
    broker.on("GET /costs", {**page([]), "total": {**LEDGER, "jobs": 0}})
    assert run("cost").stdout == "no jobs\n"


@pytest.mark.parametrize("option", [("--by", "project"), ("--since", "2026-01-01")])
def test_one_job_is_not_grouped(run: "Run", broker: "FakeBroker", option: tuple[str, str]) -> None:
    """What makes no sense is refused before anybody is asked."""
    result = run("cost", "j-1", *option)
    assert (result.exit_code, broker.asked) == (2, [])
    assert option[0] in result.stderr
