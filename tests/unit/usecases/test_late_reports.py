"""Reports that come again after the attempt has gone on: they say nothing about how things are now."""

import pytest

from spotferry.types import Attempt, InvalidInput, Job, JobState
from tests.unit.usecases.wire import bearer
from tests.unit.usecases.world import World

RESTARTS = {"retry": {"max_restarts": 3}}


class Numbered:
    """An agent that numbers its reports, and a network that may bring any of them again."""

    def __init__(self, world: World, attempt: Attempt) -> None:
        self._world = world
        self._attempt = attempt
        self._sent: list[tuple[str, dict[str, object]]] = []

    def report(self, event: str, **data: object) -> int:
        """Something happened; the number of its report."""
        self._sent.append((event, data))
        self.again(len(self._sent))
        return len(self._sent)

    def again(self, number: int) -> None:
        """A report arrives, for the first time or once more."""
        event, data = self._sent[number - 1]
        attempt = self._world.authenticate(bearer(self._attempt))
        self._world.hear.report(attempt, event, data, None, number)


def _run(world: World, **spec: object) -> tuple[Job, Numbered]:
    job, attempt = world.set_up(**spec)
    agent = Numbered(world, attempt)
    agent.report("setup_finished", seconds=1)
    agent.report("task_started", restored_from=None)
    return job, agent


def test_a_failure_that_is_reported_again_after_the_restart_restarts_nothing(world: World) -> None:
    """The second run goes on, and its end counts."""
    job, agent = _run(world, **RESTARTS)
    failed = agent.report("task_exited", exit_code=1, outputs=False)
    agent.report("task_started", restored_from=None)
    agent.again(failed)
    assert world.state(job) is JobState.RUNNING
    assert world.job(job).restarts == 1
    agent.report("task_exited", exit_code=0, outputs=False)
    assert world.state(job) is JobState.DONE


def test_a_start_that_is_reported_again_does_not_hide_the_restart_that_is_due(world: World) -> None:
    """The agent is still told to start the task again."""
    job, agent = _run(world, **RESTARTS)
    agent.report("task_exited", exit_code=1, outputs=False)
    agent.again(2)
    assert world.state(job) is JobState.SETTING_UP
    assert world.beat(world.attempt(job))["directive"]["kind"] == "retry"


def test_a_setup_that_failed_once_is_not_held_again_while_it_is_tried_again(world: World) -> None:
    """The retry that somebody asked for is not undone."""
    job, attempt = world.set_up()
    agent = Numbered(world, attempt)
    failed = agent.report("setup_failed", exit_code=2, line="make")
    world.steer("retry", job.job_id, "ann")
    agent.again(failed)
    assert world.state(job) is JobState.SETTING_UP


def test_a_report_that_comes_again_at_once_performs_what_is_owed(world: World) -> None:
    """Its first answer was lost: nothing is saved twice, and everything is sent."""
    job, agent = _run(world)
    world.queue.take()
    ended = agent.report("task_exited", exit_code=0, outputs=False)
    revision = world.job(job).revision
    effects = world.queue.take()
    agent.again(ended)
    assert world.job(job).revision == revision
    assert world.queue.take() == effects


def test_an_older_agents_reports_have_no_numbers(world: World) -> None:
    """They are heard as they come."""
    job, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    assert world.state(job) is JobState.DONE


@pytest.mark.parametrize("number", [0, -1, "1", 1.5, True, [1]])
def test_a_number_that_is_none_is_refused(world: World, number: object) -> None:
    """It names the field."""
    _, attempt = world.set_up()
    known = world.authenticate(bearer(attempt))
    with pytest.raises(InvalidInput, match="report"):
        world.hear.report(known, "setup_finished", {"seconds": 1}, None, number)
