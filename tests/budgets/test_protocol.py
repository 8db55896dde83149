"""The agent's protocol as it is written and as it is built: the same words."""

import re
from pathlib import Path

from spotferry.domain.lifecycle import Order
from spotferry.usecases.agent_reports import REPORTS

TEXT = (Path(__file__).parents[2] / "docs" / "agent-protocol.md").read_text()


def _first_column(heading: str) -> set[str]:
    """The words in the first column of the table that begins with this heading."""
    rows = TEXT.split(f"| {heading} |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return {match.group(1) for row in rows if (match := re.match(r"\| `(\w+)` \|", row))}


def test_the_directives_are_the_orders() -> None:
    """The broker says every directive of the protocol and no other."""
    assert _first_column("directive") == {order.value for order in Order}


def test_the_reports_are_the_events_that_are_heard() -> None:
    """Every report of the protocol is heard, and nothing else is."""
    assert _first_column("event") == set(REPORTS)
