"""One call at a time: when a cloud may be asked for the machine of an attempt.

Where a machine goes by its name, the name is free again once the machine has gone, so a launch call that is late makes
another one. Therefore whoever asks has the attempt to itself for a while, which outlasts any call.
"""

from datetime import datetime, timedelta
from enum import StrEnum

from spotferry.types.instance import Attempt

BEGIN_WITHIN = timedelta(seconds=10)
"""A call begins within so long after it was saved that it would be made, or not at all."""

LONGEST_CALL = timedelta(seconds=20)
"""No `create_instance` of a provider takes longer, with all its calls and their retries."""

LAUNCH_LEASE = timedelta(seconds=45)
"""How long whoever asks has the attempt to itself. What is left after `BEGIN_WITHIN` and `LONGEST_CALL` is for clocks
that differ, and for a cloud that carries a request out after its caller has gone."""


def last_asked_at(attempt: Attempt) -> datetime:
    """When it was saved that the cloud would be asked, the last time."""
    return attempt.asked_again_at or attempt.requested_at


def may_begin(attempt: Attempt, now: datetime) -> bool:
    """There is time left to begin the call that was saved last."""
    return now <= last_asked_at(attempt) + BEGIN_WITHIN


def is_asked_for(attempt: Attempt, now: datetime) -> bool:
    """A call may be under way, so that what a look-up shows, or does not, may not be all there will be."""
    return now < last_asked_at(attempt) + LAUNCH_LEASE


def may_ask_again(attempt: Attempt, now: datetime) -> bool:
    """Its machine is wanted, nobody knows of one, and no call is under way.

    A machine whose agent has reported was made: it is looked for, and never asked for again.
    """
    settled = attempt.allocated_id or attempt.arrived_at or attempt.ending or attempt.is_gone
    return not settled and not is_asked_for(attempt, now)


class NextStep(StrEnum):
    """What a launch still asks of the broker."""

    NONE = "none"
    """It is given up, or its machine has spoken, or its answer may still be on its way: the poll has it looked at."""
    SETTLE = "settle"
    """Its cloud accepted it, and tells how it ended."""
    FIND = "find"
    """Nobody knows whether there is a machine."""


def next_step(attempt: Attempt, now: datetime) -> NextStep:
    """What is to be done about the launch of an attempt."""
    if attempt.is_gone or attempt.ending:
        return NextStep.NONE
    if attempt.allocated_id:
        return NextStep.NONE if attempt.arrived_at else NextStep.SETTLE
    return NextStep.NONE if is_asked_for(attempt, now) else NextStep.FIND
