"""A machine's agent says hello and gets its plan."""

import pytest

from spotferry.domain.events import LaunchFailed
from spotferry.types import AttemptPhase, JobState, Misconfigured, StaleAttempt, Upload
from spotferry.usecases.keys import upload_key
from tests.unit.usecases.world import ARCHIVE, SHA, World, state_change


def test_a_fresh_start_gets_all_that_the_job_needs(world: World) -> None:
    """The plan holds the commands, the environment, the outputs and the pace, as the protocol has them."""
    job, attempt = world.launched(
        setup={"run": ["pip install x"]}, restored_task={"run": ["./go-on"]}, env={"A": "b"}, outputs=["out/*"]
    )
    answer = world.hello(attempt)
    assert answer == {
        "protocol": 1,
        "job_id": job.job_id,
        "epoch": 1,
        "plan": {
            "mode": "fresh",
            "work_dir": None,
            "setup": ["pip install x"],
            "task": ["./run"],
            "restored_task": ["./go-on"],
            "env": {"A": "b"},
            "secrets": {},
            "outputs": ["out/*"],
            "inputs": [],
            "checkpoints": [],
            "exit_code": None,
            "checkpoint": {"engine": "auto", "paths": [], "signal": "", "grace_seconds": 30},
            "commands": {},
        },
        "directive": {"kind": "continue", "reason": ""},
        "heartbeat_seconds": 2,
        "lease_seconds": 900,
        "checkpoint_seconds": 3600,
        "grace_seconds": 30,
        "log_offset": 0,
    }
    assert world.state(job) is JobState.SETTING_UP
    assert world.attempt(job).phase is AttemptPhase.ARRIVED
    assert world.attempt(job).last_seen == world.clock.now


def test_a_hello_that_is_repeated_gets_the_same_plan(world: World) -> None:
    """The answer was lost: the second hello changes nothing and is answered the same."""
    job, attempt = world.launched()
    first = world.hello(attempt)
    revision = world.job(job).revision
    assert world.hello(attempt) == first
    assert world.job(job).revision == revision


def test_a_hello_overtakes_its_launchs_answer(world: World) -> None:
    """A machine may speak before the broker knows its id: the answer that comes later still fits."""
    world.cloud.lose_answer()
    job = world.submit()
    world.create_instance(job.job_id)
    attempt = world.attempt(job)
    world.hello(attempt)
    world.let_answers_come()
    world.check_launch(job.job_id, attempt.cedana_id)
    assert world.state(job) is JobState.SETTING_UP
    assert world.attempt(job).phase is AttemptPhase.ARRIVED
    assert world.attempt(job).allocated_id


@pytest.mark.parametrize(
    ("work_dir", "name"), [("work", "work"), ("./a/b/", "b"), (".", "work_dir"), ("..", "work_dir")]
)
def test_the_work_directory_has_an_address_and_a_name(world: World, work_dir: str, name: str) -> None:
    """The machine fetches the packed directory by its digest and unpacks it under its own name."""
    world.objects.put(upload_key(SHA), ARCHIVE)
    submitted = world.submitted(upload=Upload(sha256=SHA, size_bytes=len(ARCHIVE)), work_dir=work_dir)
    world.perform()
    plan = world.hello(world.attempt(submitted.job))["plan"]
    assert plan["work_dir"] == {
        "name": name,
        "url": f"memory:get:{upload_key(SHA)}?3600",
        "sha256": SHA,
        "size_bytes": len(ARCHIVE),
    }


def test_secrets_are_resolved_at_hello_only(world: World) -> None:
    """Values are in the answer, and nowhere in what is stored."""
    world.secrets.values["TOKEN"] = "s3cr3t-value"
    job, attempt = world.launched(secrets=["TOKEN"])
    assert world.secrets.asked == []
    assert world.hello(attempt)["plan"]["secrets"] == {"TOKEN": "s3cr3t-value"}
    stored = [world.job(job), world.attempt(job), *world.store.timeline(job.job_id)]
    assert not any("s3cr3t" in record.model_dump_json() for record in stored)


def test_a_secret_that_is_missing_holds_the_job(world: World) -> None:
    """The person is told which one is missing; once it is there, a retry lets the same machine go on."""
    job, attempt = world.launched(secrets=["TOKEN"])
    for _ in range(2):
        with pytest.raises(Misconfigured, match="TOKEN"):
            world.hello(attempt)
    assert world.state(job) is JobState.STARTUP_FAILED
    assert "TOKEN" in world.job(job).reason
    world.secrets.values["TOKEN"] = "s"
    world.steer("retry", job.job_id, "ann")
    assert world.hello(attempt)["plan"]["secrets"] == {"TOKEN": "s"}
    world.report(attempt, "setup_finished", seconds=1)
    world.report(attempt, "task_started", restored_from=None)
    assert world.state(job) is JobState.RUNNING


def test_a_secret_that_stays_missing_fails_the_job(world: World) -> None:
    """Nobody puts it there: the job fails with that reason, and its machine is told to go."""
    job, attempt = world.launched(secrets=["TOKEN"])
    with pytest.raises(Misconfigured):
        world.hello(attempt)
    world.later(minutes=10)
    assert world.state(job) is JobState.FAILED
    with pytest.raises(StaleAttempt):
        world.hello(attempt)


def test_a_machine_after_a_checkpoint_restores(world: World) -> None:
    """The plan names the checkpoints that are kept, with addresses, newest first."""
    job, attempt = world.running()
    for number in range(4):
        world.checkpoint(attempt, body=b"state %d" % number)
    world.interruption(state_change(attempt, "terminated"))
    world.perform()
    plan = world.hello(world.attempt(job))["plan"]
    assert plan["mode"] == "restore"
    assert [c["number"] for c in plan["checkpoints"]] == [4, 3]
    part = plan["checkpoints"][0]["parts"][0]
    key = part["url"].split(":")[2].split("?")[0]
    assert world.objects.stored[key] == b"state 3"
    assert part["size_bytes"] == len(b"state 3")


def test_a_machine_after_the_tasks_end_finalizes(world: World) -> None:
    """Once a finished work directory is committed, no machine is told to run the task again."""
    job, attempt = world.running(outputs=["out/*"])
    world.checkpoint(attempt, task_over=True, exit_code=3)
    world.interruption(state_change(attempt, "terminated"))
    world.perform()
    plan = world.hello(world.attempt(job))["plan"]
    assert (plan["mode"], plan["exit_code"]) == ("finalize", 3)


def test_a_successor_sets_up_and_waits_then_goes_from_the_last_checkpoint(world: World) -> None:
    """While the owner saves its work the successor waits; on the release it is told to go, with the new checkpoint."""
    job, owner, successor = world.interrupted()
    assert world.hello(successor)["directive"]["kind"] == "wait"
    assert world.report(successor, "setup_finished", seconds=1)["directive"]["kind"] == "wait"
    assert world.beat(successor, "waiting")["directive"]["kind"] == "wait"
    number = world.checkpoint(owner)["number"]
    assert world.report(owner, "released", checkpoint=number)["directive"]["kind"] == "shut_down"
    go = world.beat(successor, "waiting")["directive"]
    assert go["kind"] == "go"
    assert (go["mode"], [c["number"] for c in go["checkpoints"]], go["exit_code"]) == ("restore", [number], None)
    world.report(successor, "task_started", restored_from=number)
    assert world.state(job) is JobState.RUNNING
    assert world.job(job).owner_id == successor.cedana_id


def test_a_machine_that_lost_the_job_is_told_so(world: World) -> None:
    """An attempt that neither owns the job nor waits for it gets no plan."""
    job, owner, successor = world.interrupted()
    world.interruption(state_change(successor, "shutting-down"))
    assert world.job(job).successor_id is None
    with pytest.raises(StaleAttempt):
        world.hello(successor)
    assert world.hello(owner)["directive"]["kind"] == "release"


def test_a_machine_of_a_cancelled_job_is_told_to_stop(world: World) -> None:
    """A hello that comes after the cancel is answered with the order to stop."""
    job, attempt = world.set_up()
    world.steer("cancel", job.job_id, "ann")
    assert world.hello(attempt)["directive"]["kind"] == "stop"


def test_a_machine_that_wakes_up_while_the_job_has_none_is_stale(world: World) -> None:
    """The job waits for a machine, but not for this one: it is told to go, not that its hello was wrong."""
    world.cloud.lose_answer()
    job = world.submit()
    world.create_instance(job.job_id)
    attempt = world.attempt(job)
    refused = LaunchFailed(attempt.cedana_id, "Odd", "it said no", asked_again_at=None)
    world.change(job.job_id, refused, attempt.cedana_id)
    assert world.state(job) is JobState.PENDING
    with pytest.raises(StaleAttempt):
        world.greet(attempt)
