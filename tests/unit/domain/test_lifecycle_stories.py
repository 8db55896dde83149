"""Whole stories of jobs whose machines are taken back, told in the words that people read in the timeline."""

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Order
from spotferry.domain.owed import owed
from spotferry.domain.view import DestroyInstance, PlaceJob
from spotferry.types import JobState, StaleAttempt
from tests.builders import JOB_ID
from tests.unit.domain.story import Story


@pytest.fixture
def story() -> Story:
    """A job that was accepted."""
    return Story()


def test_a_job_that_goes_well(story: Story) -> None:
    """One machine, one task, done; each step is told so that a person understands it."""
    machine = story.run()
    assert story.hear(e.TaskExited(machine, 0)) is JobState.DONE
    story.settle()
    assert story.told == [
        "chose aws m5.large in us-east-1a (spot, $0.0350/h with its disk): the cheapest of 12 that fit",
        "aws made machine cloud-i-1",
        "the machine is up, 30 s after it was asked for",
        "setup done in 42 s",
        "the task started from the beginning",
        "the task ended with status 0",
        "machine cloud-i-1 is gone: User initiated",
    ]


def test_an_interruption_with_overlap(story: Story) -> None:
    """The successor is up before the owner is gone, waits for the last checkpoint, and goes on from it."""
    owner = story.run()
    assert story.notice(owner) is JobState.INTERRUPTED
    assert owed(story.view) == (PlaceJob(JOB_ID),)
    successor = story.ready()
    assert story.order(owner, "running") is Order.RELEASE
    assert story.order(successor, "waiting") is Order.WAIT
    story.save(owner)
    assert story.hear(e.Released(owner, "instance_termination")) is JobState.SETTING_UP
    assert story.order(owner) is Order.SHUT_DOWN
    assert story.order(successor, "waiting") is Order.GO
    assert story.hear(e.TaskStarted(successor, 1)) is JobState.RUNNING
    story.hear(e.MachineGone(owner, "Server.SpotInstanceTermination"), e.TaskExited(successor, 0))
    assert story.state is JobState.DONE
    assert story.view.job.interruptions == 1
    story.settle()
    assert story.told[5:-2] == [
        "aws takes the machine back by 12:02:50 UTC (terminate)",
        (
            "chose aws m5.large in us-east-1a (spot, $0.0350/h with its disk) as its successor: "
            "the cheapest of 12 that fit"
        ),
        "aws made machine cloud-i-2",
        "the machine is up, 30 s after it was asked for",
        "setup done in 42 s and waits for the job",
        "checkpoint 1 committed (workdir, 10 bytes, periodic)",
        "the machine stopped the task and gave the job back, since it goes",
        "the task goes on from checkpoint 1",
        "machine cloud-i-1 is gone: Server.SpotInstanceTermination",
    ]


def test_an_owner_that_dies_before_its_time(story: Story) -> None:
    """The machine is gone before it could save: the successor goes on from the periodic checkpoint."""
    owner = story.run()
    story.save(owner)
    story.notice(owner)
    successor = story.ready()
    assert story.hear(e.MachineGone(owner, "Server.SpotInstanceTermination")) is JobState.SETTING_UP
    assert story.view.job.owner_id == successor
    assert story.view.job.interruptions == 1
    assert story.order(successor, "waiting") is Order.GO
    assert story.told[-1] == (
        "machine cloud-i-1 is gone: Server.SpotInstanceTermination; it made no checkpoint after checkpoint 1 of "
        "12:01:00 UTC: what the task did since is lost"
    )


def test_a_false_notice(story: Story) -> None:
    """The machine stays past its time: the broker ends it, and the job is on its successor all the same."""
    owner = story.run()
    story.notice(owner)
    story.launch()
    assert story.wait(minutes=2) is JobState.INTERRUPTED
    story.wait(minutes=1)
    assert DestroyInstance(JOB_ID, owner, "cloud-i-1") in owed(story.view)
    assert story.told[-1] == "ending machine cloud-i-1: it was to be taken back and is still there"
    assert story.hear(e.MachineGone(owner, "User initiated")) is JobState.PROVISIONING


def test_a_notice_while_the_machine_starts(story: Story) -> None:
    """Nothing has run yet: another machine is looked for at once, and no work is lost."""
    owner = story.launch()
    assert story.notice(owner) is JobState.INTERRUPTED
    successor = story.launch()
    story.hear(e.AgentArrived(owner))
    assert story.order(owner) is Order.RELEASE
    assert story.hear(e.MachineGone(owner, "taken")) is JobState.PROVISIONING
    assert story.view.job.owner_id == successor


def test_a_notice_during_setup(story: Story) -> None:
    """The setup is broken off, and done again on the next machine."""
    owner = story.launch()
    story.hear(e.AgentArrived(owner))
    assert story.notice(owner) is JobState.INTERRUPTED
    assert story.order(owner, "setting_up") is Order.RELEASE
    assert story.hear(e.Released(owner)) is JobState.PENDING
    assert story.view.job.reason.endswith("it waits for another machine")


def test_a_setup_that_fails_under_notice_is_the_successors_to_repeat(story: Story) -> None:
    """A setup that failed because its machine went away holds nobody."""
    owner = story.launch()
    story.hear(e.AgentArrived(owner))
    story.notice(owner)
    assert story.hear(e.SetupFailed(owner, 1, "curl"), e.Released(owner)) is JobState.PENDING


def test_a_successor_whose_setup_failed_holds_the_job_when_it_gets_it(story: Story) -> None:
    """The job comes to a machine that cannot run it: it is on hold there, with a deadline, and can be retried."""
    owner = story.run()
    story.notice(owner)
    successor = story.launch()
    story.hear(e.AgentArrived(successor), e.SetupFailed(successor, 2, "make"))
    assert story.state is JobState.INTERRUPTED
    assert story.hear(e.Released(owner)) is JobState.SETUP_FAILED
    assert story.view.job.deadline is not None
    assert story.hear(e.RetryRequested("ann")) is JobState.SETTING_UP
    assert story.order(successor, "held") is Order.RETRY


def test_a_successor_that_is_taken_back_too(story: Story) -> None:
    """The second machine gets a notice while it waits: a third is looked for, the owner still has the job."""
    owner = story.run()
    story.notice(owner)
    second = story.ready()
    story.notice(second)
    assert story.told[-1].endswith("before the job came to it")
    assert set(owed(story.view)) == {PlaceJob(JOB_ID), DestroyInstance(JOB_ID, second, "cloud-i-2")}
    third = story.ready()
    assert story.hear(e.Released(owner)) is JobState.SETTING_UP
    assert story.view.job.owner_id == third
    with pytest.raises(StaleAttempt):
        story.order(second)


def test_a_notice_while_outputs_are_sent(story: Story) -> None:
    """The task is over: with its finished work saved, a machine that only sends the outputs is looked for."""
    owner = story.run()
    story.save(owner, exit_code=0)
    assert story.hear(e.TaskExited(owner, 0, outputs=True)) is JobState.FINALIZING
    assert story.notice(owner) is JobState.FINALIZING
    assert owed(story.view) == (PlaceJob(JOB_ID),)
    successor = story.launch()
    story.hear(e.AgentArrived(successor))
    assert story.hear(e.MachineGone(owner, "taken")) is JobState.SETTING_UP
    assert story.view.job.exit_code == 0
    story.hear(e.TaskExited(successor, 0, outputs=True), e.OutputsCommitted(successor, "o.json", 2, 2048))
    assert story.state is JobState.DONE
    assert story.told[-1] == "outputs sent: 2 files, 2,048 bytes"
    story.settle()


@pytest.mark.parametrize(
    ("missed", "told"),
    [
        (("nope.txt", "out/*.npz"), "outputs sent: 1 file, 1,234 bytes; nothing matched: nope.txt, out/*.npz"),
        (("x" * 100,), f"outputs sent: 1 file, 1,234 bytes; nothing matched: {'x' * 80}..."),
        (
            tuple("abcdefghijkl"),
            "outputs sent: 1 file, 1,234 bytes; nothing matched: a, b, c, d, e, f, g, h, i, j and 2 more",
        ),
    ],
)
def test_outputs_that_are_not_there_are_told(story: Story, missed: tuple[str, ...], told: str) -> None:
    """The job is DONE, and its timeline names the patterns that matched nothing."""
    owner = story.run()
    story.hear(e.TaskExited(owner, 0, outputs=True), e.OutputsCommitted(owner, "o.json", 1, 1234, missed))
    assert (story.state, story.told[-1]) == (JobState.DONE, told)


def test_an_owner_lost_while_it_sends_outputs_that_nobody_saved(story: Story) -> None:
    """The task never runs again: the job is FAILED, and says that the outputs are lost."""
    owner = story.run()
    story.hear(e.TaskExited(owner, 0, outputs=True))
    assert story.hear(e.MachineGone(owner, "Server.SpotInstanceTermination")) is JobState.FAILED
    assert story.view.job.reason == (
        "the task ended with status 0, but machine cloud-i-1 is gone (Server.SpotInstanceTermination) "
        "before its outputs were sent"
    )
    story.settle()


def test_outputs_that_arrive_in_spite_of_a_notice(story: Story) -> None:
    """Fast enough: the job is DONE, and the successor that was looked for is ended."""
    owner = story.run()
    story.save(owner, exit_code=0)
    story.hear(e.TaskExited(owner, 0, outputs=True))
    story.notice(owner)
    successor = story.launch()
    assert story.hear(e.OutputsCommitted(owner, "o.json", 1, 1)) is JobState.DONE
    assert {x.instance_id for x in owed(story.view) if isinstance(x, DestroyInstance)} == {owner, successor}
    story.settle()


def test_a_finished_task_whose_machine_dies_before_it_says_so(story: Story) -> None:
    """The commit alone is enough: whatever machine comes next is to finalize, with the exit status known."""
    owner = story.run()
    story.save(owner, exit_code=3)
    assert story.hear(e.MachineGone(owner, "taken")) is JobState.PENDING
    successor = story.ready()
    assert story.order(successor, "waiting") is Order.GO
    assert story.view.job.exit_code == 3
    assert story.hear(e.TaskExited(successor, 3, outputs=True)) is JobState.FINALIZING
    assert story.hear(e.OutputsCommitted(successor, "o.json", 1, 1)) is JobState.FAILED
    assert story.view.job.reason == "the task ended with status 3"


def test_a_task_that_ends_while_its_machine_is_taken_back(story: Story) -> None:
    """Done is done: the interruption has nothing left to interrupt, and the successor goes."""
    owner = story.run()
    story.notice(owner)
    successor = story.launch()
    assert story.hear(e.TaskExited(owner, 0)) is JobState.DONE
    assert story.order(successor) is Order.SHUT_DOWN
    story.settle()
