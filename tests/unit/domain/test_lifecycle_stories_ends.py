"""Whole stories of jobs that fail to start, are held, cancelled or forgotten, in the words of their timelines."""

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Order
from spotferry.domain.owed import owed
from spotferry.domain.view import CheckLaunch, DestroyInstance, PlaceJob, Policy
from spotferry.types import IllegalTransition, JobState
from tests.builders import JOB_ID, a_manifest
from tests.unit.domain.story import Story


@pytest.fixture
def story() -> Story:
    """A job that was accepted."""
    return Story()


def test_three_machines_that_never_report(story: Story) -> None:
    """Each gets its time to boot; the third one's end is the job's."""
    for number in (1, 2, 3):
        machine = story.launch()
        assert machine == f"i-{number}"
        assert story.wait(minutes=9) is not JobState.FAILED
        story.wait(minutes=2)
        assert story.told[-1] == f"ending machine cloud-i-{number}: its agent did not report within 10 min"
        story.hear(e.MachineGone(machine, "User initiated"))
    assert story.state is JobState.FAILED
    assert story.view.job.reason.startswith("3 machines in a row never reported: ")
    story.settle()


def test_a_machine_that_reports_ends_the_count(story: Story) -> None:
    """Two silent machines and one that speaks are no failure of the job."""
    for _ in range(2):
        machine = story.launch()
        story.wait(minutes=11)
        story.hear(e.MachineGone(machine))
    assert story.view.job.startup_failures == 2
    machine = story.launch()
    story.hear(e.AgentArrived(machine))
    assert story.view.job.startup_failures == 0


def test_a_launch_without_an_answer_counts_for_nothing(story: Story) -> None:
    """A cloud that gives no verdict is no machine that failed to report."""
    for _ in range(4):
        attempt = story.choose()
        assert CheckLaunch(JOB_ID, attempt) in owed(story.view)
        story.wait(minutes=11)
        story.hear(e.MachineGone(attempt, "no machine was ever made for it"))
    assert story.state is JobState.PENDING
    assert story.view.job.startup_failures == 0


def test_a_refusal_is_told_with_the_clouds_words(story: Story) -> None:
    """The job waits for the next candidate, and the person reads why."""
    attempt = story.choose()
    refused = e.LaunchFailed(attempt, "InsufficientInstanceCapacity", "no m5.large left", asked_again_at=None)
    assert story.hear(refused) is JobState.PENDING
    assert story.told[-1] == (
        "aws refused aws m5.large in us-east-1a (spot, $0.0350/h with its disk): "
        "InsufficientInstanceCapacity: no m5.large left"
    )
    assert story.view.job.open_attempts == ()
    assert story.view.job.interruptions == 0


def test_a_machine_of_a_refused_launch_that_shows_all_the_same(story: Story) -> None:
    """Whatever the cloud said first, a machine that exists is ours to end."""
    attempt = story.choose()
    story.hear(e.LaunchFailed(attempt, "InternalError", "odd", asked_again_at=None))
    story.launch()
    story.hear(e.MachineCreated(attempt, "cloud-late", "running", asked_again_at=None))
    assert DestroyInstance(JOB_ID, attempt, "cloud-late") in owed(story.view)
    assert story.view.job.owner_id == "i-2"


@pytest.mark.parametrize("through", ["retry", "expiry"])
def test_a_hold(story: Story, through: str) -> None:
    """A failed setup waits for a person: a retry runs it again on the same machine, silence fails the job."""
    machine = story.launch()
    story.hear(e.AgentArrived(machine))
    assert story.hear(e.SetupFailed(machine, 2, "make test")) is JobState.SETUP_FAILED
    assert "setup failed with status 2 at `make test`; the machine waits for a retry until" in story.told[-1]
    if through == "retry":
        assert story.hear(e.RetryRequested("ann")) is JobState.SETTING_UP
        assert story.told[-1] == "retry asked for by ann"
        assert story.hear(e.SetupFinished(machine, 1), e.TaskStarted(machine)) is JobState.RUNNING
    else:
        assert story.wait(minutes=11) is JobState.FAILED
        assert story.view.job.reason.endswith("nobody asked for a retry in time")
        story.settle()


def test_a_hold_whose_machine_is_taken_back(story: Story) -> None:
    """The machine that waited is gone: the job fails, and says that nobody asked before."""
    machine = story.launch()
    story.hear(e.AgentArrived(machine), e.StartupFailed(machine, "no space"))
    story.notice(machine)
    assert story.hear(e.MachineGone(machine, "taken")) is JobState.FAILED
    assert "nobody asked for a retry before the machine ended" in story.view.job.reason


@pytest.mark.parametrize(
    ("state", "order"),
    [
        (JobState.PENDING, None),
        (JobState.PROVISIONING, None),
        (JobState.SETTING_UP, Order.STOP),
        (JobState.RUNNING, Order.RELEASE),
        (JobState.INTERRUPTED, Order.RELEASE),
        (JobState.FINALIZING, Order.RELEASE),
        (JobState.SETUP_FAILED, Order.STOP),
    ],
)
def test_a_cancel_in_each_state(story: Story, state: JobState, order: Order | None) -> None:
    """A task that had started makes a last checkpoint; without an agent the machine is ended; in the end the job is
    CANCELLED.
    """
    machine = _bring(story, state)
    assert story.state is state
    assert story.hear(e.CancelRequested("ann")) in {JobState.CANCELLING, JobState.CANCELLED}
    assert "cancelled by ann" in story.told[-1]
    if order is not None:
        assert story.order(machine, "running") is order
        assert story.hear(e.Released(machine, "stopped")) is JobState.CANCELLED
    for effect in owed(story.view):
        assert isinstance(effect, DestroyInstance)
        story.hear(e.MachineGone(effect.instance_id, "ended"))
    assert story.state is JobState.CANCELLED
    assert story.view.job.is_settled


def _bring(story: Story, state: JobState) -> str:
    """Bring the job to the state; its owner."""
    if state is JobState.PENDING:
        return ""
    if state is JobState.PROVISIONING:
        return story.launch()
    if state in {JobState.SETTING_UP, JobState.SETUP_FAILED}:
        machine = story.launch()
        story.hear(e.AgentArrived(machine))
        if state is JobState.SETUP_FAILED:
            story.hear(e.SetupFailed(machine, 1))
        return machine
    machine = story.run()
    if state is JobState.INTERRUPTED:
        story.notice(machine)
        story.launch()
    if state is JobState.FINALIZING:
        story.hear(e.TaskExited(machine, 0, outputs=True))
    return machine


def test_a_cancel_that_meets_the_tasks_end(story: Story) -> None:
    """The task ended while it was being stopped: the job is CANCELLED, once."""
    machine = story.run()
    story.hear(e.CancelRequested("ann"))
    assert story.hear(e.TaskExited(machine, 0)) is JobState.CANCELLING
    assert story.hear(e.Released(machine)) is JobState.CANCELLED


def test_a_cancel_that_the_agent_does_not_hear(story: Story) -> None:
    """Past its deadline the machine is ended, and its end is the job's."""
    machine = story.run()
    story.hear(e.CancelRequested("ann"))
    story.wait(minutes=2)
    assert story.told[-1] == "ending machine cloud-i-1: its task was not stopped in time after the cancel"
    assert story.hear(e.MachineGone(machine)) is JobState.CANCELLED


def test_a_silent_agent_keeps_the_job_until_the_cloud_confirms(story: Story) -> None:
    """Time orders the machine's end, but never passes the job on."""
    machine = story.run()
    assert story.wait(minutes=21) is JobState.INTERRUPTED
    assert "has been silent" in story.told[-1]
    story.wait(days=3)
    assert story.view.job.owner_id == machine
    assert story.hear(e.MachineGone(machine, "User initiated")) is JobState.PENDING
    assert story.view.job.interruptions == 0


def test_the_broker_ending_a_machine_is_no_interruption(story: Story) -> None:
    """What the cloud tells of a machine that we end ourselves counts nothing."""
    machine = story.run()
    story.hear(e.MachineCondemned(machine, "ann asked for its end"))
    told = len(story.told)
    story.hear(e.NoticeReceived(machine, "shutting-down"))
    assert len(story.told) == told
    story.hear(e.MachineGone(machine, "User initiated"))
    assert story.view.job.interruptions == 0


def test_a_job_without_overlap_is_placed_after_the_release() -> None:
    """Where the deployment wants no overlap, the next machine is looked for when the last one is given back."""
    story = Story(policy=Policy(overlap=False))
    owner = story.run()
    story.notice(owner)
    assert not any(isinstance(effect, PlaceJob) for effect in owed(story.view))
    assert story.hear(e.Released(owner)) is JobState.PENDING
    assert PlaceJob(JOB_ID) in owed(story.view)


def test_what_cannot_happen_is_refused(story: Story) -> None:
    """A retry of a running job is no move and no no-op."""
    story.run()
    with pytest.raises(IllegalTransition, match="RUNNING cannot take retry_requested"):
        story.hear(e.RetryRequested("ann"))


def test_what_is_said_twice_is_told_once(story: Story) -> None:
    """A repeat of any report or answer adds nothing to the timeline."""
    machine = story.launch()
    twice: list[e.Event] = [
        e.MachineCreated(machine, "cloud-i-1", "pending", asked_again_at=None),
        e.AgentArrived(machine),
        e.SetupFailed(machine, 2, "make"),
        e.RetryRequested("ann"),
        e.SetupFinished(machine, 3),
        e.TaskStarted(machine, 2, "checkpoint 3 does not verify"),
        e.CheckpointCommitted(machine, a_manifest(1), "m1.json"),
    ]
    for event in twice:
        story.hear(event)
        told = len(story.told)
        if not isinstance(event, e.RetryRequested):
            story.hear(event)
        assert len(story.told) == told
    assert "the task goes on from checkpoint 2 (checkpoint 3 does not verify)" in story.told


def test_a_machine_that_nobody_needs_any_more_is_ended_by_the_poll(story: Story) -> None:
    """Whatever was forgotten, a machine without a job is found by time alone."""
    owner = story.run()
    story.notice(owner)
    successor = story.launch()
    story.view = story.view.with_job(successor_id=None)
    story.wait(seconds=1)
    assert DestroyInstance(JOB_ID, successor, "cloud-i-2") in owed(story.view)
    assert story.told[-1] == "ending machine cloud-i-2: the job no longer needs it"
