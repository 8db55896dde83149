"""What always holds (DESIGN 4), under everything that can go wrong; `make simulate` runs it wider."""

from collections import Counter
from pathlib import Path

import pytest

from tests.contract.emulated_tables import CREDENTIALS, emulator
from tests.simulation import run
from tests.simulation.faults import KINDS
from tests.simulation.invariants import INVARIANTS
from tests.simulation.mutations import MUTATIONS
from tests.simulation.world import World

SEEDS = 240
BATCHES = 8
CAUGHT_WITHIN = 1000
"""Seeds within which each mistake must be seen; the rarest shows in one of a hundred."""
WIRE_SEEDS = 3


@pytest.mark.parametrize("batch", range(BATCHES))
def test_nothing_breaks_what_always_holds(batch: int) -> None:
    """Whatever is lost, late, repeated, refused or taken away: no invariant fails in any run."""
    total = run.simulate(range(batch * SEEDS // BATCHES, (batch + 1) * SEEDS // BATCHES))
    assert [line for outcome in total.bad for line in run.story(outcome)] == []


def test_every_kind_of_fault_strikes() -> None:
    """A fault that never happens proves nothing."""
    struck: Counter[str] = Counter()
    for seed in range(200):
        struck.update(World(seed).run().struck)
        if all(struck[kind] for kind in KINDS):
            return
    assert [kind for kind in KINDS if not struck[kind]] == []


def test_a_seed_is_the_same_run_again() -> None:
    """So what was seen once can be looked at."""
    assert World(7).run() == World(7).run()


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_broker_with_a_mistake_is_caught(name: str) -> None:
    """The simulation can fail: each of these mistakes is seen sooner or later."""
    with MUTATIONS[name]():
        caught = next((found for seed in range(CAUGHT_WITHIN) if (found := World(seed).run().violations)), ())
    assert caught
    assert {violation.invariant for violation in caught} <= set(INVARIANTS)


def test_a_violation_shows_its_seed_and_its_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever sees one can run it again."""
    with MUTATIONS["pointer before parts"]():
        seed = next(seed for seed in range(CAUGHT_WITHIN) if World(seed).run().violations)
        assert run.main(["--seed", str(seed)]) == 1
    told = capsys.readouterr().out
    assert f"seed {seed}" in told
    assert "VIOLATED: whole checkpoints only" in told
    assert "launch_chosen" in told


def test_a_wide_run_ends_with_its_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Runs, faults by kind and each invariant, for people and for programs."""
    assert run.main(["--runs", "4", "--json", str(tmp_path / "told.json")]) == 0
    told = capsys.readouterr().out
    assert "4 runs in" in told
    for name in (*KINDS, *INVARIANTS):
        assert name in told
    assert (tmp_path / "told.json").read_text().startswith("{")


@pytest.mark.e2e
def test_the_same_holds_over_the_wire(tmp_path: Path) -> None:
    """With the tables of the deployed broker, as the emulator plays them."""
    with pytest.MonkeyPatch.context() as patch, emulator(tmp_path) as host:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        total = run.simulate(range(WIRE_SEEDS), host)
    assert total.runs == WIRE_SEEDS
    assert [line for outcome in total.bad for line in run.story(outcome)] == []
