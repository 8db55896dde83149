"""Stories of checkpoints on request, last checkpoints, moves ahead of a take-back, restarts and limits."""

from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Directive, Order, directive, wants_attention
from spotferry.domain.limits import spent_usd
from spotferry.domain.owed import owed
from spotferry.domain.view import DestroyInstance, PlaceJob
from spotferry.types import IllegalTransition, JobState
from tests.builders import JOB_ID, a_manifest
from tests.unit.domain.story import Story


@pytest.fixture
def story() -> Story:
    """A job that was accepted, whose file says nothing of recovery."""
    return Story()


def a_story(**spec: object) -> Story:
    """A job whose file says more."""
    return Story(spec=spec)


def failed(story: Story, machine: str) -> JobState:
    """The task fails with status 3."""
    return story.hear(e.TaskExited(machine, 3))


def test_a_checkpoint_on_request(story: Story) -> None:
    """The order stands until the checkpoint is there; who asks meanwhile asks for the same one."""
    machine = story.run()
    assert not wants_attention(story.view, machine)
    story.hear(e.CheckpointRequested("ann"), e.CheckpointRequested("bob"))
    assert story.told[-1] == "ann asked for checkpoint 1"
    assert directive(story.view, machine) == Directive(Order.CHECKPOINT, "heartbeat")
    assert wants_attention(story.view, machine)
    story.save(machine)
    assert story.order(machine) is Order.CONTINUE
    story.hear(e.CheckpointRequested("bob"))
    assert story.view.job.checkpoint_wanted == 2


def test_a_requested_checkpoint_that_fails_is_not_tried_for_ever(story: Story) -> None:
    """The failure is told, the task goes on, and a new request is a new order."""
    machine = story.run()
    story.hear(e.CheckpointRequested("ann"), e.CheckpointFailed(machine, "the disk is full"))
    assert story.told[-1] == "a checkpoint failed: the disk is full; there is none to go back to"
    assert story.order(machine) is Order.CONTINUE
    story.hear(e.CheckpointRequested("ann"))
    assert story.order(machine) is Order.CHECKPOINT


def test_a_request_outlives_the_machine_that_did_not_heed_it(story: Story) -> None:
    """What was asked for is made on the next machine, once the task runs there."""
    machine = story.run()
    story.hear(e.CheckpointRequested("ann"), e.MachineGone(machine, "hardware"))
    assert story.order(story.run()) is Order.CHECKPOINT


@pytest.mark.parametrize("bring", ["launch", "ready"])
def test_without_a_task_there_is_nothing_to_checkpoint(story: Story, bring: str) -> None:
    """A job without a running task refuses the request, and is left as it is."""
    getattr(story, bring)()
    before = story.view
    with pytest.raises(IllegalTransition, match=story.state):
        story.hear(e.CheckpointRequested("ann"))
    assert story.view == before


def test_how_a_checkpoint_was_made_is_told(story: Story) -> None:
    """Engine and why, size, reason, how long it took and how long the task stood still."""
    machine = story.run()
    manifest = a_manifest().model_copy(update={"why": "no paths are named", "seconds": 12.34, "paused_seconds": 1.5})
    story.hear(e.CheckpointCommitted(machine, manifest, "m.json"))
    assert story.told[-1] == (
        "checkpoint 1 committed (workdir: no paths are named, 10 bytes, periodic, in 12.3 s, "
        "the task stood still for 1.5 s)"
    )
    assert story.view.job.last_checkpoint_seconds == 12.34


@pytest.mark.parametrize(("number", "words"), [(2, ""), (1, " (checkpoint 2 cannot be restored on this machine)")])
def test_a_checkpoint_that_was_passed_over_is_told(story: Story, number: int, words: str) -> None:
    """Whoever passed it over, the agent or the broker that did not offer it there."""
    machine = story.run()
    story.save(machine)
    story.save(machine)
    story.hear(e.MachineGone(machine, "hardware"))
    story.hear(e.TaskStarted(story.ready(), number))
    assert story.told[-1] == f"the task goes on from checkpoint {number}{words}"


@pytest.mark.parametrize(("code", "words"), [(0, "ran in 2.5 s"), (7, "failed with status 7 in 2.5 s")])
def test_lines_around_the_task_are_told(story: Story, code: int, words: str) -> None:
    """One entry each, with what became of them."""
    machine = story.run()
    story.hear(e.CommandEnded(machine, "pre_checkpoint", code, 2.5))
    assert story.told[-1] == f"pre_checkpoint {words}"
    assert story.state is JobState.RUNNING


def test_a_cancel_keeps_the_work(story: Story) -> None:
    """The last checkpoint gets as long as the one before took, and the job says that it can be restored."""
    machine = story.run()
    manifest = a_manifest().model_copy(update={"seconds": 300.0})
    story.hear(e.CheckpointCommitted(machine, manifest, "m.json"), e.CancelRequested("ann"))
    assert story.view.job.deadline == story.now + timedelta(minutes=2) + timedelta(seconds=300)
    assert story.told[-1] == "cancelled by ann; stopping the task after a last checkpoint"
    assert directive(story.view, machine) == Directive(Order.RELEASE, "job_termination")
    story.save(machine)
    assert story.hear(e.Released(machine, "job_termination")) is JobState.CANCELLED
    assert story.view.job.reason == "cancelled, and its task is stopped; checkpoint 2 can be restored"
    assert story.view.job.interruptions == 0


def test_a_cancel_under_notice_is_as_urgent_as_the_notice(story: Story) -> None:
    """The cloud's time counts, not the task's grace."""
    machine = story.run()
    story.notice(machine)
    story.hear(e.CancelRequested("ann"))
    assert directive(story.view, machine) == Directive(Order.RELEASE, "instance_termination")


def test_a_forecast_moves_a_job_that_asks_for_it() -> None:
    """A checkpoint at once, a successor beside the running task, then the hand-over; one machine is left."""
    story = a_story(checkpoint={"on_rebalance": True})
    owner = story.run()
    assert story.hear(e.RebalanceAdvised(owner, "rebalance")) is JobState.RUNNING
    assert owed(story.view) == (PlaceJob(JOB_ID),)
    assert story.order(owner) is Order.CHECKPOINT
    successor = story.launch()
    assert story.hear(e.AgentArrived(successor)) is JobState.RUNNING
    assert story.order(successor) is Order.WAIT
    story.save(owner)
    assert story.order(owner) is Order.CONTINUE
    assert story.hear(e.SetupFinished(successor, 40)) is JobState.INTERRUPTED
    assert story.told[-1] == "setup done in 40 s; the job moves there, after a last checkpoint"
    assert directive(story.view, owner) == Directive(Order.RELEASE, "rebalance")
    story.save(owner)
    assert story.hear(e.Released(owner, "rebalance")) is JobState.SETTING_UP
    assert owed(story.view) == (DestroyInstance(JOB_ID, owner, f"cloud-{owner}"),)
    assert story.hear(e.TaskStarted(successor, 2)) is JobState.RUNNING
    story.hear(e.MachineGone(owner, "User initiated"))
    assert story.view.job.open_attempts == (successor,)
    assert story.view.job.interruptions == 0


def test_a_forecast_moves_nobody_else(story: Story) -> None:
    """Without the key a forecast changes nothing and is not even told."""
    owner = story.run()
    told = len(story.told)
    story.hear(e.RebalanceAdvised(owner, "rebalance"))
    assert len(story.told) == told
    assert owed(story.view) == ()


def test_a_forecast_that_comes_true_before_the_move() -> None:
    """The notice makes it an interruption, with the successor on its way already."""
    story = a_story(checkpoint={"on_rebalance": True})
    owner = story.run()
    story.hear(e.RebalanceAdvised(owner, "rebalance"))
    successor = story.ready()
    assert story.notice(owner) is JobState.INTERRUPTED
    assert directive(story.view, owner) == Directive(Order.RELEASE, "instance_termination")
    assert story.view.job.interruptions == 1
    story.hear(e.MachineGone(owner, "taken"))
    assert (story.view.job.owner_id, story.view.job.open_attempts) == (successor, (successor,))


def test_an_owner_that_does_not_leave_is_ended() -> None:
    """Past its time to leave the broker ends it, and the job is on its successor all the same."""
    story = a_story(checkpoint={"on_rebalance": True})
    owner = story.run()
    story.hear(e.RebalanceAdvised(owner, "rebalance"))
    story.ready()
    story.wait(minutes=4)
    assert DestroyInstance(JOB_ID, owner, f"cloud-{owner}") in owed(story.view)
    assert story.hear(e.MachineGone(owner, "User initiated")) is JobState.SETTING_UP


def test_an_owner_that_vanishes_during_the_move() -> None:
    """The successor has the job, however far it has come."""
    story = a_story(checkpoint={"on_rebalance": True})
    owner = story.run()
    story.hear(e.RebalanceAdvised(owner, "rebalance"))
    successor = story.launch()
    assert story.hear(e.MachineGone(owner, "hardware")) is JobState.PROVISIONING
    assert story.view.job.owner_id == successor


def test_a_move_to_a_machine_that_cannot_be_set_up_is_given_up() -> None:
    """A running task is not disturbed for a machine that fails; that one ends."""
    story = a_story(checkpoint={"on_rebalance": True})
    owner = story.run()
    story.hear(e.RebalanceAdvised(owner, "rebalance"))
    successor = story.launch()
    story.hear(e.AgentArrived(successor), e.SetupFailed(successor, 1, "make"))
    assert story.state is JobState.RUNNING
    assert story.told[-1] == "setup failed with status 1 at `make`; the task stays where it is"
    assert owed(story.view) == (DestroyInstance(JOB_ID, successor, f"cloud-{successor}"),)
    story.hear(e.MachineGone(successor, "User initiated"))
    assert owed(story.view) == ()
    assert story.view.job.owner_id == owner


def test_a_forecast_during_setup_counts_once_the_task_runs() -> None:
    """There is nothing to save before; then the successor is placed."""
    story = a_story(checkpoint={"on_rebalance": True})
    owner = story.ready()
    story.hear(e.RebalanceAdvised(owner, "rebalance"))
    assert owed(story.view) == ()
    story.hear(e.TaskStarted(owner))
    assert owed(story.view) == (PlaceJob(JOB_ID),)


def test_a_failed_task_is_started_again_where_it_failed() -> None:
    """As often as the file allows, on the same machine; then its failure is the job's."""
    story = a_story(retry={"max_restarts": 2})
    machine = story.run()
    for number in (1, 2):
        assert failed(story, machine) is JobState.SETTING_UP
        assert story.told[-1] == f"restart {number} of 2 in {10 * number} s: the task ended with status 3"
        told = len(story.told)
        failed(story, machine)
        assert len(story.told) == told, "a report that repeats is no second failure"
        assert story.order(machine) is Order.RETRY
        assert story.hear(e.TaskStarted(machine)) is JobState.RUNNING
        assert story.told[-1] == "the task was started again"
    assert failed(story, machine) is JobState.FAILED
    assert story.view.job.exit_code == 3
    assert story.view.job.epoch == 1


@pytest.mark.parametrize(("codes", "state"), [([3], JobState.SETTING_UP), ([1, 2], JobState.FAILED)])
def test_only_named_exit_codes_are_tried_again(codes: list[int], state: JobState) -> None:
    """Where codes are named, any other one is final."""
    story = a_story(retry={"max_restarts": 1, "on_exit_codes": codes})
    assert failed(story, story.run()) is state


def test_success_is_never_tried_again() -> None:
    """Status 0 is the end."""
    story = a_story(retry={"max_restarts": 1})
    assert story.hear(e.TaskExited(story.run(), 0)) is JobState.DONE


def test_lost_machines_are_no_restarts() -> None:
    """What the clouds take is not counted against the task."""
    story = a_story(retry={"max_restarts": 1})
    for _ in range(3):
        owner = story.run()
        story.notice(owner)
        story.save(owner)
        story.hear(e.Released(owner, "instance_termination"))
    assert story.view.job.restarts == 0
    assert failed(story, story.run()) is JobState.SETTING_UP


def test_a_checkpoint_of_a_failed_task_is_one_to_go_on_from() -> None:
    """While a restart is due, the finished work directory is no result: the next machine runs the task again."""
    story = a_story(retry={"max_restarts": 1}, outputs=["out"])
    machine = story.run()
    story.save(machine, exit_code=3)
    assert story.view.job.exit_code is None
    story.hear(e.TaskExited(machine, 3, outputs=True), e.MachineGone(machine, "hardware"))
    assert story.state is JobState.PENDING
    assert not story.view.job.final_checkpoint
    machine = story.run()
    story.save(machine, exit_code=3)
    assert story.hear(e.TaskExited(machine, 3, outputs=True)) is JobState.FINALIZING


def test_a_failure_while_the_machine_is_taken_back() -> None:
    """The restart happens on the next machine, once."""
    story = a_story(retry={"max_restarts": 1})
    owner = story.run()
    story.notice(owner)
    assert failed(story, owner) is JobState.INTERRUPTED
    assert failed(story, owner) is JobState.INTERRUPTED
    story.hear(e.Released(owner, "instance_termination"))
    assert story.view.job.restarts == 1
    assert failed(story, story.run()) is JobState.FAILED


def test_a_job_has_only_so_long() -> None:
    """Wall time since the task first started, whatever machines it had: a last checkpoint, then FAILED."""
    story = a_story(max_duration_hours=1)
    owner = story.run()
    story.notice(owner)
    story.save(owner)
    story.hear(e.Released(owner, "instance_termination"), e.MachineGone(owner, "taken"))
    machine = story.run()
    story.seen(machine)
    assert story.wait(minutes=50) is JobState.RUNNING
    story.seen(machine)
    assert story.wait(minutes=10) is JobState.CANCELLING
    assert story.told[-1].startswith("max_duration_hours 1 is used up: its task first started at 2026-05-04 12:00 UTC;")
    assert directive(story.view, machine) == Directive(Order.RELEASE, "job_termination")
    story.save(machine)
    assert story.hear(e.Released(machine, "job_termination")) is JobState.FAILED
    assert story.view.job.reason.endswith("checkpoint 2 can be restored")
    story.settle()


def test_a_job_has_only_so_much_money() -> None:
    """Machines that are gone count, and both of an overlap."""
    story = a_story(max_cost_usd=0.05)
    owner = story.run()
    story.seen(owner)
    story.wait(hours=1)
    story.notice(owner)
    successor = story.ready()
    story.seen(successor)
    assert story.wait(minutes=0) is JobState.INTERRUPTED
    both = spent_usd(story.view, story.now)
    assert both > Decimal("0.0353")
    story.hear(e.MachineGone(owner, "taken", ended_by="cloud"), e.TaskStarted(successor))
    assert story.view.job.spent_usd > Decimal("0.035")
    story.seen(successor)
    assert story.wait(minutes=30) is JobState.CANCELLING
    assert "max_cost_usd 0.05 is used up: its machines have cost $0.05" in story.told[-1]


def test_a_limit_in_the_wait_for_a_machine_ends_the_job_at_once() -> None:
    """Nothing runs, so nothing is to be stopped."""
    story = a_story(max_duration_hours=1)
    story.hear(e.MachineGone(story.run(), "hardware"))
    assert story.wait(hours=1) is JobState.FAILED


def test_outputs_are_still_sent_past_a_limit() -> None:
    """The task is over: what it made is not thrown away."""
    story = a_story(max_duration_hours=1)
    machine = story.run()
    story.hear(e.TaskExited(machine, 0, outputs=True))
    story.seen(machine)
    assert story.wait(hours=1) is JobState.FINALIZING


def test_a_machine_that_gave_the_job_back_was_ended_by_us(story: Story) -> None:
    """Also where the cloud does not tell who ended it; one that was taken back is not ours."""
    first = story.run()
    story.hear(e.MachineCondemned(first, "ann asked for its end"), e.Released(first, "asked"), e.MachineGone(first))
    second = story.run()
    story.notice(second)
    story.hear(e.Released(second, "instance_termination"), e.MachineGone(second))
    assert [story.view.attempts[i].ended_by for i in (first, second)] == ["us", ""]
