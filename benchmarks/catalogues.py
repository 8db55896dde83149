"""How large a catalogue is, and how much processor time a cold start takes to have it."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.report import Measurement
from spotferry.catalog.catalogue_file import read_catalogue, write_catalogue
from spotferry.domain.placement import OfferIndex
from spotferry.types import Offer

REPEATS = 5


def measure(offers: Sequence[Offer]) -> Iterator[Measurement]:
    """Size, time to write, to read, to index."""
    with TemporaryDirectory() as directory:
        path = Path(directory, "offers.db")
        written = _milliseconds(lambda: write_catalogue(path, offers, datetime.now(UTC)))
        yield Measurement("catalogue", "size", path.stat().st_size / 1e6, "MB")
        yield Measurement("catalogue", "write", written, "ms")
        yield Measurement("catalogue", "load", _median(lambda: read_catalogue(path)), "ms")
        yield Measurement("catalogue", "index", _median(lambda: OfferIndex(offers)), "ms")


def _median(call: Callable[[], object]) -> float:
    return median(_milliseconds(call) for _ in range(REPEATS))


def _milliseconds(call: Callable[[], object]) -> float:
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / 1e6
