"""Machines that end in many ways: what each counts as, and when the broker stops buying new ones."""

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Order
from spotferry.types import JobState
from tests.unit.domain.story import Story


@pytest.fixture
def story() -> Story:
    """A job that was just accepted."""
    return Story()


@pytest.mark.parametrize("warned", [True, False])
def test_a_machine_that_dies_before_its_hello_is_not_bought_for_ever(story: Story, *, warned: bool) -> None:
    """Three machines that end before they report fail the job, also when the cloud says "shutting-down" first."""
    for _ in range(3):
        machine = story.launch()
        if warned:
            story.hear(e.NoticeReceived(machine, "shutting-down", by_cloud=False))
        story.hear(e.MachineGone(machine, "Client.InstanceInitiatedShutdown", ended_by="us"))
    assert story.state is JobState.FAILED
    assert story.view.job.interruptions == 0
    assert "3 machines in a row never reported" in story.view.job.reason


def test_a_machine_that_is_taken_back_before_its_hello_is_an_interruption(story: Story) -> None:
    """A market that is short of machines never fails a job, however often it takes one back early."""
    for times in range(1, 8):
        machine = story.launch()
        story.hear(e.NoticeReceived(machine, "terminate"), e.MachineGone(machine, "terminated", ended_by="cloud"))
        assert story.state is JobState.PENDING
        assert story.view.job.interruptions == times


def test_a_task_that_powers_its_machine_off_fails_in_the_end(story: Story) -> None:
    """Five machines in a row that end by themselves under the job are no interruptions, and enough."""
    for _ in range(5):
        assert story.state is JobState.PENDING
        machine = story.run()
        story.hear(e.MachineGone(machine, "Client.InstanceInitiatedShutdown", ended_by="us"))
    assert story.state is JobState.FAILED
    assert story.view.job.interruptions == 0
    assert "5 machines in a row ended by themselves" in story.view.job.reason


def test_an_end_that_only_the_machine_heard_of_is_an_interruption(story: Story) -> None:
    """A machine that is shut down under its agent releases the job as if it had been warned."""
    machine = story.run()
    story.hear(e.Released(machine, "instance_termination"))
    assert story.view.job.interruptions == 1
    story.hear(e.MachineGone(machine, "terminated", ended_by="cloud"))
    assert story.view.job.interruptions == 1


def test_a_machine_that_a_person_ends_is_checkpointed_first(story: Story) -> None:
    """The task is stopped and saved before its machine ends, and that is no interruption."""
    machine = story.run()
    story.hear(e.NoticeReceived(machine, "ann asked for its end", by_cloud=False))
    assert story.state is JobState.INTERRUPTED
    assert story.order(machine) is Order.RELEASE
    story.hear(e.Released(machine, "instance_termination"))
    assert story.view.job.interruptions == 0
    assert "the machine is to end (ann asked for its end)" in story.told


def test_a_hold_on_a_successor_begins_when_it_gets_the_job(story: Story) -> None:
    """Its retry has the whole time, however long the owner took to leave."""
    machine = story.run()
    story.hear(e.NoticeReceived(machine, "terminate"))
    successor = story.launch()
    story.hear(e.AgentArrived(successor), e.SetupFailed(successor, 1, "make"))
    story.hear(e.Released(machine, "instance_termination"), after=3600)
    assert story.state is JobState.SETUP_FAILED
    assert story.view.job.deadline == story.now + story.policy.hold
