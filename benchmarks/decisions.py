"""How long a placement takes: the choice alone and with its proof, first time and warm, and over ten times as many.

Times are the thread's own processor time, so that the turns of other programs on the machine are not counted.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from statistics import median

from benchmarks.offer_lists import times
from benchmarks.report import Measurement, median_and_worst
from benchmarks.specifications import SPECIFICATIONS
from spotferry.domain.placement import Limits, OfferIndex, choose, plan
from spotferry.types import Offer, UserInstanceSpecs
from spotferry.types.job_file import Input

REPEATS = 50
LONGER = 10
MOST_TIMES_SLOWER = 5.0

PLAIN = Limits()
RUNS = {
    "500 GB of inputs": Limits(
        inputs=(Input(uri="s3://data/set", location="aws/us-east-1", size_gb=Decimal(500)),), expected_hours=Decimal(8)
    ),
    "expected cost": Limits(objective="expected_cost", expected_hours=Decimal(8)),
}
"""Questions whose answer is the cost of whole runs."""

Decision = Callable[[OfferIndex, UserInstanceSpecs, Limits], object]


def measure(offers: Sequence[Offer]) -> Iterator[Measurement]:
    """All figures of the decision over these offers, and over ten times as many."""
    index = OfferIndex(offers)
    yield Measurement("decision", "offers", len(offers), "offers")
    yield from median_and_worst("choice, first time", _series(index, choose, 1), None, 5.0)
    yield from median_and_worst("choice with proof, first time", _series(OfferIndex(offers), plan, 1), None, 10.0)
    usual = {name: _series(index, decide, REPEATS) for name, decide in _DECISIONS.items()}
    yield from median_and_worst("choice, warm", usual["choice"], 0.2, 5.0)
    yield from median_and_worst("choice with proof, warm", usual["choice with proof"], 2.0, 10.0)
    for name, limits in RUNS.items():
        yield from median_and_worst(f"choice, {name}", _series(index, choose, REPEATS, limits), 0.2, 5.0)
        yield from median_and_worst(f"proof, {name}", _series(index, plan, REPEATS, limits), 2.0, 10.0)
    longer = OfferIndex(times(offers, LONGER))
    for name, decide in _DECISIONS.items():
        slower = median(_series(longer, decide, REPEATS)) / median(usual[name])
        yield Measurement(f"{name}, list {LONGER} times as long", "slower", slower, "times", MOST_TIMES_SLOWER)


_DECISIONS: dict[str, Decision] = {"choice": choose, "choice with proof": plan}


def _series(index: OfferIndex, decide: Decision, repeats: int, limits: Limits = PLAIN) -> list[float]:
    """Milliseconds of each decision: every specification so many times."""
    series: list[float] = []
    for specs in SPECIFICATIONS * repeats:
        start = time.thread_time_ns()
        decide(index, specs, limits)
        series.append((time.thread_time_ns() - start) / 1e6)
    return series
