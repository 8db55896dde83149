"""Whole stories of jobs, through `decide` alone, told in the words that people read in the timeline."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Directive, Order, accept, decide, directive, overdue, owed
from spotferry.domain.view import CheckLaunch, DestroyInstance, PlaceJob, Policy, View
from spotferry.types import AttemptPhase, IllegalTransition, JobFile, JobState, StaleAttempt
from tests.builders import JOB_ID, NOW, a_job, a_manifest, an_attempt

_BLANK: dict[str, object] = {
    "phase": AttemptPhase.REQUESTED,
    "allocated_id": "",
    "state": "pending",
    "launched_at": None,
    "arrived_at": None,
    "last_seen": None,
}


@dataclass
class Story:
    """One job, and what was said about it."""

    policy: Policy = field(default_factory=Policy)
    now: datetime = NOW
    told: list[str] = field(default_factory=list)
    view: View = field(init=False)

    def __post_init__(self) -> None:
        """The job is accepted."""
        decision = accept(a_job(spec=JobFile.model_validate({"task": {"run": ["x"]}})), self.now)
        self.view = replace(decision.view, policy=self.policy)
        assert owed(self.view) == (PlaceJob(JOB_ID),)

    def hear(self, *events: e.Event, after: float = 10) -> JobState:
        """These happen, one after the other, so many seconds apart."""
        for event in events:
            self.now += timedelta(seconds=after)
            decision = decide(self.view, event, now=self.now)
            self.view = decision.view
            if decision.entry is not None:
                self.told.append(decision.entry.message)
        return self.state

    @property
    def state(self) -> JobState:
        """Where the job is."""
        return self.view.job.state

    def choose(self) -> str:
        """Placement chooses a machine; its id."""
        epoch = self.view.job.epoch + 1
        blank = {**_BLANK, "requested_at": self.now, "cedana_id": f"i-{epoch}"}
        self.hear(e.LaunchChosen(an_attempt(epoch, **blank), "the cheapest of 12 that fit"))
        return f"i-{epoch}"

    def launch(self) -> str:
        """A machine is chosen and made."""
        instance_id = self.choose()
        self.hear(e.MachineCreated(instance_id, f"cloud-{instance_id}", "pending"))
        return instance_id

    def ready(self) -> str:
        """A machine is made, and its setup done."""
        instance_id = self.launch()
        self.hear(e.AgentArrived(instance_id), e.SetupFinished(instance_id, 42))
        return instance_id

    def run(self) -> str:
        """A machine runs the task."""
        instance_id = self.ready()
        self.hear(e.TaskStarted(instance_id))
        return instance_id

    def notice(self, instance_id: str) -> JobState:
        """The cloud takes the machine back in two minutes."""
        return self.hear(e.NoticeReceived(instance_id, "terminate", self.now + timedelta(minutes=2)))

    def save(self, instance_id: str, exit_code: int | None = None) -> None:
        """A checkpoint is committed."""
        manifest = a_manifest(self.view.job.checkpoint + 1, self.view.job.epoch, exit_code=exit_code)
        self.hear(e.CheckpointCommitted(instance_id, manifest, f"m{manifest.number}.json"))

    def wait(self, **by: float) -> JobState:
        """Time goes on, and a poll looks."""
        self.now += timedelta(**by)
        return self.hear(*overdue(self.view, self.now), after=0)

    def order(self, instance_id: str, phase: str = "") -> Order:
        """What the agent is told."""
        told: Directive = directive(self.view, instance_id, phase)
        return told.order

    def settle(self) -> None:
        """The clouds confirm every end that is owed."""
        for effect in owed(self.view):
            assert isinstance(effect, DestroyInstance)
            self.hear(e.MachineGone(effect.instance_id, "User initiated"))
        assert self.view.job.is_settled
        assert owed(self.view) == ()


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
        "chose aws m5.large in us-east-1a (spot, $0.035/h): the cheapest of 12 that fit",
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
        "aws takes the machine back at 12:02:50 UTC (terminate)",
        "chose aws m5.large in us-east-1a (spot, $0.035/h) as its successor: the cheapest of 12 that fit",
        "aws made machine cloud-i-2",
        "the machine is up, 30 s after it was asked for",
        "setup done in 42 s and waits for the job",
        "checkpoint 1 committed (workdir, 10 bytes, for heartbeat)",
        "the machine stopped the task and gave the job back: instance_termination",
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
    assert story.hear(e.LaunchFailed(attempt, "InsufficientInstanceCapacity", "no m5.large left")) is JobState.PENDING
    assert story.told[-1] == (
        "aws refused aws m5.large in us-east-1a (spot, $0.035/h): InsufficientInstanceCapacity: no m5.large left"
    )
    assert story.view.job.open_attempts == ()
    assert story.view.job.interruptions == 0


def test_a_machine_of_a_refused_launch_that_shows_all_the_same(story: Story) -> None:
    """Whatever the cloud said first, a machine that exists is ours to end."""
    attempt = story.choose()
    story.hear(e.LaunchFailed(attempt, "InternalError", "odd"))
    story.launch()
    story.hear(e.MachineCreated(attempt, "cloud-late", "running"))
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
        (JobState.RUNNING, Order.STOP),
        (JobState.INTERRUPTED, Order.STOP),
        (JobState.FINALIZING, Order.STOP),
        (JobState.SETUP_FAILED, Order.STOP),
    ],
)
def test_a_cancel_in_each_state(story: Story, state: JobState, order: Order | None) -> None:
    """The task is stopped where one may run; without an agent the machine is ended; in the end the job is CANCELLED."""
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
        e.MachineCreated(machine, "cloud-i-1", "pending"),
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
