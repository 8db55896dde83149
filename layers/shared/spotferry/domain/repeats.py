"""Which refused events may repeat a save whose effects were never sent, since its writer was lost in between."""

from datetime import datetime, timedelta
from typing import get_args

from spotferry.domain import events as e
from spotferry.domain.reported import Reported
from spotferry.domain.view import View

REPEATS_WITHIN = timedelta(minutes=2)
"""Who got no answer asks again within so long after the save; two polls later nothing is owed that was not sent."""


def may_be_repeat(view: View, event: e.Event, now: datetime) -> bool:
    """Whether a refused event may have been saved before: agents and clouds say the same again, as a person does not.

    Args:
        view: the job as it is, with the attempt that the event is about.
        event: what was refused.
        now: when.
    """
    if isinstance(event, get_args(e.PersonsOrder)):
        return False
    if isinstance(event, Reported) and (event.report or 0) > view.attempts[event.instance_id].reports:
        return False
    return was_saved_lately(view, now)


def was_saved_lately(view: View, now: datetime) -> bool:
    """Whether somebody may still be about to say again what was saved last."""
    saved_at = view.job.updated_at
    return saved_at is not None and now - saved_at <= REPEATS_WITHIN
