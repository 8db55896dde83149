"""A kill at a random byte of a checkpoint: the last good one stays in force, and no restore is from a partial one."""

import random
from pathlib import Path

import pytest

from spotferry.agent.errors import AgentError
from spotferry.agent.plan import Options
from spotferry.usecases import take_archive
from tests.unit.agent.in_process import Agent, Wire, connect
from tests.unit.usecases.world import World

RUNS = 1000
CALL_BYTES = 300
"""A call counts like so many bytes, so that kills fall between calls as well."""


class KilledError(AgentError):
    """The machine is gone."""


class Death:
    """Lets so many bytes through, and nothing after that."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, size: int) -> None:
        """Some bytes, or a call."""
        self.left -= size or CALL_BYTES
        if self.left < 0:
            raise KilledError("killed")


@pytest.mark.parametrize("options", [Options(), Options(paths=("a", "d"))], ids=["workdir", "paths"])
def test_a_kill_at_any_byte_leaves_the_last_good_checkpoint(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: Options
) -> None:
    """A thousand times, seeded: what is restored is the newest committed state, bit for bit, and no other."""
    monkeypatch.setattr(take_archive, "CHUNKS", ((10_000, 700),))
    monkeypatch.setattr(take_archive, "FIRST_ADDRESSES", 3)
    chance = random.Random(11)  # noqa: S311  (a seed, so that a failure repeats)
    world = World()
    _, attempt = world.running()
    wire = connect(monkeypatch, Wire(world, attempt))
    agent, other = Agent(tmp_path / "m", wire, options), Agent(tmp_path / "other", wire, options)
    good, number, killed = {}, 0, 0
    for run in range(RUNS // 2):
        (agent.work / "a").write_bytes(chance.randbytes(chance.randrange(1, 3000)))
        (agent.work / "d").mkdir(exist_ok=True)
        (agent.work / "d" / f"f{run % 5}").write_bytes(chance.randbytes(500))
        wire.lost = Death(chance.randrange(6000))
        try:
            number = agent.checkpoint()
            good = agent.files()
        except KilledError:
            killed += 1
        wire.lost = lambda _: None
        assert world.job(world.store.get_job(attempt.job_id)).checkpoint == number
        if number:
            assert other.restore() == (number, "")
            assert other.files() == good
    assert RUNS / 8 < killed < RUNS / 2 * 0.95
