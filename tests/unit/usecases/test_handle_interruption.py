"""A cloud says something about a machine: heard once, however often and in whatever order it is said."""

from datetime import timedelta

import pytest

from spotferry.domain.view import PlaceJob
from spotferry.types import InvalidInput, JobState
from spotferry.types.events import Notice, NoticeKind, ProviderEvent
from spotferry.usecases.handle_interruption import Heard
from tests.fakes import QueueAwayError
from tests.unit.usecases.world import World, state_change, warning


def test_a_warning_interrupts_the_job_and_asks_for_its_successor(world: World) -> None:
    """The owner is told to release with its deadline recorded, and a placement is asked for at once."""
    job, attempt = world.running()
    assert world.interruption(warning(attempt)) == [Heard.ACTED]
    assert world.state(job) is JobState.INTERRUPTED
    assert world.attempt(job).notice_deadline == world.clock.now + timedelta(minutes=2)
    assert world.queue.waiting == [PlaceJob(job.job_id)]
    assert world.job(job).interruptions == 1
    assert world.beat(attempt)["directive"] == {"kind": "release", "reason": "instance_termination"}


def test_a_warning_teaches_the_market(world: World) -> None:
    """The pool that took a machine back is left alone by all jobs for a quarter of an hour."""
    _, attempt = world.running()
    world.interruption(warning(attempt))
    pool = "us-east-1/us-east-1a/t3.small"
    assert world.store.bans(["aws"], world.clock()) == {("aws", "spot"): [pool]}
    world.clock.move(minutes=15, seconds=1)
    assert world.store.bans(["aws"], world.clock()) == {}


def test_a_warning_that_comes_twice_is_one(world: World) -> None:
    """The second saves nothing and counts nothing; it sends what is still owed, so that nothing is lost."""
    job, attempt = world.running()
    world.interruption(warning(attempt))
    revision = world.job(job).revision
    world.queue.take()
    assert world.interruption(warning(attempt)) == [Heard.ACTED]
    assert world.job(job).revision == revision
    assert world.queue.waiting == [PlaceJob(job.job_id)]
    world.perform()
    assert len(world.cloud.machines) == 2


def test_a_queue_that_was_away_is_healed_by_the_redelivery(world: World) -> None:
    """Saved but not sent: the bus delivers again, and the successor is asked for."""
    job, attempt = world.running()
    world.queue.fail()
    with pytest.raises(QueueAwayError):
        world.interruption(warning(attempt))
    assert world.state(job) is JobState.INTERRUPTED
    world.interruption(warning(attempt))
    world.perform()
    assert world.job(job).successor_id is not None


def test_a_warning_meets_a_save_by_somebody_else(world: World) -> None:
    """A conflict is decided again on the new version, and the notice is counted once."""
    job, attempt = world.running()
    world.store.conflict_saves(2)
    world.interruption(warning(attempt))
    assert world.job(job).interruptions == 1


def test_a_machine_that_nobody_knows_is_told_so(world: World) -> None:
    """An id without a record changes nothing; the caller may try once more."""
    job, attempt = world.running()
    assert world.interruption(warning(attempt, "i-0fedcba9876543210")) == [Heard.UNKNOWN]
    assert world.state(job) is JobState.RUNNING


def test_a_warning_before_the_launch_was_answered_is_heard_the_second_time(world: World) -> None:
    """The event overtakes the launch's answer: unknown first, acted upon once the answer is saved."""
    world.cloud.lose_answer()
    job = world.submit()
    world.create_instance(job.job_id)
    attempt = world.attempt(job)
    allocated_id = world.cloud.machines[attempt.cedana_id].allocated_id
    assert world.interruption(warning(attempt, allocated_id)) == [Heard.UNKNOWN]
    world.let_answers_come()
    world.check_launch(job.job_id, attempt.cedana_id)
    assert world.interruption(warning(attempt, allocated_id)) == [Heard.ACTED]
    assert world.state(job) is JobState.INTERRUPTED


@pytest.mark.parametrize("kind", ["EC2 Instance Rebalance Recommendation", "Some New Kind Of Event"])
def test_forecasts_and_unknown_kinds_change_nothing(world: World, kind: str) -> None:
    """A recommendation, or a kind that no cloud here knows, leaves the job running."""
    job, attempt = world.running()
    heard = world.interruption({**warning(attempt), "detail-type": kind})
    assert heard in ([Heard.NOTHING_TO_DO], [])
    assert world.state(job) is JobState.RUNNING


@pytest.mark.parametrize("detail", [None, {}, {"instance-id": 7}, {"instance-id": "i-1", "instance-action": 7}])
def test_a_known_kind_that_is_malformed_is_refused(world: World, detail: object) -> None:
    """The error names the field, and nothing changes."""
    job, attempt = world.running()
    with pytest.raises(InvalidInput, match="detail"):
        world.interruption({**warning(attempt), "detail": detail})
    assert world.state(job) is JobState.RUNNING


@pytest.mark.parametrize("state", ["stopping", "shutting-down"])
def test_a_machine_that_begins_to_stop_is_lost(world: World, state: str) -> None:
    """A machine that is only stopped never comes back to its job."""
    job, attempt = world.running()
    world.interruption(state_change(attempt, state))
    assert world.state(job) is JobState.INTERRUPTED
    assert world.store.bans(["aws"], world.clock()) == {}


@pytest.mark.parametrize("state", ["pending", "running"])
def test_a_machine_that_comes_up_is_no_news(world: World, state: str) -> None:
    """States on the way up change nothing."""
    job, attempt = world.running()
    assert world.interruption(state_change(attempt, state)) == [Heard.NOTHING_TO_DO]
    assert world.state(job) is JobState.RUNNING


def test_a_machine_that_is_gone_passes_the_job_on(world: World) -> None:
    """The end of the owner gives the job to the successor that waits."""
    job, owner, successor = world.interrupted()
    world.interruption(state_change(owner, "terminated"))
    assert world.job(job).owner_id == successor.cedana_id
    assert world.state(job) is JobState.PROVISIONING
    assert world.job(job).interruptions == 1


def test_events_out_of_order_end_the_same(world: World) -> None:
    """Gone first, then the warning, then the shutting-down: one interruption, one new machine."""
    job, attempt = world.running()
    world.interruption(state_change(attempt, "terminated"))
    world.perform()
    revision = world.job(job).revision
    world.interruption(warning(attempt))
    world.interruption(state_change(attempt, "shutting-down"))
    world.interruption(state_change(attempt, "terminated"))
    world.perform()
    assert world.job(job).revision == revision
    assert world.job(job).interruptions == 1
    assert len(world.cloud.machines) == 2


def test_a_machine_that_ends_on_our_order_is_no_interruption(world: World) -> None:
    """The bus tells of every machine that shuts down: of one that the broker ends, it is no news."""
    job, attempt = world.running()
    world.steer.end_machine(attempt.cedana_id, "ann")
    for state in ("shutting-down", "terminated"):
        world.interruption(state_change(attempt, state))
    assert world.job(job).interruptions == 0
    assert not any("takes the machine back" in message for message in world.messages(job))


def test_the_end_of_a_finished_jobs_machine_settles_it(world: World) -> None:
    """The last event about a job that is over only closes its machine."""
    job, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    world.interruption(warning(attempt))
    world.interruption(state_change(attempt, "terminated"))
    assert world.state(job) is JobState.DONE
    assert world.job(job).is_settled
    assert world.job(job).interruptions == 0


def test_a_notice_without_a_region_names_the_machine_by_our_own_id(world: World) -> None:
    """Where a cloud tells no region, its machine is called by our id; another cloud's, or nobody's, is unknown."""
    world.cloud.names_by_token = True
    job, attempt = world.running()
    event = ProviderEvent(instance_id=attempt.cedana_id, fault_code="Preempted", marked_for_termination=True)
    notice = Notice(kind=NoticeKind.TAKE_BACK, provider="aws", region="", event=event)
    nobody = event.model_copy(update={"instance_id": "i-nobody"})
    assert world.interruption.hear(notice.model_copy(update={"event": nobody})) is Heard.UNKNOWN
    assert world.interruption.hear(notice.model_copy(update={"provider": "gcp"})) is Heard.UNKNOWN
    assert world.interruption.hear(notice) is Heard.ACTED
    assert world.state(job) is JobState.INTERRUPTED


def test_our_own_id_is_no_name_of_a_machine_that_has_another(world: World) -> None:
    """Of a machine that its cloud named itself, such a notice is about somebody else."""
    _, attempt = world.running()
    event = ProviderEvent(instance_id=attempt.cedana_id, fault_code="Preempted", marked_for_termination=True)
    notice = Notice(kind=NoticeKind.TAKE_BACK, provider="aws", region="", event=event)
    assert world.interruption.hear(notice) is Heard.UNKNOWN
