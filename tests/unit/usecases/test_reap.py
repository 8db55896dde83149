"""The reaper: ends what nobody owns, after two looks, and nothing else."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from spotferry.domain.view import Policy
from spotferry.store.memory import MemoryStore
from spotferry.types import Attempt, Job, Misconfigured, NotYet, ProviderUnavailable, TryNextZone
from spotferry.usecases.reap import ENDING, REMEMBERED, Reap, Reaped
from spotferry.usecases.reap_rounds import Rounds
from tests.unit.usecases.world import World

OLD = Policy().visibility


def look(world: World, **later: float) -> Reaped:
    """One poll with its look, so much later."""
    world.clock.move(**(later or {"minutes": 1}))
    return world.reap(world.poll().attempts)


def lose_records(world: World, attempt: Attempt) -> None:
    """The machine's records are gone, as after a table was put back to an earlier time; the register is not."""
    tables = world.store._tables
    for kept in (tables.attempts, tables.allocated):
        kept.clear()
    tables.jobs.pop(attempt.job_id)


@pytest.fixture
def orphan(world: World) -> Attempt:
    """A machine that is old enough and that no record knows."""
    _, attempt = world.running()
    lose_records(world, attempt)
    world.clock.move(seconds=OLD.total_seconds())
    return attempt


def test_a_machine_without_a_record_is_ended_at_the_second_look(world: World, orphan: Attempt) -> None:
    """Seen once it is noted, seen twice it is ended, with the reason; while it ends it is let be."""
    first = look(world)
    assert (first.machines, first.ownerless, first.ended, world.cloud.destroyed) == (1, 1, [], [])
    second = look(world)
    assert second.ended == [f"aws us-east-1 {orphan.allocated_id}: there is no record of it"]
    assert world.cloud.destroyed == [orphan.cedana_id]
    assert (look(world).ended, world.cloud.destroyed) == ([], [orphan.cedana_id])
    world.cloud.finish_ending()
    assert look(world).machines == 0


def test_a_machine_that_does_not_come_to_its_end_is_ended_again(world: World, orphan: Attempt) -> None:
    """An order that the cloud took and forgot is repeated, once it has had its time."""
    assert [len(look(world).ended) for _ in range(7)] == [0, 1, 0, 0, 0, 1, 1]
    assert set(world.cloud.destroyed) == {orphan.cedana_id}
    assert timedelta(minutes=5) == ENDING


def test_a_restart_between_the_looks_loses_nothing(world: World, orphan: Attempt) -> None:
    """The first look is in the store, not in the process."""
    look(world)
    again = Reap(world.store, world.clouds, world.clock, OLD, Rounds())
    world.clock.move(minutes=1)
    assert len(again({}).ended) == 1
    assert world.cloud.destroyed == [orphan.cedana_id]


def test_a_poll_that_was_delivered_twice_is_one(world: World, orphan: Attempt) -> None:
    """Two looks within seconds prove no more than one."""
    look(world)
    assert look(world, seconds=5).ended == []
    assert len(look(world, seconds=30).ended) == 1
    assert world.cloud.destroyed == [orphan.cedana_id]


@pytest.mark.usefixtures("orphan")
def test_looks_that_lie_far_apart_are_no_proof(world: World) -> None:
    """A first look counts for a quarter of an hour; after that the machine is seen for the first time again."""
    look(world)
    assert look(world, seconds=REMEMBERED.total_seconds()).ended == []
    assert len(look(world).ended) == 1


def test_a_machine_whose_attempt_was_closed_is_ended(world: World) -> None:
    """A machine that shows up after its attempt was given up belongs to nobody, whatever its job does now."""
    world.cloud.hidden = True
    for _ in range(2):
        world.cloud.lose_answer()
    job = world.submit()
    world.perform()
    world.steer("cancel", job.job_id, "ann")
    for _ in range(2):
        world.later(seconds=OLD.total_seconds())
        world.perform()
    assert world.job(job).is_settled
    world.cloud.hidden = False
    look(world)
    assert "was closed at" in look(world).ended[0]
    assert world.cloud.living() == []


def test_a_second_machine_of_one_attempt_is_ended(world: World) -> None:
    """A cloud that sold two for one token keeps the one that the record names."""
    _, attempt = world.running()
    world.cloud.machines["twin"] = world.cloud.machines[attempt.cedana_id].model_copy(update={"allocated_id": "i-twin"})
    destroyed: list[str] = []
    look(world, seconds=OLD.total_seconds())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.cloud), "destroy_instance", lambda _, m: destroyed.append(m.allocated_id))
        assert "has another machine" in look(world).ended[0]
    assert destroyed == ["i-twin"]


def _launched(world: World) -> object:
    return world.launched()


def _unanswered(world: World) -> object:
    world.cloud.lose_answer()
    return world.launched()


def _cancelled(world: World) -> object:
    job, _ = world.running()
    return world.steer("cancel", job.job_id, "ann")


def _over(world: World) -> object:
    _, attempt = world.running()
    world.cloud.refuse(ProviderUnavailable("Timeout", "no answer"), times=99, on="destroy")
    return world.report(attempt, "task_exited", exit_code=0)


@pytest.mark.parametrize(
    "state", [_launched, _unanswered, World.set_up, World.running, World.interrupted, _cancelled, _over]
)
def test_a_machine_with_an_owner_is_left_to_its_job(world: World, state: Callable[[World], object]) -> None:
    """From the intent to the confirmed end, whatever its state, also where the poll could not read its job."""
    state(world)
    world.clock.move(seconds=OLD.total_seconds())
    for _ in range(4):
        world.clock.move(minutes=1)
        reaped = world.reap({})
        assert (reaped.regions, reaped.ownerless, reaped.problems) == (1, 0, [])
        assert reaped.machines > 0
    assert world.cloud.destroyed == []


def test_a_stale_index_does_no_harm(world: World) -> None:
    """A job that no index shows yet keeps its machine: its record is read by its key."""
    world.store.freeze_indexes()
    _, attempt = world.running()
    polled = world.poll()
    assert polled.attempts == {}
    for _ in range(3):
        assert look(world, seconds=OLD.total_seconds()).ownerless == 0
    assert attempt.cedana_id in world.cloud.living()


def test_a_young_machine_is_left_alone(world: World) -> None:
    """Neither ended nor noted before it would be shown everywhere."""
    _, attempt = world.running()
    lose_records(world, attempt)
    for _ in range(int(OLD / timedelta(minutes=1)) - 1):
        assert look(world).ownerless == 0
    assert world.store.sightings("aws", "us-east-1", world.clock()) == {}
    assert [len(look(world).ended) for _ in range(2)] == [0, 1]


def test_a_machine_of_unknown_age_is_as_old_as_its_first_look(world: World, orphan: Attempt) -> None:
    """A cloud that does not say when it made a machine gives it the same time."""
    machine = world.cloud.machines[orphan.cedana_id]
    world.cloud.machines[orphan.cedana_id] = machine.model_copy(update={"created_at": None})
    minutes = int(OLD / timedelta(minutes=1))
    assert [len(look(world).ended) for _ in range(minutes + 1)] == [0] * minutes + [1]


def test_a_record_that_comes_back_saves_the_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both looks have to find no owner."""
    _, attempt = world.running()
    world.clock.move(seconds=OLD.total_seconds())
    with monkeypatch.context() as patch:
        patch.setattr(world.store, "_tables", MemoryStore()._tables)
        world.clock.move(minutes=1)
        assert world.reap({}).ownerless == 1
    assert look(world).ownerless == 0
    assert attempt.cedana_id in world.cloud.living()


def test_a_listing_that_is_cut_short_ends_nothing_that_it_does_not_show(world: World, orphan: Attempt) -> None:
    """What came before the cut is judged by its records; what did not come is not missed."""
    job, attempt = world.running()
    whole = list(world.cloud.owned_instances("us-east-1"))
    assert len(whole) == 2

    def cut(_: object, region: str) -> Iterator[Attempt]:
        assert region == "us-east-1"
        yield from [m for m in whole if m.cedana_id == orphan.cedana_id]
        raise ProviderUnavailable("Timeout", "the second page did not come")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.cloud), "owned_instances", cut)
        first, second = look(world), look(world)
    assert first.problems == ["aws us-east-1: Timeout: the second page did not come"]
    assert (first.regions, second.regions) == (0, 0)
    assert world.cloud.destroyed == [orphan.cedana_id]
    assert world.job(job).open_attempts == (attempt.cedana_id,)
    assert attempt.cedana_id in world.cloud.living()


@pytest.mark.parametrize(
    "error", [ProviderUnavailable("Timeout", "no answer"), Misconfigured("there is no provider 'aws'")]
)
def test_one_failing_region_does_not_stop_the_others(
    world: World, orphan: Attempt, error: ProviderUnavailable | Misconfigured
) -> None:
    """The region that fails is named; the others are looked at."""
    world.running(instance_specs={"regions": ["eu-west-1"]})
    world.cloud.dead_regions["eu-west-1"] = error
    look(world)
    second = look(world)
    assert second.problems == [f"aws eu-west-1: {error}"]
    assert len(second.ended) == second.regions == 1
    assert world.cloud.destroyed == [orphan.cedana_id]


def test_a_cloud_that_went_out_of_use_is_told(world: World, orphan: Attempt) -> None:
    """A region whose cloud this deployment has no more is a problem at every poll, and no silence."""
    del world.clouds.by_name["aws"]
    assert "there is no provider 'aws'" in look(world).problems[0]
    assert orphan.cedana_id in world.cloud.living()


def test_a_region_that_was_closed_is_still_looked_at(world: World, orphan: Attempt) -> None:
    """What was ever used counts, not what is open now."""
    world.regions.settings = []
    look(world)
    look(world)
    assert world.cloud.destroyed == [orphan.cedana_id]


def test_tables_that_know_nothing_end_nothing(world: World) -> None:
    """A deployment that is pointed at empty tables does not take its machines for nobody's."""
    world.running()
    empty = Reap(MemoryStore(), world.clouds, world.clock, OLD, Rounds())
    world.cloud.calls.clear()
    for _ in range(3):
        world.clock.move(minutes=10)
        assert empty({}) == Reaped()
    assert world.cloud.calls == {}


def test_an_end_that_the_cloud_does_not_take_is_ordered_again(world: World, orphan: Attempt) -> None:
    """It is told as a problem, and the next poll repeats it."""
    world.cloud.refuse(TryNextZone("Throttled", "too many calls"), on="destroy")
    look(world)
    second = look(world)
    assert (second.ended, len(second.problems)) == ([], 1)
    assert orphan.allocated_id in second.problems[0]
    assert len(look(world).ended) == 1


def test_a_record_that_cannot_be_read_says_nothing(world: World, orphan: Attempt) -> None:
    """A database that is away makes no machine ownerless; the machine is named, the region goes on."""
    with pytest.MonkeyPatch.context() as patch:

        def away(_: str) -> Attempt:
            raise NotYet("the database is busy", timedelta(seconds=5))

        patch.setattr(world.store, "get_attempt", away)
        reaped = look(world)
        assert (reaped.regions, reaped.ownerless) == (1, 0)
        assert reaped.problems == [f"aws us-east-1 {orphan.allocated_id}: the database is busy"]
        assert look(world).ended == []
    assert world.cloud.destroyed == []


def test_a_bug_in_one_region_is_told(world: World, orphan: Attempt) -> None:
    """Whatever is raised names its kind and region."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.cloud), "owned_instances", lambda _, region: iter([region]))
        assert "AttributeError" in look(world).problems[0]
    assert orphan.cedana_id in world.cloud.living()


def test_when_the_time_is_up_the_next_poll_begins_with_the_rest(world: World) -> None:
    """Slow clouds cost a look, not the function: every region has its turn."""

    def run(region: str) -> Job:
        return world.running(instance_specs={"regions": [region]})[0]

    jobs = [run("us-east-1"), run("eu-west-1")]
    assert len(jobs) == 2

    def slowly(cloud: object, region: str) -> Iterator[Attempt]:
        assert cloud is world.cloud
        world.clock.move(seconds=20)
        world.cloud.calls[f"slow:{region}"] += 1
        return iter(())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.cloud), "owned_instances", slowly)
        first, second = look(world), look(world)
    assert [reaped.regions for reaped in (first, second)] == [1, 1]
    assert "1 regions to list" in first.problems[0]
    assert world.cloud.calls["slow:us-east-1"] == world.cloud.calls["slow:eu-west-1"] == 1


def test_where_all_is_as_it_should_be_nothing_is_written(world: World) -> None:
    """Quiet machines cost a listing of their region and no read of their records."""
    world.running()
    world.running(instance_specs={"regions": ["eu-west-1"]})
    world.clock.move(minutes=8)
    polled = world.poll()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("get_attempt", "find_attempt", "get_job", "sightings", "note_sighting", "save"):
            patch.setattr(world.store, name, None)
        assert world.reap(polled.attempts) == Reaped(regions=2, machines=2)
