"""Jobs and machines as people see them."""

import json

import pytest

from spotferry.types import NotFound
from tests.unit.usecases.world import World


def test_a_job_is_shown_with_its_machines_and_costs(world: World) -> None:
    """Costs are what the stored prices say for the time the machine ran, also beside the list price."""
    job, attempt = world.running(name="count", labels={"team": "a"})
    world.clock.move(hours=1)
    shown = world.read_jobs.show(job.job_id)
    assert (shown["state"], shown["name"], shown["labels"], shown["owner"]) == (
        "RUNNING",
        "count",
        {"team": "a"},
        "ann",
    )
    assert shown["machine"] == shown["instances"][0]
    disk = float(attempt.disk_usd_hour)
    assert shown["cost_usd"] == pytest.approx(0.010 + disk, abs=1e-6)
    assert shown["on_demand_cost_usd"] == pytest.approx(0.5 + disk, abs=1e-6)
    assert shown["instances"][0]["plan"]["chosen"]["instance_type"] == "t3.small"


def test_what_is_shown_is_json(world: World) -> None:
    """Times are text, money is numbers, and nothing else is left to convert."""
    job, _, _ = world.interrupted()
    for shown in (
        world.read_jobs.show(job.job_id),
        world.read_jobs.list("ann", 10, None),
        world.read_jobs.living_instances(),
        *(world.read_jobs.part(job.job_id, name) for name in ("timeline", "instances", "checkpoints")),
    ):
        assert json.loads(json.dumps(shown)) == shown


def test_secrets_and_keys_are_not_shown(world: World) -> None:
    """No answer holds a token, a key's digest or the launch request."""
    job, attempt = world.running()
    text = json.dumps(world.read_jobs.show(job.job_id))
    assert world.attempt(job).agent_key_sha256 not in text
    assert attempt.launch is not None
    assert attempt.launch.agent_sha256 not in text


def test_jobs_are_listed_newest_first_by_owner(world: World) -> None:
    """Pages follow one another by their cursor."""
    ids = []
    for _ in range(3):
        ids.append(world.submit().job_id)
        world.clock.move(seconds=1)
    first = world.read_jobs.list("ann", 2, None)
    second = world.read_jobs.list("ann", 2, first["cursor"])
    assert [j["job_id"] for j in [*first["jobs"], *second["jobs"]]] == ids[::-1]
    assert second["cursor"] is None
    assert world.read_jobs.list("bob", 2, None) == {"jobs": [], "cursor": None}


def test_the_timeline_tells_the_story(world: World) -> None:
    """Every change has its time, its event and a sentence, in the order of revisions."""
    job, _ = world.running()
    entries = world.read_jobs.timeline(job.job_id)["entries"]
    assert [entry["event"] for entry in entries] == [
        "accepted",
        "launch_chosen",
        "machine_created",
        "agent_arrived",
        "setup_finished",
        "task_started",
    ]
    assert [entry["revision"] for entry in entries] == list(range(1, 7))
    assert all(entry["message"] and entry["at"].endswith("Z") for entry in entries)


def test_machines_that_are_gone_are_not_living(world: World) -> None:
    """The list of machines shows those that may still cost, of all jobs, whatever a stale index says."""
    _, gone = world.running()
    _, living = world.running()
    world.store.freeze_indexes()
    world.cloud.terminate(gone.cedana_id)
    world.poll()
    assert [i["instance_id"] for i in world.read_jobs.living_instances()["instances"]] == [living.cedana_id]


def test_checkpoints_are_listed_newest_first(world: World) -> None:
    """Number, size, engine and reason of each."""
    job, attempt = world.running()
    world.checkpoint(attempt)
    world.checkpoint(attempt, reason="instance_termination")
    found = world.read_jobs.checkpoints(job.job_id)["checkpoints"]
    assert [(c["number"], c["engine"], c["reason"]) for c in found] == [
        (2, "workdir", "instance_termination"),
        (1, "workdir", "heartbeat"),
    ]


def test_a_job_without_a_machine_shows_none(world: World) -> None:
    """A job that waits costs nothing and has no machine."""
    shown = world.read_jobs.show(world.submit().job_id)
    assert (shown["machine"], shown["instances"], shown["cost_usd"]) == (None, [], 0)


@pytest.mark.parametrize("name", ["timeline", "instances", "checkpoints"])
def test_a_job_that_does_not_exist_has_no_parts(world: World, name: str) -> None:
    """An unknown id is said to be unknown."""
    with pytest.raises(NotFound, match="j-none"):
        world.read_jobs.part("j-none", name)
    with pytest.raises(NotFound, match="j-none"):
        world.read_jobs.show("j-none")


def test_a_part_that_does_not_exist_is_refused(world: World) -> None:
    """Nothing is made up."""
    with pytest.raises(NotFound, match="secrets"):
        world.read_jobs.part(world.submit().job_id, "secrets")


def test_a_machine_at_hand_is_shown_like_any_other(world: World) -> None:
    """What an order about a machine answers is what the list shows of it."""
    job, attempt = world.running()
    assert world.read_jobs.instance(attempt)["instance"] == world.read_jobs.instances_of(job.job_id)["instances"][0]
