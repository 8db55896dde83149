"""A launch whose answer is not known is settled."""

import pytest

from spotferry.domain.view import DestroyInstance
from spotferry.types import Job, JobState, ProviderUnavailable
from tests.unit.usecases.world import World


@pytest.fixture
def lost(world: World) -> Job:
    """A job whose launch made a machine, but whose answer was lost."""
    world.cloud.lose_answer()
    job = world.submit()
    world.create_instance(job.job_id)
    world.queue.take()
    world.let_answers_come()
    return job


def test_the_machine_is_found_by_its_tag(world: World, lost: Job) -> None:
    """The machine is recorded without another launch call, and found by its id from then on."""
    world.check_launch(lost.job_id, world.attempt(lost).cedana_id)
    attempt = world.attempt(lost)
    assert attempt.allocated_id
    assert world.cloud.calls["create"] == 1
    assert world.store.find_attempt("aws", attempt.region, attempt.allocated_id) == attempt


def test_a_check_that_comes_twice_costs_one_read(world: World, lost: Job) -> None:
    """What is settled is left alone: the cloud is not asked again."""
    instance_id = world.attempt(lost).cedana_id
    world.check_launch(lost.job_id, instance_id)
    world.check_launch(lost.job_id, instance_id)
    assert world.cloud.calls["find"] == 1
    assert world.store.saves == 2


def test_a_look_up_that_failed_proves_nothing(world: World, lost: Job) -> None:
    """No second machine is asked for while the first may be there; the next poll sends the question again."""
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"), on="find")
    world.check_launch(lost.job_id, world.attempt(lost).cedana_id)
    assert world.cloud.calls["create"] == 1
    world.poll()
    world.perform()
    assert world.attempt(lost).allocated_id


def test_an_attempt_that_was_given_up_is_not_asked_for(world: World, lost: Job) -> None:
    """After a cancel nothing is launched any more."""
    world.steer("cancel", lost.job_id, "ann")
    world.cloud.hidden = True
    world.check_launch(lost.job_id, world.attempt(lost).cedana_id)
    assert world.cloud.calls["create"] == 1


def test_an_unknown_attempt_is_left_alone(world: World) -> None:
    """A message about nothing that exists does nothing."""
    job = world.submit()
    world.check_launch(job.job_id, "i-none")
    world.check_launch("j-none", "i-none")
    assert world.cloud.calls == {}


def test_a_machine_made_after_the_cancel_is_ended(world: World) -> None:
    """The launch's answer comes after the job was cancelled: the machine is recorded, and its end is ordered."""
    job = world.submit()
    world.queue.take()
    stale = world.store.load(job.job_id)
    plan = world.plan_job.plan(job.spec)
    assert plan.chosen is not None
    world.cloud.lose_answer()
    world.create_instance._place(stale)
    attempt = world.attempt(job)
    world.steer("cancel", job.job_id, "ann")
    world.queue.take()
    world.ask(job.job_id, attempt)
    created = world.attempt(job)
    assert created.ending
    assert world.queue.waiting == [DestroyInstance(job.job_id, attempt.cedana_id, created.allocated_id)]
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.state(job) is JobState.CANCELLED
    assert world.job(job).is_settled


def test_a_machine_whose_agent_reported_is_never_asked_for_again(world: World, lost: Job) -> None:
    """It was made; where machines go by their name, to ask once it has ended would make another."""
    attempt = world.attempt(lost)
    world.hello(attempt)
    world.cloud.terminate(attempt.cedana_id)
    world.check_launch(lost.job_id, attempt.cedana_id)
    world.create_instance(lost.job_id)
    assert world.cloud.calls["create"] == 1
    assert not world.attempt(lost).is_gone


def test_a_machine_that_reported_and_is_not_shown_any_more_is_gone_once_it_is_silent(world: World, lost: Job) -> None:
    """It may be hidden for a while, but not while its agent says nothing as well; the job then goes on elsewhere."""
    attempt = world.attempt(lost)
    world.hello(attempt)
    world.cloud.hidden = True
    world.clock.move(minutes=6)
    world.beat(attempt, "setting_up")
    world.check_launch(lost.job_id, attempt.cedana_id)
    assert not world.attempt(lost).is_gone
    world.clock.move(minutes=6)
    world.check_launch(lost.job_id, attempt.cedana_id)
    assert world.attempt(lost).is_gone
    assert world.attempt(lost).billed_until == world.attempt(lost).last_seen
    assert world.state(lost) is JobState.PENDING


def test_a_machine_that_left_before_its_id_was_heard_of_is_billed_until_its_last_word(world: World, lost: Job) -> None:
    """Its agent gave the job back and switched it off; the cloud does not show it any more."""
    attempt = world.attempt(lost)
    world.hello(attempt)
    world.clock.move(minutes=1)
    world.report(attempt, "released", reason="instance_termination")
    left_at = world.attempt(lost).released_at
    world.cloud.terminate(attempt.cedana_id)
    world.clock.move(minutes=20)
    world.destroy_instance(lost.job_id, attempt.cedana_id)
    gone = world.attempt(lost, 0)
    assert gone.is_gone
    assert gone.billed_until == left_at
    assert "no machine was ever made" not in world.messages(lost)[-1]
