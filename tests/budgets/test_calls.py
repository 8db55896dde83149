"""How much a call costs: reads, writes, messages and questions to clouds."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.usecases.world import World

METHODS = (
    "create_job",
    "get_job",
    "load",
    "save",
    "list_jobs",
    "unsettled_jobs",
    "get_attempt",
    "find_attempt",
    "attempts_of",
    "living_attempts",
    "bind_agent",
    "touch_attempt",
    "watch_job",
    "watched_until",
    "timeline",
    "checkpoints",
    "ban",
    "bans",
    "used_regions",
    "sightings",
    "note_sighting",
)
WRITES = {"create_job", "save", "bind_agent", "touch_attempt", "watch_job", "ban", "note_sighting"}


@pytest.fixture
def world() -> World:
    """A deployment of the test's own."""
    return World()


def calls(world: World, act: Callable[[], object]) -> Counter[str]:
    """How often each method of the store is called while this happens.

    A save that has nothing to write is none, and what the store calls of its own is its own affair.
    """
    counted: Counter[str] = Counter()
    store: Any = world.store
    with pytest.MonkeyPatch.context() as patch:
        for name in METHODS:
            patch.setattr(store, name, _counting(name, getattr(store, name), counted))
        act()
    return +counted


def _counting(name: str, method: Callable[..., object], counted: Counter[str]) -> Callable[..., object]:
    def call(*args: Any, **options: Any) -> object:
        within = bool(counted["within"])
        if not within and (name != "save" or args[1].entry is not None):
            counted[name] += 1
        counted["within"] += 1
        try:
            return method(*args, **options)
        finally:
            counted["within"] -= 1

    return call


def writes(counted: Counter[str]) -> int:
    """How many of the calls write."""
    return sum(number for name, number in counted.items() if name in WRITES)


def test_a_poll_in_which_nothing_changed_writes_nothing(world: World) -> None:
    """Ten running jobs: no write, no message, one read a job, one look-up and one listing of the region."""
    for _ in range(10):
        world.running()
    sent, objects = len(world.queue.sent), len(world.objects.puts)
    world.cloud.calls.clear()
    world.clock.move(minutes=8)
    counted = calls(world, lambda: world.reap(world.poll().attempts))
    assert writes(counted) == 0
    assert counted == {"unsettled_jobs": 1, "load": 10, "used_regions": 1}
    assert (len(world.queue.sent), len(world.objects.puts)) == (sent, objects)
    assert (world.cloud.calls["describe"], world.cloud.calls["owned"]) == (1, 1)


def test_an_idle_minute_is_two_reads_and_no_question(world: World) -> None:
    """No job: what is not over, and where machines ever were; of those regions one is listed every ten minutes."""
    job, attempt = world.running()
    world.report(attempt, "task_exited", exit_code=0)
    world.perform()
    world.cloud.finish_ending()
    world.poll()
    assert world.job(job).is_settled
    for _ in range(60):
        world.clock.move(minutes=1)
        world.reap(world.poll().attempts)
    world.cloud.calls.clear()
    counted: Counter[str] = Counter()
    for _ in range(60):
        world.clock.move(minutes=1)
        counted += calls(world, lambda: world.reap(world.poll().attempts))
    assert counted == {"unsettled_jobs": 60, "used_regions": 60}
    assert world.cloud.calls == {"owned": 6, "owned:us-east-1": 6}


def test_a_quiet_heartbeat_is_one_small_write_and_three_reads(world: World) -> None:
    """Who speaks, the job, whether somebody watches; and when the agent was seen."""
    _, attempt = world.running()
    objects = len(world.objects.puts)
    counted = calls(world, lambda: world.beat(attempt))
    assert counted == {"get_attempt": 1, "touch_attempt": 1, "load": 1, "watched_until": 1}
    assert len(world.objects.puts) == objects


def test_a_quiet_job_calls_seventy_times_an_hour_at_most(world: World) -> None:
    """Heartbeats at the pace that the broker asks for, while nobody watches."""
    _, attempt = world.running()
    end, beats = world.clock.now.timestamp() + 3600, 0
    while world.clock.now.timestamp() < end:
        world.clock.move(seconds=world.beat(attempt)["heartbeat_seconds"])
        beats += 1
    assert beats <= 70


def test_a_submission_is_one_write_and_one_message(world: World) -> None:
    """Bans are read, the job is written, the placement is asked for."""
    counted = calls(world, world.submit)
    assert counted == {"bans": 1, "create_job": 1}
    assert len(world.queue.sent) == 1


def test_a_placement_saves_intent_and_answer(world: World) -> None:
    """Two saves, one launch call, no look-up."""
    job = world.submit()
    counted = calls(world, lambda: world.create_instance(job.job_id))
    assert counted["save"] == writes(counted) == 2
    assert {name: world.cloud.calls[name] for name in ("prepare", "create", "find", "describe")} == {
        "prepare": 1,
        "create": 1,
        "find": 0,
        "describe": 0,
    }


def test_a_notice_is_one_save_one_ban_and_one_message(world: World) -> None:
    """Between the notice and the successor's placement stands nothing else."""
    _, attempt = world.running()
    sent = len(world.queue.sent)
    counted = calls(world, lambda: world.report(attempt, "notice", kind="take_back", code="terminate"))
    assert (counted["save"], counted["ban"], writes(counted)) == (1, 1, 2)
    assert len(world.queue.sent) == sent + 1
