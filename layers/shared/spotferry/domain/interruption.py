"""What a cloud's notice means for the job on the machine, whatever the cloud and its envelope."""

from datetime import timedelta
from enum import StrEnum

from spotferry.types.events import Notice, NoticeKind

UNKNOWN_PAUSE = timedelta(seconds=15)
"""How long an event about a machine that nobody knows yet waits for its launch's answer to be saved."""


class Meaning(StrEnum):
    """What a notice asks of the broker."""

    LOSE = "lose"
    """The cloud takes the machine: save the work by the deadline (at once when there is none), go on elsewhere."""
    GONE = "gone"
    """The machine is no more."""
    ADVISED = "advised"
    """It may be taken: jobs that ask for it move ahead of that."""
    NOTHING = "nothing"
    """The machine stays for now."""


_BY_STATE = {
    "pending": Meaning.NOTHING,
    "running": Meaning.NOTHING,
    # A machine that only stops is lost to its job as well: it never comes back by itself, and its disk goes on billing.
    "stopping": Meaning.LOSE,
    "shutting-down": Meaning.LOSE,
    "terminated": Meaning.GONE,
}

_BY_KIND = {
    NoticeKind.TAKE_BACK: Meaning.LOSE,
    # Both are forecasts, minutes to days ahead and often wrong. Leaving early would cost every job a move, so only
    # those move that ask for it; the take-back that follows has a notice of its own, and is acted upon.
    NoticeKind.REBALANCE: Meaning.ADVISED,
    NoticeKind.MAINTENANCE: Meaning.NOTHING,
}


def meaning(notice: Notice) -> Meaning:
    """What the notice asks for; a state that no cloud should send means nothing."""
    if notice.kind is NoticeKind.STATE_CHANGE:
        return _BY_STATE.get(notice.state, Meaning.NOTHING)
    return _BY_KIND[notice.kind]
