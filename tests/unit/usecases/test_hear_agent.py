"""What an agent reports: heartbeats, events, and the log that rides along."""

from datetime import timedelta
from typing import Any

import pytest

from spotferry.types import IllegalTransition, InvalidInput, JobState, StaleAttempt
from spotferry.usecases.hear_agent import LogChunk
from tests.fakes import QueueAwayError
from tests.unit.usecases.world import World, bearer


def test_a_quiet_heartbeat_changes_nothing_but_the_time(world: World) -> None:
    """A running job that nobody watches is called once a minute, and its record is not written."""
    job, attempt = world.running()
    saves = world.store.saves
    world.clock.move(minutes=1)
    answer = world.beat(attempt)
    assert answer == {
        "protocol": 1,
        "directive": {"kind": "continue", "reason": ""},
        "heartbeat_seconds": 60,
        "lease_seconds": 900,
        "checkpoint_seconds": 3600,
        "log_offset": None,
    }
    assert world.store.saves == saves
    assert world.attempt(job).last_seen == world.clock.now
    assert world.queue.waiting == []


def test_a_job_that_is_watched_is_called_often_for_a_while(world: World) -> None:
    """Somebody follows the log: every two seconds; half a minute after the last look: every minute."""
    job, attempt = world.running()
    world.read_logs(job.job_id, follow=True)
    assert world.beat(attempt)["heartbeat_seconds"] == 2
    world.clock.move(seconds=31)
    assert world.beat(attempt)["heartbeat_seconds"] == 60


def test_a_job_in_which_something_goes_on_is_called_often(world: World) -> None:
    """Setting up, interrupted, waiting: the word is wanted at once."""
    _, attempt = world.set_up()
    assert world.beat(attempt, "setting_up")["heartbeat_seconds"] == 2
    _, owner, successor = world.interrupted()
    world.hello(successor)
    assert world.beat(owner)["heartbeat_seconds"] == 2
    assert world.beat(successor, "waiting")["heartbeat_seconds"] == 2


def test_the_way_of_a_job_that_goes_well(world: World) -> None:
    """Setup, go, task, exit: each report moves the job and is answered with the next order."""
    job, attempt = world.set_up()
    assert world.report(attempt, "setup_finished", seconds=3.4)["directive"]["kind"] == "go"
    assert world.report(attempt, "task_started", restored_from=None)["directive"]["kind"] == "continue"
    assert world.state(job) is JobState.RUNNING
    answer = world.report(attempt, "task_exited", exit_code=0, outputs=False)
    assert answer["directive"]["kind"] == "shut_down"
    assert world.state(job) is JobState.DONE
    assert world.job(job).exit_code == 0


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("setup_finished", {"seconds": 3}),
        ("task_started", {"restored_from": None}),
        ("task_exited", {"exit_code": 0}),
    ],
)
def test_a_report_that_comes_twice_is_one(world: World, event: str, data: dict[str, Any]) -> None:
    """The answer was lost and the agent repeats: the same answer, and nothing is saved twice."""
    job, attempt = world.set_up()
    way: dict[str, dict[str, Any]] = {
        "setup_finished": {"seconds": 3},
        "task_started": {},
        "task_exited": {"exit_code": 0},
    }
    for earlier, known in way.items():
        if earlier == event:
            break
        world.report(attempt, earlier, **known)
    first = world.report(attempt, event, **data)
    revision = world.job(job).revision
    assert world.report(attempt, event, **data)["directive"] == first["directive"]
    assert world.job(job).revision == revision


def test_a_report_whose_effects_were_lost_is_healed_by_its_repeat(world: World) -> None:
    """Saved, but the order to end the machine was not sent: the agent repeats, and it is."""
    _, attempt = world.running()
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.report(attempt, "task_exited", exit_code=0)
    world.report(attempt, "task_exited", exit_code=0)
    world.perform()
    assert world.cloud.living() == []


def test_a_report_meets_a_save_by_somebody_else(world: World) -> None:
    """A conflict is decided again on the new version."""
    job, attempt = world.running()
    world.store.conflict_saves(3)
    world.report(attempt, "task_exited", exit_code=0)
    assert world.state(job) is JobState.DONE


def test_a_task_that_failed_fails_the_job(world: World) -> None:
    """The exit status is the job's, in words too."""
    job, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=7)
    assert world.state(job) is JobState.FAILED
    assert world.job(job).reason == "the task ended with status 7"


def test_a_setup_that_failed_holds_the_machine(world: World) -> None:
    """The line that failed is named, and a retry on the same machine runs it again."""
    job, attempt = world.set_up()
    world.report(attempt, "setup_failed", exit_code=2, line="make all")
    assert world.state(job) is JobState.SETUP_FAILED
    assert "`make all`" in world.job(job).reason
    assert world.beat(attempt, "held")["directive"]["kind"] == "continue"
    world.steer("retry", job.job_id, "ann")
    assert world.beat(attempt, "held")["directive"]["kind"] == "retry"
    assert world.beat(attempt, "setting_up")["directive"]["kind"] == "continue"


def test_a_start_that_failed_holds_the_machine(world: World) -> None:
    """Why the task could not start is on the job."""
    job, attempt = world.set_up()
    world.report(attempt, "startup_failed", reason="checkpoint 3 is corrupt")
    assert world.state(job) is JobState.STARTUP_FAILED
    assert "checkpoint 3 is corrupt" in world.job(job).reason


def test_a_checkpoint_that_failed_is_told_and_changes_nothing_else(world: World) -> None:
    """The job runs on, and its timeline says that the one before stays in force."""
    job, attempt = world.running()
    world.checkpoint(attempt)
    world.report(attempt, "checkpoint_failed", reason="disk full")
    assert world.state(job) is JobState.RUNNING
    assert world.messages(job)[-1] == "a checkpoint failed: disk full; checkpoint 1 stays in force"


def test_outputs_that_could_not_be_sent_fail_the_job(world: World) -> None:
    """A task that ended well without its outputs is not DONE."""
    job, attempt = world.running(outputs=["out"])
    world.report(attempt, "task_exited", exit_code=0, outputs=True)
    assert world.state(job) is JobState.FINALIZING
    world.report(attempt, "outputs_failed", reason="no route to host")
    assert world.state(job) is JobState.FAILED
    assert "no route to host" in world.job(job).reason


def test_a_notice_read_on_the_machine_interrupts_the_job(world: World) -> None:
    """The agent's own eyes count like the bus: the pool is left alone, a successor is placed."""
    job, attempt = world.running()
    deadline = world.clock.now + timedelta(minutes=2)
    answer = world.report(attempt, "notice", kind="take_back", code="terminate", deadline=deadline.isoformat())
    assert answer["directive"]["kind"] == "release"
    assert world.state(job) is JobState.INTERRUPTED
    assert world.attempt(job).notice_deadline == deadline
    assert world.store.bans(["aws"], world.clock())
    world.perform()
    assert world.job(job).successor_id


@pytest.mark.parametrize("kind", ["rebalance", "maintenance"])
def test_a_forecast_read_on_the_machine_changes_nothing(world: World, kind: str) -> None:
    """Only a take-back is acted upon, unless the job asks for more."""
    job, attempt = world.running()
    assert world.report(attempt, "notice", kind=kind, code="x")["directive"]["kind"] == "continue"
    assert world.state(job) is JobState.RUNNING
    assert world.store.bans(["aws"], world.clock()) == {}


def test_an_on_demand_machine_teaches_the_spot_market_nothing(world: World) -> None:
    """A pool that nobody bought spot from is not set aside."""
    _, attempt = world.running(instance_specs={"spot": False})
    world.report(attempt, "notice", kind="take_back", code="retirement")
    assert world.store.bans(["aws"], world.clock()) == {}


def test_a_release_passes_the_job_on_at_once(world: World) -> None:
    """The owner's last word is enough: no poll and no cloud need to confirm anything."""
    job, owner, successor = world.interrupted()
    world.hello(successor)
    world.report(successor, "setup_finished", seconds=1)
    assert world.report(owner, "released", checkpoint=None, reason="")["directive"]["kind"] == "shut_down"
    assert world.job(job).owner_id == successor.cedana_id
    assert world.beat(successor, "waiting")["directive"]["mode"] == "fresh"


def test_after_a_cancel_the_release_ends_the_job(world: World) -> None:
    """The task is stopped on the machine first; then the job is CANCELLED and the machine ended."""
    job, attempt = world.running()
    world.steer("cancel", job.job_id, "ann")
    assert world.beat(attempt)["directive"] == {"kind": "release", "reason": "job_termination"}
    world.report(attempt, "released", reason="job_termination")
    assert world.state(job) is JobState.CANCELLED
    world.perform()
    assert world.cloud.living() == []


def test_an_attempt_that_lost_the_job_is_told_to_stop(world: World) -> None:
    """Reports of an old epoch are refused, whatever they say, and change nothing."""
    job, owner, successor = world.interrupted()
    world.hello(successor)
    world.report(owner, "released")
    revision = world.job(job).revision
    for event in ("task_exited", "task_started", "checkpoint_failed"):
        with pytest.raises(StaleAttempt):
            world.report(owner, event, exit_code=0)
    assert world.job(job).revision == revision


def test_a_machine_that_was_replaced_is_stale_while_the_job_waits(world: World) -> None:
    """The job has no owner at all: the old one is told to go, not that its report was wrong."""
    job, attempt = world.running()
    stale = world.authenticate(bearer(attempt))
    world.cloud.terminate(attempt.cedana_id)
    world.poll()
    assert world.state(job) is JobState.PENDING
    with pytest.raises(StaleAttempt):
        world.hear.report(stale, "task_started", {}, None)
    with pytest.raises(StaleAttempt):
        world.hear.heartbeat(stale, "running", None)


def test_a_successor_may_not_speak_for_the_owner(world: World) -> None:
    """Only the owner's task can start or end."""
    _, _, successor = world.interrupted()
    world.hello(successor)
    with pytest.raises(StaleAttempt):
        world.report(successor, "task_exited", exit_code=0)


def test_a_report_that_the_state_cannot_take_is_refused(world: World) -> None:
    """An owner that reports outputs while its task runs is wrong, and is told so."""
    job, attempt = world.running()
    with pytest.raises(IllegalTransition, match="RUNNING"):
        world.report(attempt, "outputs_failed", reason="x")
    assert world.state(job) is JobState.RUNNING


@pytest.mark.parametrize(
    ("event", "data", "refusal"),
    [
        ("party", {}, "event: 'party' is not one of setup_finished, "),
        ("", {}, "event: '' is not one of setup_finished, "),
        ("setup_failed", {}, "data.exit_code: is missing"),
        ("setup_failed", {"exit_code": "no"}, "data.exit_code: must be a whole number"),
        ("setup_failed", {"exit_code": -1}, "data.exit_code: must be at least 0"),
        ("task_exited", {"exit_code": 256}, "data.exit_code: must be at most 255"),
        ("task_exited", {"exit_code": None}, "data.exit_code: must be a whole number"),
        ("task_exited", {"exit_code": float("inf")}, "data.exit_code: must be a finite number"),
        ("task_exited", {"exit_code": 0, "outputs": "some"}, "data.outputs: must be true or false"),
        ("task_started", {"restored_from": "x"}, "data.restored_from: must be a whole number"),
        ("command_ended", {"command": "pre_setup", "exit_code": 0}, "data.command: must be 'post_setup', "),
        ("setup_finished", {"seconds": "soon"}, "data.seconds: must be a number"),
        ("setup_finished", {"seconds": -1}, "data.seconds: must be at least 0"),
        ("setup_finished", {"seconds": float("nan")}, "data.seconds: must be a finite number"),
        ("setup_finished", {"seconds": float("inf")}, "data.seconds: must be a finite number"),
        ("startup_failed", {"reason": 1}, "data.reason: must be text"),
        ("notice", {"code": "x"}, "data.kind: is missing"),
        ("notice", {"kind": "take_back", "deadline": "tomorrow"}, "data.deadline: must be a time (RFC 3339)"),
        (
            "notice",
            {"kind": "take_back", "deadline": "2026-05-04T12:02:00"},
            "data.deadline: must be a time with its zone (RFC 3339)",
        ),
        ("task_exited", ["exit_code"], "data: must be a JSON object"),
        ("released", "bye", "data: must be a JSON object"),
    ],
)
def test_a_report_that_is_malformed_is_refused(world: World, event: str, data: Any, refusal: str) -> None:
    """The problem names the field and says what it must be, in no words of Python's; nothing is written."""
    job, attempt = world.running()
    revision = world.job(job).revision
    with pytest.raises(InvalidInput) as refused:
        world.hear.report(attempt, event, data, None)
    assert str(refused.value).startswith(refusal)
    assert world.job(job).revision == revision


@pytest.mark.parametrize("number", [0, -1, True, "1", 1.5, [1]])
def test_a_report_whose_number_is_none_is_refused(world: World, number: object) -> None:
    """Reports are numbered from 1."""
    _, attempt = world.running()
    with pytest.raises(InvalidInput, match=r"^report: must be a whole number from 1$"):
        world.hear.report(attempt, "task_exited", {"exit_code": 0}, None, number)


def test_what_a_machine_says_of_a_failure_is_kept_short(world: World) -> None:
    """As much as a few lines hold; null is nothing said."""
    job, attempt = world.running()
    world.report(attempt, "checkpoint_failed", reason="x" * 5000)
    assert len(world.messages(job)[-1]) < 1100
    assert world.report(attempt, "released", reason=None)["directive"]["kind"] == "shut_down"


def test_a_report_brings_its_log(world: World) -> None:
    """Log text rides on reports and heartbeats, and the answer says how far the broker has it."""
    job, attempt = world.running()
    assert world.beat(attempt, log=LogChunk(offset=0, text="step 1\n"))["log_offset"] == 7
    assert world.report(attempt, "task_exited", LogChunk(offset=7, text="é\n"), exit_code=0)["log_offset"] == 10
    text = "".join(chunk["text"] for chunk in world.read_logs(job.job_id)["chunks"])
    assert text == "step 1\né\n"


def test_the_log_of_a_stale_attempt_is_kept(world: World) -> None:
    """What a machine printed before it lost the job is not lost with it."""
    job, owner, successor = world.interrupted()
    world.hello(successor)
    world.report(owner, "released")
    world.beat(owner, log=LogChunk(offset=0, text="last words"))
    assert world.read_logs(job.job_id)["chunks"][0]["text"] == "last words"


@pytest.mark.parametrize("offset", [-1, 10**15])
def test_a_piece_of_log_begins_where_a_key_can_say_it(offset: int) -> None:
    """What no key could sort is refused before anything is stored."""
    with pytest.raises(InvalidInput, match=r"^log\.offset: must be "):
        LogChunk.of({"offset": offset, "text": "x"})


@pytest.mark.parametrize(
    "log",
    [
        LogChunk(offset=0, text="x" * (1024 * 1024 + 1)),
        LogChunk(offset=0, text="\ud800"),
    ],
    ids=["too long", "half a character"],
)
def test_a_piece_of_log_out_of_bounds_is_refused(world: World, log: LogChunk) -> None:
    """Nothing is stored of it."""
    _, attempt = world.running()
    with pytest.raises(InvalidInput, match="log"):
        world.beat(attempt, log=log)
    assert not any(key.startswith("logs/") for key in world.objects.stored)
