"""Runs the simulation wide: `python -m tests.simulation.run --runs 10000`; `make simulate` calls it.

Ends with a table, and with status 1 after a violation: then the seed and its step list are shown, and `--seed` runs it
again. Runs over the wire keep their records in the emulator's DynamoDB; there the order of an index is not the seed's.
"""

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from spotferry.domain.view import Policy
from spotferry.store.dynamo import DynamoStore
from tests.contract.emulated_tables import CREDENTIALS, REGION, create_tables, emulator
from tests.simulation.faults import KINDS
from tests.simulation.invariants import INVARIANTS
from tests.simulation.world import Outcome, World

BATCH, WIRED_BATCH = 20, 4
WORKERS = 2
TELL_EVERY_SECONDS = 5.0
SHOWN = 5
"""Violations that are shown with their step lists."""


@dataclass(slots=True)
class Total:
    """What many runs came to."""

    runs: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    violated: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    figures: Counter[str] = field(default_factory=Counter)
    bad: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """One more run; steps are kept of those that went wrong."""
        self.runs += 1
        self.struck.update(outcome.struck)
        self.violated.update({violation.invariant for violation in outcome.violations})
        self.states.update(outcome.states)
        self.figures.update(outcome.figures)
        if outcome.violations:
            self.bad.append(outcome)

    def merge(self, other: "Total") -> None:
        """Those of another batch as well."""
        self.runs += other.runs
        for name in ("struck", "violated", "states", "figures"):
            getattr(self, name).update(getattr(other, name))
        self.bad.extend(other.bad)


def simulate(seeds: Sequence[int], host: str = "") -> Total:
    """Run these seeds, over the store in memory or, with an address, over the wire."""
    total = Total()
    for seed in seeds:
        total.add((World(seed, _wired(host), brief=True) if host else World(seed)).run())
    return total


def _wired(host: str) -> DynamoStore:
    """A store over tables of its own."""
    os.environ.update(CREDENTIALS)
    return DynamoStore(
        create_tables(host, f"p{os.getpid()}-"), Policy(), host=host, region=REGION, pause=lambda _: None
    )


def wide(seeds: Sequence[int], host: str = "") -> Total:
    """Run them over all workers, and say every few seconds how far it is."""
    total, told_at = Total(), time.monotonic()
    size = WIRED_BATCH if host else BATCH
    batches = [seeds[i : i + size] for i in range(0, len(seeds), size)]
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(simulate, batch, host) for batch in batches]):
            total.merge(done.result())
            if time.monotonic() - told_at > TELL_EVERY_SECONDS:
                told_at = time.monotonic()
                print(f"{total.runs} of {len(seeds)} runs, {len(total.bad)} with a violation", flush=True)
    return total


def table(total: Total, seconds: float) -> Iterator[str]:
    """The outcome, for people."""
    yield f"{total.runs} runs in {seconds:.0f} s"
    for title, rows in (
        ("what ran", sorted(total.figures.items())),
        ("how jobs ended", sorted(total.states.items())),
        ("faults injected", [(kind, total.struck[kind]) for kind in KINDS]),
        ("violations", [(name, total.violated[name]) for name in INVARIANTS]),
    ):
        yield f"\n{title}"
        yield from (f"  {name:<34}{count:>14,}" for name, count in rows)


def story(outcome: Outcome) -> Iterator[str]:
    """The step list of one run, and what was violated."""
    yield f"\nseed {outcome.seed}"
    yield from (f"  {at:%H:%M:%S.%f} {words}" for at, words in outcome.steps)
    yield from (f"  VIOLATED: {violation.invariant}: {violation.words}" for violation in outcome.violations)


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="run this one, and show its step list")
    parser.add_argument("--wire", type=int, default=0, help="so many more over the emulator's DynamoDB")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status is 1 after a violation."""
    asked = _asked(arguments)
    if asked.seed is not None:
        outcome = World(asked.seed).run()
        _say(story(outcome))
        return int(bool(outcome.violations))
    began = time.monotonic()
    total = wide(range(asked.first, asked.first + asked.runs))
    if asked.wire:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            host = stack.enter_context(emulator(Path(folder)))
            print(f"{asked.wire} runs over the wire", flush=True)
            total.merge(wide(range(asked.first, asked.first + asked.wire), host))
    for outcome in sorted(total.bad, key=lambda outcome: len(outcome.steps))[:SHOWN]:
        _say(story(outcome))
    _say(table(total, time.monotonic() - began))
    if total.bad:
        print(f"\nSeeds with violations: {', '.join(str(outcome.seed) for outcome in total.bad)}")
    if asked.json:
        told = {"runs": total.runs, "faults": total.struck, "violations": total.violated, "states": total.states}
        asked.json.write_text(json.dumps(told, indent=2))
    return int(bool(total.bad))


if __name__ == "__main__":
    sys.exit(main())
