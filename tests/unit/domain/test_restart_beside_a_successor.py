"""A task that fails is started again while a machine for the job to move to is on its way."""

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import decide
from spotferry.domain.view import DestroyInstance, PlaceJob, View
from spotferry.types import AttemptPhase, JobFile, JobState
from tests.builders import NOW, a_job, a_view, an_event

NEXT = "i-2"
SPEC = JobFile.model_validate(
    {"task": {"run": "true"}, "checkpoint": {"on_rebalance": True}, "retry": {"max_restarts": 2}}
)


@pytest.fixture
def view() -> View:
    """The task of i-1, which its cloud may take back, is to be started again; i-2 was asked for meanwhile."""
    view = a_view(a_job(revision=1, spec=SPEC))
    for event in (
        an_event(e.LaunchChosen, epoch=1),
        e.MachineCreated("i-1", "i-cloud1", "pending", asked_again_at=None),
        e.AgentArrived("i-1"),
        e.SetupFinished("i-1"),
        e.TaskStarted("i-1"),
        e.RebalanceAdvised("i-1", "rebalance-recommendation"),
        an_event(e.LaunchChosen, epoch=2),
        e.TaskExited("i-1", 1),
    ):
        view = decide(view, event, now=NOW).view
    assert (view.job.state, view.job.owner_id, view.job.successor_id) == (JobState.SETTING_UP, "i-1", NEXT)
    return view


def test_the_successors_hello_is_heard(view: View) -> None:
    """It is on its way to the job whatever the owner does, and not taken for a machine that never reported."""
    after = decide(view, e.AgentArrived(NEXT), now=NOW).view
    assert after.attempts[NEXT].phase is AttemptPhase.ARRIVED
    assert after.job.state is JobState.SETTING_UP


@pytest.mark.parametrize("event", [e.SetupFailed(NEXT, 2, "make"), e.StartupFailed(NEXT, "disk full")])
def test_a_successor_that_fails_leaves_the_owner_alone(view: View, event: e.Event) -> None:
    """The job is not put on hold for it: the task is started again where it is."""
    after = decide(view, event, now=NOW).view
    assert after.job.state is JobState.SETTING_UP
    assert after.attempts[NEXT].phase is AttemptPhase.HELD


def test_a_successor_that_is_taken_back_is_ended(view: View) -> None:
    """The job is not interrupted by it."""
    decision = decide(view, e.NoticeReceived(NEXT, "spot-interruption"), now=NOW)
    assert decision.view.job.state is JobState.SETTING_UP
    assert decision.view.job.successor_id is None
    assert decision.effects == (DestroyInstance("j-test", NEXT),)


def test_a_job_on_hold_keeps_no_second_machine(view: View) -> None:
    """The start failed: the job waits for a person where it is, and nothing is paid for beside it."""
    decision = decide(view, e.StartupFailed("i-1", "no such file"), now=NOW)
    assert decision.view.job.state is JobState.STARTUP_FAILED
    assert decision.view.job.successor_id is None
    assert decision.effects == (DestroyInstance("j-test", NEXT),)


@pytest.mark.parametrize("event", [e.Released("i-1", "instance_termination"), e.MachineGone("i-1")])
def test_the_job_goes_to_its_successor_when_the_owner_is_lost(view: View, event: e.Event) -> None:
    """Its machine is on its way already, and no third one is asked for."""
    decision = decide(view, event, now=NOW)
    assert (decision.view.job.state, decision.view.job.owner_id) == (JobState.PROVISIONING, NEXT)
    assert not any(isinstance(effect, PlaceJob) for effect in decision.effects)
