"""How long a launch call may be under way: what the domain counts on, the clouds keep, and the simulation plays."""

from datetime import timedelta

from spotferry.domain.asking import BEGIN_WITHIN, LAUNCH_LEASE, LONGEST_CALL
from spotferry.providers.retries import TOTAL_SECONDS
from tests.simulation.steps import LONGEST_STEP_SECONDS


def test_no_launch_outlasts_its_time() -> None:
    """The deadline over a launch's calls ends within it, and those of the simulation take no less.

    That each cloud's launch has one deadline is in the providers' contract.
    """
    assert TOTAL_SECONDS <= LONGEST_STEP_SECONDS <= LONGEST_CALL.total_seconds()


def test_a_call_that_begins_in_time_ends_before_the_next_may_begin() -> None:
    """With ten seconds to spare, for clocks that differ and clouds that are late."""
    assert BEGIN_WITHIN + LONGEST_CALL + timedelta(seconds=10) <= LAUNCH_LEASE
