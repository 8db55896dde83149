"""What the timeline says of work that is lost, of reasons and of exit statuses."""

from datetime import timedelta

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import decide
from spotferry.domain.reason_words import release_words, status_words
from spotferry.types import JobState
from spotferry.types.events import CheckpointReason
from tests.builders import a_manifest, an_attempt
from tests.unit.domain.story import Story


@pytest.fixture
def story() -> Story:
    """A job that was accepted."""
    return Story()


def gone(story: Story, machine: str) -> str:
    """The machine is gone; what the timeline says of it."""
    story.hear(e.MachineGone(machine, "taken", ended_by="cloud"))
    return story.told[-1]


def commit(story: Story, machine: str, **changes: object) -> str:
    """A checkpoint is committed; what the timeline says of it."""
    manifest = a_manifest(story.view.job.checkpoint + 1, story.view.job.epoch).model_copy(update=changes)
    story.hear(e.CheckpointCommitted(machine, manifest, "m.json"))
    return story.told[-1]


def test_work_that_no_checkpoint_holds_is_said_to_be_lost(story: Story) -> None:
    """A notice, then the machine goes before its last checkpoint is there, and there never was one."""
    owner = story.run()
    story.notice(owner)
    words = "machine cloud-i-1 is gone: taken; no checkpoint was ever made: the task starts from the beginning"
    assert gone(story, owner) == words


def test_a_job_that_ends_with_its_machine_starts_nothing_again(story: Story) -> None:
    """A cancelled job's task is lost with the machine, and begins nowhere."""
    owner = story.run()
    story.hear(e.CancelRequested("ann"))
    assert gone(story, owner).endswith("no checkpoint was ever made: what the task did is lost")


def test_a_checkpoint_of_another_day_has_its_date(story: Story) -> None:
    """Work of a whole day may be lost: the time alone would say too little."""
    owner = story.run()
    story.save(owner)
    story.now += timedelta(days=1)
    assert "after checkpoint 1 of 2026-05-04 12:01:00 UTC: what the task did since is lost" in gone(story, owner)


def test_nothing_is_said_to_be_lost_where_nothing_is(story: Story) -> None:
    """No task ran there, or it ended, or the machine gave the job back before it went."""
    assert gone(story, story.ready()) == "machine cloud-i-1 is gone: taken"
    owner = story.run()
    story.notice(owner)
    story.save(owner)
    story.hear(e.Released(owner, "instance_termination"))
    assert gone(story, owner) == "machine cloud-i-2 is gone: taken"
    owner = story.run()
    story.save(owner, exit_code=0)
    story.hear(e.TaskExited(owner, 0, outputs=True))
    assert gone(story, owner) == "machine cloud-i-3 is gone: taken"


def test_a_machine_that_ran_no_task_stopped_none(story: Story) -> None:
    """A take-back during the setup gives the job back, and the words claim no more; the job's reason says it too."""
    owner = story.launch()
    story.hear(e.AgentArrived(owner))
    story.notice(owner)
    story.hear(e.Released(owner, "instance_termination"))
    assert story.told[-1] == "the machine gave the job back before a task had started there, since it goes"
    assert story.view.job.reason == "the machine gave the job back, since it goes; it waits for another machine"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("", ", as asked"),
        ("job_termination", ", since the job ends"),
        ("rebalance", ", since the job moves to its successor"),
        ("a disk that is full", ": a disk that is full"),
    ],
)
def test_why_a_job_was_given_back_is_said_in_words(reason: str, words: str) -> None:
    """Codes have words; what an agent says in its own is kept."""
    assert release_words(reason) == words


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (CheckpointReason.INSTANCE_TERMINATION, "10 bytes, before the machine goes)"),
        (CheckpointReason.JOB_TERMINATION, "10 bytes, after the task ended)"),
        (CheckpointReason.HEARTBEAT, "10 bytes, periodic, the task stood still for 0.0 s)"),
        (None, "10 bytes, the task stood still for 0.0 s)"),
    ],
)
def test_why_a_checkpoint_was_made_is_said_in_words(story: Story, reason: str | None, words: str) -> None:
    """No codes; and a task that was ended for a checkpoint did not stand still for it."""
    assert commit(story, story.run(), reason=reason, paused_seconds=0.0).endswith(words)


def test_a_finished_task_does_not_stand_still(story: Story) -> None:
    """Whatever reason its agent gives."""
    assert "stood still" not in commit(story, story.run(), task_over=True, exit_code=0, paused_seconds=0.0)


def test_a_checkpoint_that_was_asked_for_is_called_so(story: Story) -> None:
    """Its agent calls it periodic; the job knows that somebody asked, and its record keeps that."""
    owner = story.run()
    story.hear(e.CheckpointRequested("ann"))
    event = e.CheckpointCommitted(owner, a_manifest(1), "m.json")
    decision = decide(story.view, event, now=story.now)
    assert decision.checkpoint is not None
    assert decision.checkpoint.asked_for
    assert commit(story, owner).endswith("10 bytes, asked for)")
    assert commit(story, owner).endswith("10 bytes, periodic)")


def test_a_last_checkpoint_is_not_the_one_asked_for(story: Story) -> None:
    """A machine that goes makes its own, whoever asked for one before."""
    owner = story.run()
    story.hear(e.CheckpointRequested("ann"))
    story.notice(owner)
    assert commit(story, owner, reason="instance_termination").endswith("before the machine goes)")


def test_a_price_in_the_timeline_is_that_of_machine_and_disk(story: Story) -> None:
    """The price that a plan and a submit tell."""
    attempt = an_attempt(1, disk_usd_hour="0.0033", allocated_id="")
    story.hear(e.LaunchChosen(attempt, "the only one that fits"))
    assert "(spot, $0.0383/h with its disk)" in story.told[-1]


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (7, "status 7"),
        (137, "status 137 (killed by SIGKILL, often for lack of memory)"),
        (143, "status 143 (killed by SIGTERM)"),
        (128, "status 128"),
        (255, "status 255"),
    ],
)
def test_a_status_that_stands_for_a_signal_names_it(exit_code: int, words: str) -> None:
    """128 and a signal's number is how a shell says that the signal killed the task."""
    assert status_words(exit_code) == words


def test_a_failure_after_restarts_says_how_many() -> None:
    """What was tried is seen in the end as well; without a restart nothing is said of any."""
    story = Story(spec={"retry": {"max_restarts": 1}})
    owner = story.run()
    story.hear(e.TaskExited(owner, 137))
    assert story.told[-1].endswith("the task ended with status 137 (killed by SIGKILL, often for lack of memory)")
    story.hear(e.TaskStarted(owner))
    assert story.hear(e.TaskExited(owner, 7)) is JobState.FAILED
    assert story.view.job.reason == "the task ended with status 7 after 1 of 1 restarts"
    plain = Story()
    plain.hear(e.TaskExited(plain.run(), 7))
    assert plain.view.job.reason == "the task ended with status 7"
