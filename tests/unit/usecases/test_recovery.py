"""Recovery over the use cases: plans and words, restarts, limits, forecasts, false notices."""

from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.domain.interruption_rates import told_by
from spotferry.types import Attempt, InvalidInput, Job, JobState, Misconfigured, UserInstanceSpecs
from spotferry.types.provider import PoolRate
from tests.builders import NOW
from tests.unit.usecases.wire import bearer, warning
from tests.unit.usecases.world import World

REBALANCE = "EC2 Instance Rebalance Recommendation"


def test_the_plan_brings_checkpoints_and_lines(world: World) -> None:
    """As the job file has them, the deployment's lines before the job's; what has no lines is left out."""
    world.defaults.lines = {"post_setup": ["nvidia-smi"], "pre_restore": ["mount"]}
    _, attempt = world.launched(
        checkpoint={"paths": ["state"], "signal": "SIGUSR1", "interval_seconds": 90}, post_setup={"run": "make"}
    )
    answer = world.hello(attempt)
    assert answer["plan"]["checkpoint"] == {
        "engine": "auto",
        "paths": ["state"],
        "signal": "SIGUSR1",
        "grace_seconds": 30,
    }
    assert answer["plan"]["commands"] == {"post_setup": ["nvidia-smi", "make"], "pre_restore": ["mount"]}
    assert answer["checkpoint_seconds"] == 90


def test_no_periodic_checkpoints_are_none(world: World) -> None:
    """0 in the job file is null in the word."""
    _, attempt = world.running(checkpoint={"interval_seconds": 0})
    assert world.beat(attempt)["checkpoint_seconds"] is None


def test_lines_of_the_deployment_that_are_broken_hold_the_job(world: World) -> None:
    """The job says what is wrong with them, and goes on once they are mended and somebody retries."""
    world.defaults.fault = "the parameter /spotferry/test/commands is not a JSON object"
    job, attempt = world.launched()
    with pytest.raises(Misconfigured):
        world.hello(attempt)
    assert world.state(job) is JobState.STARTUP_FAILED
    assert "commands is not a JSON object" in world.job(job).reason


def test_what_an_agent_says_of_its_machine_is_kept(world: World) -> None:
    """Names and texts, for people to see; what is neither, too long or too much is left out."""
    job, attempt = world.launched()
    said = {"arch": "x86_64", "cpus": 2, "odd": ["x"], "long": "x" * 5000, **{f"n{i}": "x" for i in range(50)}}
    world.greet(world.authenticate(bearer(attempt), hello=True), said)
    facts = world.attempt(job).facts
    assert (facts["arch"], facts["cpus"], len(facts)) == ("x86_64", "2", 15)
    assert not {"odd", "long"} & set(facts)
    assert world.read_jobs.show(job.job_id)["machine"]["facts"] == facts


def test_checkpoints_are_offered_with_what_they_were_made_on(world: World) -> None:
    """Newest first, on whatever machine: its agent finds out whether processes can go on there."""
    job, attempt = world.running(checkpoint={"engine": "criu"})
    world.checkpoint(attempt)
    world.checkpoint(attempt, engine="criu", machine={"arch": "x86_64", "cpu_flags": "avx"})
    world.report(attempt, "released", reason="instance_termination")
    world.perform()
    successor = world.attempt(job)
    answer = world.greet(world.authenticate(bearer(successor), hello=True), {"arch": "aarch64"})
    offered = [(c["number"], c["engine"], c["machine"]) for c in answer["plan"]["checkpoints"]]
    assert offered[0] == (2, "criu", {"arch": "x86_64", "cpu_flags": "avx"})
    assert [number for number, _, _ in offered] == [2, 1]


def test_a_memory_image_is_placed_on_its_own_type_while_there_is_one(world: World) -> None:
    """The dearer type that it was made on before a cheaper one; any that fits when none of it is free."""
    job, attempt = world.running(instance_specs={"instance_type": "m5.large"})
    anything = job.spec.model_copy(update={"instance_specs": UserInstanceSpecs()})
    world.store._tables.jobs[job.job_id] = world.job(job).model_copy(update={"spec": anything})
    world.checkpoint(attempt, engine="criu")
    world.report(attempt, "released", reason="instance_termination")
    world.perform()
    assert world.attempt(job).instance_type == "m5.large"
    world.store.ban("aws", "spot", "*/*/m5.*", NOW + timedelta(days=1), "all taken")
    world.hello(world.attempt(job))
    world.report(world.attempt(job), "released", reason="instance_termination")
    world.perform()
    assert world.attempt(job).instance_type == "t3.small"


def test_the_told_rate_is_kept_with_the_machine(world: World) -> None:
    """What was known of the pool at launch decides how often its jobs are saved, whatever the catalogue says later."""
    rate = PoolRate(
        provider="aws", region="us-east-1", instance_type="t3.small", per_hour=Decimal("0.5"), source="x", read_at=NOW
    )
    world.catalogue.index.told = told_by([rate])
    job, attempt = world.launched()
    assert world.attempt(job).interruptions_per_hour == Decimal("0.5")
    assert 60 < world.hello(attempt)["checkpoint_seconds"] < 600


def test_lines_around_the_task_are_in_the_timeline(world: World) -> None:
    """One entry each; a name that is none is refused."""
    job, attempt = world.running()
    world.report(attempt, "command_ended", command="pre_checkpoint", exit_code=0, seconds=1.24)
    assert world.messages(job)[-1] == "pre_checkpoint ran in 1.2 s"
    with pytest.raises(InvalidInput, match=r"data\.command: must be 'post_setup', "):
        world.report(attempt, "command_ended", command="rm", exit_code=0)


def test_a_failed_task_is_started_again_on_its_machine(world: World) -> None:
    """The agent is told in the answer to its report, and nothing is placed."""
    job, attempt = world.running(retry={"max_restarts": 1})
    word = world.report(attempt, "task_exited", exit_code=3)
    why = "restart 1 of 1 in 10 s: the task ended with status 3"
    assert word["directive"] == {"kind": "retry", "reason": why, "pause_seconds": 10}
    assert world.report(attempt, "task_started")["directive"]["kind"] == "continue"
    assert world.report(attempt, "task_exited", exit_code=3)["directive"]["kind"] == "shut_down"
    assert world.state(job) is JobState.FAILED
    assert world.job(job).epoch == 1


def test_outputs_of_a_failed_run_do_not_end_the_job(world: World) -> None:
    """While a restart is due, its checkpoint is one to go on from."""
    job, attempt = world.running(retry={"max_restarts": 1}, outputs=["out"])
    world.checkpoint(attempt, task_over=True, exit_code=3, reason="job_termination")
    assert world.report(attempt, "task_exited", exit_code=3, outputs=True)["directive"]["kind"] == "retry"
    world.report(attempt, "task_started")
    assert (world.state(job), world.job(job).exit_code) == (JobState.RUNNING, None)


def test_a_job_that_used_up_its_money_can_be_restored(world: World) -> None:
    """A poll sees it; the task is saved and stopped, the job FAILED in words, and its work is not lost."""
    job, attempt = world.running(max_cost_usd=0.02)
    for _ in range(12):
        world.beat(attempt)
        world.later(minutes=15)
        if world.state(job) is JobState.CANCELLING:
            break
    world.beat(attempt)
    world.checkpoint(attempt)
    world.report(attempt, "released", reason="job_termination")
    assert world.state(job) is JobState.FAILED
    assert "max_cost_usd 0.02 is used up" in world.job(job).reason
    assert world.steer("restore", job.job_id, "ann").restored_from == 1


def rebalance(attempt: Attempt) -> dict[str, object]:
    """EC2's recommendation, as the bus brings it."""
    return {**warning(attempt), "detail-type": REBALANCE, "detail": {"instance-id": attempt.allocated_id}}


def moved(world: World) -> tuple[Job, Attempt, Attempt]:
    """A job that moves at a recommendation: owner, and the successor it moves to."""
    job, owner = world.running(checkpoint={"on_rebalance": True})
    world.interruption(rebalance(owner))
    world.interruption(rebalance(owner))
    world.perform()
    return job, owner, world.attempt(job)


def test_a_recommendation_moves_a_job_that_asks_for_it(world: World) -> None:
    """Successor at once, checkpoint, hand-over; though the cloud never took it back, exactly one machine is left."""
    job, owner, successor = moved(world)
    assert (owner.cedana_id == successor.cedana_id, world.state(job)) == (False, JobState.RUNNING)
    assert world.beat(owner)["directive"]["kind"] == "checkpoint"
    world.checkpoint(owner)
    world.hello(successor)
    assert world.report(successor, "setup_finished", seconds=1)["directive"]["kind"] == "wait"
    assert world.beat(owner)["directive"] == {"kind": "release", "reason": "rebalance"}
    world.checkpoint(owner)
    world.report(owner, "released", reason="rebalance")
    assert world.beat(successor, "waiting")["directive"]["kind"] == "go"
    world.report(successor, "task_started", restored_from=2)
    world.perform()
    world.cloud.finish_ending()
    world.later(minutes=1)
    assert world.cloud.living() == [successor.cedana_id]
    assert (world.state(job), world.job(job).interruptions) == (JobState.RUNNING, 0)
    assert world.store.bans(["aws"], world.clock()) == {}


def test_a_recommendation_read_on_the_machine_is_the_same_one(world: World) -> None:
    """The agent's own word and the bus's make one successor."""
    job, owner, _ = moved(world)
    word = world.report(owner, "notice", kind="rebalance", code="rebalance-recommendation")
    assert word["directive"]["kind"] == "checkpoint"
    world.perform()
    assert world.job(job).epoch == 2


def test_the_successor_comes_from_another_pool(world: World) -> None:
    """The pool that may take the machine back is avoided."""
    _, owner, successor = moved(world)
    assert (owner.availability_zone, owner.instance_type) != (successor.availability_zone, successor.instance_type)


def test_a_recommendation_without_the_key_is_nothing_to_do(world: World) -> None:
    """The job's record is not touched."""
    job, owner = world.running()
    assert world.interruption(rebalance(owner)) == ["nothing_to_do"]
    assert world.job(job).revision == job.revision


def test_a_false_notice_ends_with_one_machine(world: World) -> None:
    """A machine that lives on past its deadline, its agent going on as if nothing were, is ended by the broker."""
    job, owner, successor = world.interrupted()
    world.hello(successor)
    world.report(successor, "setup_finished", seconds=1)
    for _ in range(4):
        world.beat(owner)
        world.beat(successor, "waiting")
        world.later(minutes=1)
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.cloud.living() == [successor.cedana_id]
    assert world.job(job).owner_id == successor.cedana_id
    assert world.beat(successor, "waiting")["directive"]["kind"] == "go"


def test_a_job_that_fell_back_tries_spot_again(world: World) -> None:
    """On demand only as long as that machine lasts: the next placement takes spot where it is free again."""
    world.store.ban("aws", "spot", "*/*/*", NOW + timedelta(minutes=5), "all taken")
    job, attempt = world.running(instance_specs={"spot": "fallback"})
    assert attempt.market == "on_demand"
    world.clock.move(minutes=10)
    world.report(attempt, "released", reason="instance_termination")
    world.perform()
    assert world.attempt(job).market == "spot"
