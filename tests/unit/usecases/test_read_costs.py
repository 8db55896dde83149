"""What people read of the ledger."""

import json
from decimal import Decimal

import pytest

from spotferry.domain.ledger import Bucket
from spotferry.types import InvalidInput, NotFound
from spotferry.usecases.read_costs import ReadCosts
from tests.fakes import FakeCatalogue, an_offer
from tests.unit.usecases.world import World

HOUR = 3600


@pytest.fixture
def costs(world: World) -> ReadCosts:
    """The ledger of the world's jobs."""
    return ReadCosts(world.store, Bucket("aws", "us-east-1"), world.clock)


def test_one_job_is_told_machine_by_machine(world: World, costs: ReadCosts) -> None:
    """The job's ledger, and each of its machines with what it cost."""
    job, attempt = world.running()
    world.clock.move(hours=1)
    world.beat(attempt)
    found = costs.asked("ann", {"job": job.job_id}, 10)
    assert json.loads(json.dumps(found)) == found
    [group] = found["groups"]
    assert (group["key"], group["seconds"], group["machine_usd"]) == (job.job_id, HOUR, 0.010)
    assert group["requests"] == world.job(job).revision + 2  # the hello's word and the heartbeat's
    assert group["total_usd"] == pytest.approx(
        sum(group[part] for part in ("machine_usd", "disk_usd", "storage_usd", "transfer_usd", "broker_usd")), abs=1e-8
    )
    assert [machine["instance_id"] for machine in found["instances"]] == [attempt.cedana_id]
    assert found["total"] == {name: value for name, value in group.items() if name != "key"}


def test_history_does_not_change_with_the_catalogue(world: World, costs: ReadCosts) -> None:
    """A catalogue with other prices changes what comes, and nothing that was."""
    job, _ = world.running()
    world.clock.move(hours=1)
    before = costs.of_job(job.job_id)
    world.catalogue.index = FakeCatalogue([an_offer("t3.small", "us-east-1a", "9.99")]).index
    assert costs.of_job(job.job_id) == before
    dear, _ = world.running()
    world.clock.move(hours=1)
    assert costs.of_job(dear.job_id)["total"]["machine_usd"] == 9.99


@pytest.mark.parametrize(
    ("by", "expected"),
    [("project", {"vision": 2, "": 1}), ("label=team", {"a": 1, "b": 1, "": 1})],
)
def test_jobs_are_added_up_by_project_and_label(
    world: World, costs: ReadCosts, by: str, expected: dict[str, int]
) -> None:
    """Every job is in one group, those without one under the empty name."""
    for spec in ({"project": "vision", "labels": {"team": "a"}}, {"project": "vision", "labels": {"team": "b"}}, {}):
        world.running(**spec)
        world.clock.move(seconds=1)
    world.clock.move(hours=1)
    found = costs.asked("ann", {"by": by}, 10)
    assert found["by"] == by
    assert {group["key"]: group["jobs"] for group in found["groups"]} == expected
    assert found["total"]["jobs"] == 3
    assert found["total"]["machine_usd"] == pytest.approx(sum(g["machine_usd"] for g in found["groups"]))
    assert costs.asked("bob", {"by": by}, 10)["groups"] == []


def test_pages_add_up_to_the_whole(world: World, costs: ReadCosts) -> None:
    """Page after page every job is counted once."""
    for _ in range(3):
        world.submit(project="p")
        world.clock.move(seconds=1)
    first = costs.asked("ann", {"by": "project"}, 2)
    second = costs.asked("ann", {"by": "project", "cursor": first["cursor"]}, 2)
    assert [page["groups"][0]["jobs"] for page in (first, second)] == [2, 1]
    assert second["cursor"] is None


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("2026-05-04T12:00:02Z", [2]),
        ("2026-05-04T14:00:01+02:00", [1, 2]),
        ("2026-05-04", [0, 1, 2]),
        ("2026-05-05", []),
    ],
)
def test_older_jobs_are_left_out(world: World, costs: ReadCosts, since: str, expected: list[int]) -> None:
    """A date is its midnight in UTC; nobody is sent on to pages of older jobs."""
    ids = []
    for _ in range(3):
        ids.append(world.submit().job_id)
        world.clock.move(seconds=1)
    found = costs.asked("ann", {"since": since}, 2)
    groups = list(found["groups"])
    while found["cursor"]:
        found = costs.asked("ann", {"since": since, "cursor": found["cursor"]}, 2)
        groups += found["groups"]
    assert [group["key"] for group in groups] == [ids[n] for n in reversed(expected)]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"by": "owner"}, "by"),
        ({"by": "label="}, "by"),
        ({"since": "yesterday"}, "since"),
        ({"since": "0001-01-01T00:00:00+23:00"}, "since"),
        ({"job": "j-1", "by": "project"}, "by"),
        ({"cursor": "nonsense"}, "cursor"),
    ],
)
def test_a_wrong_question_names_its_field(costs: ReadCosts, query: dict[str, str], field: str) -> None:
    """What is wrong is said, and where."""
    with pytest.raises(InvalidInput) as refused:
        costs.asked("ann", query, 10)
    assert [problem.field for problem in refused.value.problems] == [field]


def test_an_unknown_job_has_no_costs(costs: ReadCosts) -> None:
    """Nothing is made up."""
    with pytest.raises(NotFound, match="j-none"):
        costs.asked("ann", {"job": "j-none"}, 10)


def test_a_launch_that_asked_another_price_is_billed_by_it(world: World, costs: ReadCosts) -> None:
    """The price in force at the launch counts, not the older one of the catalogue; the timeline says so."""
    world.cloud.launch_prices = {"t3.small": Decimal("0.012")}
    job, _ = world.running()
    world.clock.move(hours=1)
    assert costs.of_job(job.job_id)["total"]["machine_usd"] == 0.012
    assert any("0.012" in message and "not $0.010" in message for message in world.messages(job))
