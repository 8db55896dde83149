"""How long a launch call may be under way: what the domain counts on, the clouds keep, and the simulation plays."""

from datetime import timedelta

from spotferry.domain.asking import ALONE, BEGIN, CALL
from spotferry.providers.pace import TOTAL_SECONDS
from tests.simulation.steps import LONGEST_STEP_SECONDS


def test_no_call_outlasts_its_time() -> None:
    """Every cloud's calls end within theirs, and those of the simulation take no less."""
    assert TOTAL_SECONDS <= LONGEST_STEP_SECONDS <= CALL.total_seconds()


def test_a_call_that_begins_in_time_ends_before_the_next_may_begin() -> None:
    """With ten seconds to spare, for clocks that differ and clouds that are late."""
    assert BEGIN + CALL + timedelta(seconds=10) <= ALONE
