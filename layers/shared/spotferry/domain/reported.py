"""What agents report in order."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Something that an agent reports in the order in which it happens.

    Attributes:
        report: number of the report, from 1 for each attempt, so that one that comes again, however late, is known;
            None: it has none.
    """

    report: int | None = None
