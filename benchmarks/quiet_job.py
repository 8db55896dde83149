"""What an hour of a quiet job costs in requests: the broker's own pacing, followed to the second by its agent."""

from collections.abc import Iterable

from benchmarks.report import Measurement
from tests.unit.usecases.world import World

HOUR_SECONDS = 3600.0
AT_MOST = 70


def measure() -> Iterable[Measurement]:
    """Requests in the first hour of a job that runs quietly and that nobody watches, checkpoints aside."""
    world = World()
    _, attempt = world.launched()
    told = [world.hello(attempt), world.report(attempt, "setup_finished", seconds=1)]
    told.append(world.report(attempt, "task_started", restored_from=None))
    elapsed = 0.0
    while elapsed < HOUR_SECONDS:
        pause = float(told[-1]["heartbeat_seconds"])
        world.later(seconds=pause)
        elapsed += pause
        told.append(world.beat(attempt))
    yield Measurement("quiet job", "requests in its first hour", len(told), "requests", AT_MOST)
