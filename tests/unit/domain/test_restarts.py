"""The pause before a failed task is started again: how it grows, when it begins anew, and what ends it."""

from datetime import timedelta

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import Directive, Order, directive, wants_attention
from spotferry.types import IllegalTransition, JobState
from tests.unit.domain.story import Story

MANY = {"max_restarts": 1000}


def fail(story: Story, machine: str, after: float = 1) -> int:
    """The task fails after so many seconds; how long its restart waits."""
    story.hear(e.TaskExited(machine, 1), after=after)
    return directive(story.view, machine).pause_seconds


def fail_again(story: Story, machine: str, after: float = 1) -> int:
    """It is started again, and fails after so many seconds."""
    story.hear(e.TaskStarted(machine))
    return fail(story, machine, after)


def pausing(**spec: object) -> tuple[Story, str]:
    """A job whose task failed and waits to be started again."""
    story = Story(spec={"retry": MANY, **spec})
    machine = story.run()
    fail(story, machine)
    return story, machine


def test_pauses_double_up_to_five_minutes() -> None:
    """Five restarts outlast five minutes of a network that is away; a thousand take days, and not minutes."""
    story = Story(spec={"retry": MANY})
    machine = story.run()
    pauses = [fail(story, machine), *(fail_again(story, machine) for _ in range(6))]
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    assert sum(pauses[:5]) >= 300


def test_the_timeline_says_when_it_is_started_again_and_why() -> None:
    """The number, the pause and the status, in the entry, in the job's reason, and in the order to the agent."""
    story, machine = pausing()
    fail_again(story, machine)
    fail_again(story, machine)
    said = "restart 3 of 1000 in 40 s: the task ended with status 1"
    assert (story.told[-1], story.view.job.reason) == (said, said)
    assert directive(story.view, machine) == Directive(Order.RETRY, said, 40)


@pytest.mark.parametrize(("minutes", "pause"), [(9.9, 80), (10, 10)])
def test_a_long_run_begins_the_pauses_anew(minutes: float, pause: int) -> None:
    """Ten minutes are long; the run that is short again after it waits twice the first pause."""
    story, machine = pausing()
    fail_again(story, machine)
    fail_again(story, machine)
    assert fail_again(story, machine, after=minutes * 60) == pause
    assert fail_again(story, machine) == 2 * pause


def test_a_long_first_run_is_started_again_soon() -> None:
    """Days of work that end in a failure wait no longer than the first pause."""
    story = Story(spec={"retry": MANY})
    assert fail(story, story.run(), after=86_400) == 10


def test_pauses_go_on_growing_on_another_machine() -> None:
    """A machine that is lost meanwhile does not begin them anew: the task fails as fast elsewhere."""
    story, machine = pausing()
    fail_again(story, machine)
    story.hear(e.MachineGone(machine, "taken", ended_by="cloud"))
    assert fail(story, story.run()) == 40


def test_a_pause_is_quiet() -> None:
    """The agent calls as seldom as while the task runs: a job that fails for ever is not to cost a call every two
    seconds.
    """
    story, machine = pausing()
    assert not wants_attention(story.view, machine)


def test_a_notice_in_the_pause_takes_the_job_elsewhere() -> None:
    """The machine is released at once; the restart is the next machine's, at its start, and counts once."""
    story, machine = pausing()
    assert story.notice(machine) is JobState.INTERRUPTED
    assert directive(story.view, machine) == Directive(Order.RELEASE, "instance_termination")
    story.save(machine)
    assert story.hear(e.Released(machine, "instance_termination")) is JobState.PENDING
    successor = story.ready()
    assert story.order(successor) is Order.GO
    story.hear(e.TaskStarted(successor, 1))
    assert story.told[-1] == "the task goes on from checkpoint 1"
    assert story.view.job.restarts == 1


def test_a_failure_under_notice_is_started_again_without_a_pause() -> None:
    """The next machine has to come up before it: that is pause enough, and the timeline says where it happens."""
    story = Story(spec={"retry": MANY})
    machine = story.run()
    story.notice(machine)
    story.hear(e.TaskExited(machine, 1))
    assert story.told[-1] == "restart 1 of 1000 on the next machine: the task ended with status 1"
    story.hear(e.Released(machine, "instance_termination"))
    assert fail(story, story.run()) == 10


def test_a_cancel_in_the_pause_ends_it() -> None:
    """The job is cancelled with what the failed run left, and nothing is started again."""
    story, machine = pausing()
    assert story.hear(e.CancelRequested("ann")) is JobState.CANCELLING
    assert directive(story.view, machine) == Directive(Order.RELEASE, "job_termination")
    story.save(machine)
    assert story.hear(e.Released(machine, "job_termination")) is JobState.CANCELLED
    assert story.view.job.reason.endswith("checkpoint 1 can be restored")


@pytest.mark.parametrize("limit", [{"max_duration_hours": 1}, {"max_cost_usd": 0.005}])
def test_a_limit_in_the_pause_ends_it(limit: dict[str, float]) -> None:
    """Time and money are used up by a task that waits as by one that runs."""
    story, machine = pausing(**limit)
    story.seen(machine)
    assert story.wait(hours=1) is JobState.CANCELLING
    assert directive(story.view, machine) == Directive(Order.RELEASE, "job_termination")
    story.hear(e.Released(machine, "job_termination"))
    assert story.state is JobState.FAILED
    assert "is used up" in story.view.job.reason


def test_a_machine_that_dies_in_the_pause_passes_the_job_on() -> None:
    """Its successor starts the task, without a wait."""
    story, machine = pausing()
    assert story.hear(e.MachineGone(machine, "hardware")) is JobState.PENDING
    successor = story.ready()
    assert directive(story.view, successor).order is Order.GO


def test_a_checkpoint_that_is_wanted_is_made_once_the_task_runs() -> None:
    """One that was asked for before the failure stands; in the pause there is no task to checkpoint, as in set-up."""
    story = Story(spec={"retry": MANY})
    machine = story.run()
    story.hear(e.CheckpointRequested("ann"))
    fail(story, machine)
    with pytest.raises(IllegalTransition):
        story.hear(e.CheckpointRequested("bob"))
    assert story.order(machine) is Order.RETRY
    story.hear(e.TaskStarted(machine))
    assert story.order(machine) is Order.CHECKPOINT


def test_a_hold_has_no_pause() -> None:
    """A person who asks for a retry of a start that failed waits for nothing, whatever restarts came before."""
    story, machine = pausing()
    fail_again(story, machine)
    story.hear(e.StartupFailed(machine, "no such file"), e.RetryRequested("ann"))
    assert directive(story.view, machine, "held") == Directive(Order.RETRY, "retried by ann")


def test_a_clock_that_went_back_is_a_short_run() -> None:
    """Two functions' clocks may differ by a little."""
    story, machine = pausing()
    story.hear(e.TaskStarted(machine))
    story.now -= timedelta(seconds=30)
    assert fail(story, machine) == 20
