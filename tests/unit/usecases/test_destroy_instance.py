"""A machine that is to end is ended, and one that never was is closed."""

import pytest

from spotferry.types import JobState, ProviderError, ProviderUnavailable
from tests.unit.usecases.world import World


def test_the_machine_is_ended_and_closed_when_the_cloud_confirms(world: World) -> None:
    """The order goes to the cloud; the record closes by what the cloud says, not by the order."""
    job, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    world.perform()
    assert world.cloud.destroyed == [attempt.cedana_id]
    assert not world.attempt(job).is_gone
    world.cloud.finish_ending()
    world.poll()
    assert world.attempt(job).is_gone
    assert world.job(job).is_settled


def test_an_order_may_come_twice(world: World) -> None:
    """Ending a machine again, or one that is gone, does no harm."""
    job, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    world.destroy_instance(job.job_id, attempt.cedana_id)
    world.destroy_instance(job.job_id, attempt.cedana_id)
    world.cloud.finish_ending()
    world.poll()
    world.destroy_instance(job.job_id, attempt.cedana_id)
    assert world.cloud.calls["destroy"] == 2


def test_a_machine_that_nobody_wants_ended_is_left_alone(world: World) -> None:
    """A stray message cannot end a machine that its job still needs."""
    job, attempt = world.running()
    world.destroy_instance(job.job_id, attempt.cedana_id)
    assert world.cloud.destroyed == []
    world.destroy_instance(job.job_id, "i-none")


def test_a_cloud_that_does_not_take_the_order_is_asked_again(world: World) -> None:
    """The error goes back to the queue, and the poll owes the order until the machine is gone."""
    job, attempt = world.running()
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"), on="destroy")
    world.report(attempt, "task_exited", exit_code=0)
    with pytest.raises(ProviderError, match="Timeout"):
        world.perform()
    world.poll()
    world.perform()
    assert world.cloud.destroyed == [attempt.cedana_id]
    assert world.state(job) is JobState.DONE


def test_a_machine_whose_answer_was_lost_is_found_and_ended(world: World) -> None:
    """A cancel during the launch ends the machine that the lost answer was about, once that has had its time."""
    world.cloud.lose_answer()
    job = world.submit()
    world.create_instance(job.job_id)
    world.steer("cancel", job.job_id, "ann")
    world.perform()
    world.later(minutes=1)
    world.perform()
    assert world.cloud.living() == []
    world.cloud.finish_ending()
    world.poll()
    assert world.state(job) is JobState.CANCELLED
    assert world.job(job).is_settled


def test_a_machine_that_may_not_show_yet_is_waited_for(world: World) -> None:
    """Nothing found right after the launch proves nothing: the attempt is closed only when it would be visible."""
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"))
    job = world.submit()
    world.create_instance(job.job_id)
    world.steer("cancel", job.job_id, "ann")
    world.perform()
    assert world.state(job) is JobState.CANCELLING
    world.later(minutes=5)
    world.perform()
    assert world.state(job) is JobState.CANCELLED
    assert world.attempt(job).end_reason == "the job is cancelled"
    assert world.job(job).is_settled


def test_what_a_launch_left_beside_a_machine_is_ended_before_its_attempt_is_closed(world: World) -> None:
    """Addresses, disks and scripts go by its name; while the cloud does not take that order, the attempt stays open."""
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"))
    job = world.submit()
    world.create_instance(job.job_id)
    world.steer("cancel", job.job_id, "ann")
    world.perform()
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"), on="destroy")
    world.later(minutes=5)
    with pytest.raises(ProviderError, match="Timeout"):
        world.perform()
    assert not world.attempt(job).is_gone
    world.later(minutes=1)
    world.perform()
    assert world.cloud.destroyed == [world.attempt(job).cedana_id]
    assert world.attempt(job).is_gone
