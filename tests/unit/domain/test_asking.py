"""When a cloud may be asked for the machine of an attempt, and what its launch still asks for."""

from datetime import timedelta

import pytest

from spotferry.domain.asking import LAUNCH_LEASE, NextStep, last_asked_at, next_step
from tests.builders import NOW, an_attempt

OPEN = {"allocated_id": "", "arrived_at": None, "requested_at": NOW}


def test_the_last_question_counts() -> None:
    """An attempt that was asked for again is asked for since then."""
    assert last_asked_at(an_attempt(1, **OPEN)) == NOW
    later = NOW + timedelta(minutes=1)
    assert last_asked_at(an_attempt(1, **OPEN, asked_again_at=later)) == later


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({}, NextStep.FIND),
        ({"asked_again_at": NOW + timedelta(seconds=1)}, NextStep.NONE),
        ({"arrived_at": NOW}, NextStep.FIND),
        ({"allocated_id": "i-1"}, NextStep.SETTLE),
        ({"allocated_id": "i-1", "arrived_at": NOW}, NextStep.NONE),
        ({"ending": True}, NextStep.NONE),
        ({"allocated_id": "i-1", "ending": True}, NextStep.NONE),
        ({"gone_at": NOW}, NextStep.NONE),
    ],
)
def test_what_a_launch_still_asks_for(changes: dict[str, object], step: NextStep) -> None:
    """A machine that nobody knows is looked for once no call is under way; an accepted launch is settled."""
    assert next_step(an_attempt(1, **{**OPEN, **changes}), NOW + LAUNCH_LEASE) is step
