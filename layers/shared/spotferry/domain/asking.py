"""One call at a time: when a cloud may be asked for the machine of an attempt.

Where a machine goes by its name, the name is free again once the machine has gone, so a launch call that is late makes
another one. Therefore whoever asks has the attempt to itself for a while, which outlasts any call.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from spotferry.types.instance import Attempt

BEGIN = timedelta(seconds=10)
"""A call begins within so long after it was saved that it would be made, or not at all."""

CALL = timedelta(seconds=20)
"""No call of a provider's takes longer, its retries included."""

ALONE = timedelta(seconds=45)
"""How long nobody else asks. What is left after `BEGIN` and `CALL` is for clocks that differ, and for a cloud that
carries a request out after its caller has gone."""


@dataclass(frozen=True, slots=True)
class LaunchRepeated:
    """An event: the cloud is about to be asked again for the machine of an attempt, since its answer is not known."""

    instance_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a cloud said of a launch.

    Attributes:
        asked_at: the attempt's, as it was when the cloud said so: of a call that came later it says nothing.
    """

    asked_at: datetime | None = None


def asked_at(attempt: Attempt) -> datetime:
    """When it was saved that the cloud would be asked, the last time."""
    return attempt.asked_at or attempt.requested_at


def may_begin(attempt: Attempt, now: datetime) -> bool:
    """There is time left to begin the call that was saved last."""
    return now <= asked_at(attempt) + BEGIN


def is_asked_for(attempt: Attempt, now: datetime) -> bool:
    """A call may be under way, so that what a look-up shows, or does not, may not be all there will be."""
    return now < asked_at(attempt) + ALONE


def may_ask_again(attempt: Attempt, now: datetime) -> bool:
    """Its machine is wanted, nobody knows of one, and no call is under way.

    A machine whose agent has reported was made: it is looked for, and never asked for again.
    """
    settled = attempt.allocated_id or attempt.arrived_at or attempt.ending or attempt.is_gone
    return not settled and not is_asked_for(attempt, now)
