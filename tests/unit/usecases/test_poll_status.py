"""The sweep: asks the clouds, repairs what was lost, writes nothing where nothing changed."""

from datetime import timedelta

import pytest

from spotferry.domain.view import Policy
from spotferry.types import JobState, Misconfigured, NotFound, ProviderEvent, ProviderUnavailable, SpotferryError
from tests.fakes import FakeCatalogue, an_offer
from tests.unit.usecases.world import World


def test_nothing_changed_writes_nothing_and_asks_each_region_once(world: World) -> None:
    """Three quiet jobs in two regions cost two listings and no write."""
    world.running()
    world.running()
    world.running(instance_specs={"regions": ["eu-west-1"]})
    saves, touches, sent = world.store.saves, world.store.touches, len(world.queue.sent)
    world.cloud.calls.clear()
    polled = world.poll()
    assert (world.store.saves, world.store.touches, len(world.queue.sent)) == (saves, touches, sent)
    assert world.cloud.calls["describe"] == 2
    assert world.cloud.calls["describe:us-east-1"] == world.cloud.calls["describe:eu-west-1"] == 1
    assert polled.to_json() == {"jobs": 3, "machines": 3, "events": {}, "effects": 0, "problems": []}


def test_settled_jobs_are_not_looked_at(world: World) -> None:
    """A job that is over and whose machine is gone costs a poll nothing."""
    _, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    world.cloud.calls.clear()
    assert world.poll().jobs == 0
    assert world.cloud.calls == {}


def test_a_stale_index_does_no_harm(world: World) -> None:
    """A settled job that the index still shows is loaded, and let be; one that is missing is passed over."""
    job, attempt = world.running()
    world.store.freeze_indexes()
    world.report(attempt, "task_exited", exit_code=0)
    world.cloud.terminate(attempt.cedana_id)
    world.poll()
    assert world.job(job).is_settled
    saves = world.store.saves
    assert world.poll().jobs == 0
    assert world.store.saves == saves


def test_a_job_that_vanished_is_passed_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id of the index without a record stops nothing."""
    world.running()
    monkeypatch.setattr(world.store, "unsettled_jobs", lambda: iter(["j-none"]))
    with pytest.raises(NotFound):
        world.store.load("j-none")
    assert world.poll().jobs == 0


def test_a_machine_that_is_gone_passes_its_job_on(world: World) -> None:
    """A machine that ended unannounced is an interruption: its job waits for another, and gets it."""
    job, attempt = world.running()
    world.cloud.terminate(attempt.cedana_id)
    polled = world.poll()
    assert polled.events == {"MachineGone": 1}
    assert world.state(job) is JobState.PENDING
    assert world.job(job).interruptions == 1
    assert "Server.SpotInstanceTermination" in world.job(job).reason
    world.perform()
    assert world.state(job) is JobState.PROVISIONING
    assert world.job(job).epoch == 2


@pytest.mark.parametrize("state", ["stopping", "shutting-down"])
def test_a_machine_that_is_stopping_is_lost(world: World, state: str) -> None:
    """A machine that begins to stop never comes back: its job looks for another while it can still be saved."""
    job, attempt = world.running()
    world.cloud.set_state(attempt.cedana_id, state, "Server.SpotInstanceStop")
    world.poll()
    assert world.state(job) is JobState.INTERRUPTED
    assert world.beat(attempt)["directive"]["kind"] == "release"
    world.perform()
    assert world.job(job).successor_id is not None


def test_an_announcement_that_was_missed_on_the_bus_is_found(world: World) -> None:
    """What the cloud has announced is heard by the poll, with its deadline; the second time it is no news."""
    job, attempt = world.running()
    deadline = world.clock.now + timedelta(minutes=2)
    world.cloud.statuses[attempt.cedana_id] = ProviderEvent(
        instance_id=attempt.allocated_id,
        fault_code="marked-for-termination",
        marked_for_termination=True,
        termination_time=int(deadline.timestamp()),
    )
    world.poll()
    assert world.state(job) is JobState.INTERRUPTED
    assert world.attempt(job, 0).notice_deadline == deadline
    saves = world.store.saves
    assert world.poll().events == {}
    assert world.store.saves == saves


def test_an_announcement_of_nothing_is_nothing(world: World) -> None:
    """A status without a take-back leaves the job running."""
    job, attempt = world.running()
    world.cloud.statuses[attempt.cedana_id] = ProviderEvent(instance_id=attempt.allocated_id, fault_code="fulfilled")
    world.poll()
    assert world.state(job) is JobState.RUNNING


def test_a_machine_that_ends_on_our_order_is_no_interruption(world: World) -> None:
    """What the broker itself ends is not taken for the cloud's doing."""
    job, attempt = world.running()
    world.steer.end_machine(attempt.cedana_id, "ann")
    world.perform()
    world.poll()
    world.cloud.finish_ending()
    world.poll()
    assert world.job(job).interruptions == 0


def test_one_failing_region_does_not_stop_the_others(world: World) -> None:
    """The region that fails is named, proves nothing about its machines, and the others are looked at."""
    away, _ = world.running()
    gone, attempt = world.running(instance_specs={"regions": ["eu-west-1"]})
    world.cloud.dead_regions["us-east-1"] = ProviderUnavailable("Timeout", "no answer")
    world.cloud.terminate(attempt.cedana_id)
    polled = world.poll()
    assert polled.problems == ["aws us-east-1: Timeout: no answer"]
    assert world.state(away) is JobState.RUNNING
    assert world.state(gone) is JobState.PENDING


def test_a_cloud_that_is_not_here_any_more_does_not_stop_the_others(world: World) -> None:
    """A machine of a cloud that this deployment lost is reported, and the rest is looked at."""
    lost, attempt = world.running()
    gone, other = world.running(instance_specs={"regions": ["eu-west-1"]})
    world.cloud.dead_regions["us-east-1"] = Misconfigured("there is no provider 'aws'")
    world.cloud.terminate(other.cedana_id)
    assert len(world.poll().problems) == 1
    assert world.state(gone) is JobState.PENDING
    assert world.state(lost) is JobState.RUNNING
    assert not attempt.is_gone


@pytest.mark.parametrize("error", [SpotferryError("no"), ValueError("a bug")])
def test_one_failing_job_does_not_stop_the_others(world: World, error: Exception) -> None:
    """Whatever goes wrong with one job is reported by its id; the others are repaired."""
    first, one = world.running()
    second, two = world.running()
    world.cloud.terminate(one.cedana_id)
    world.cloud.terminate(two.cedana_id)
    world.store.fail_saves(error)
    polled = world.poll()
    assert polled.problems == [f"job {first.job_id}: {type(error).__name__}: {error}"]
    assert world.state(second) is JobState.PENDING


def test_a_wait_that_is_not_over_is_not_shortened(world: World) -> None:
    """A poll does not place a job before its next try."""
    world.store.ban("aws", "spot", "*/*/*", world.clock.now.replace(year=2027), "all is taken")
    job = world.submit()
    world.perform()
    sent = len(world.queue.sent)
    world.poll()
    assert len(world.queue.sent) == sent
    assert world.job(job).tries == 1


def test_a_poll_that_failed_to_send_sends_at_the_next(world: World) -> None:
    """A queue that is away during a poll costs one poll."""
    world.submit()
    world.queue.take()
    world.queue.fail()
    assert "QueueAwayError" in world.poll().problems[0]
    assert world.poll().effects == 1


def test_a_machine_that_does_not_show_yet_is_not_given_up(world: World) -> None:
    """A listing that does not show a new machine yet says nothing about it."""
    world.cloud.hidden = True
    job, _ = world.launched()
    world.poll()
    assert world.state(job) is JobState.PROVISIONING


def test_the_deployment_decides_about_patience() -> None:
    """The policy of the store's views is what time is measured by."""
    world = World(Policy(silence=timedelta(seconds=5), overlap=False))
    job, _ = world.running()
    world.later(seconds=6)
    world.perform()
    assert world.state(job) is JobState.INTERRUPTED
    assert world.job(job).epoch == 1
    world.cloud.finish_ending()
    world.poll()
    world.perform()
    assert world.job(job).epoch == 2


def test_five_hundred_machines_are_one_listing() -> None:
    """The cloud is asked by region, whatever the number of jobs."""
    world = World()
    world.catalogue = FakeCatalogue([an_offer("t3.small", "us-east-1a", "0.01")])
    for _ in range(50):
        world.launched()
    world.cloud.calls.clear()
    world.poll()
    assert world.cloud.calls["describe"] == 1
