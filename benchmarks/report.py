"""Measurements, as a table for people and as JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure.

    Attributes:
        subject: what was measured.
        measure: which figure of it.
        value: the figure.
        unit: its unit.
        at_most: what it may be; None where nothing is promised.
    """

    subject: str
    measure: str
    value: float
    unit: str
    at_most: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the promise is kept; "" where there is none."""
        if self.at_most is None:
            return ""
        return "ok" if self.value <= self.at_most else "OVER"


def median_and_worst(
    subject: str, milliseconds: Sequence[float], median_at_most: float | None, worst_at_most: float | None
) -> list[Measurement]:
    """The two figures of a series that are promised."""
    return [
        Measurement(subject, "median", median(milliseconds), "ms", median_at_most),
        Measurement(subject, "worst", max(milliseconds), "ms", worst_at_most),
    ]


def print_table(measurements: Iterable[Measurement]) -> None:
    """One line a figure."""
    rows = [("SUBJECT", "MEASURE", "VALUE", "UNIT", "AT MOST", "")]
    for m in measurements:
        limit = "" if m.at_most is None else f"{m.at_most:g}"
        rows.append((m.subject, m.measure, f"{m.value:,.3f}".rstrip("0").rstrip("."), m.unit, limit, m.verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def write_json(path: Path, measurements: Iterable[Measurement]) -> None:
    """The same figures as one document."""
    document = {"version": FORMAT_VERSION, "measurements": [asdict(m) | {"verdict": m.verdict} for m in measurements]}
    path.write_text(json.dumps(document, indent=2) + "\n")
