"""The ledger bills what the cloud bills, at the prices of the day."""

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.domain.costs import Cost, attempt_cost, disk_usd_hour, job_cost
from tests.builders import NOW, an_attempt

PRICES: dict[str, object] = {
    "price": Decimal("0.036"),
    "on_demand_usd_hour": Decimal("0.096"),
    "disk_usd_hour": Decimal("0.0036"),
}


def test_attempt_is_billed_by_the_second_from_launch_to_end() -> None:
    """Machine and disk, each second, at the prices stored with the attempt."""
    attempt = an_attempt(1, **PRICES, launched_at=NOW, gone_at=NOW + timedelta(seconds=100))
    cost = attempt_cost(attempt, NOW + timedelta(days=1))
    assert cost.rounded() == Cost(
        machine_usd=Decimal("0.001000"),
        disk_usd=Decimal("0.000100"),
        on_demand_usd=Decimal("0.002767"),
        seconds=Decimal(100),
    )
    assert cost.usd == cost.machine_usd + cost.disk_usd


def test_running_attempt_is_billed_up_to_now() -> None:
    """A machine that is still there has cost what it has cost so far."""
    attempt = an_attempt(1, **PRICES, launched_at=NOW)
    assert attempt_cost(attempt, NOW + timedelta(hours=1)).usd == Decimal("0.0396")


@pytest.mark.parametrize("seconds", [0, 1, 59, 60])
def test_first_minute_is_billed_whole(seconds: int) -> None:
    """A machine is never billed less than a minute."""
    attempt = an_attempt(1, **PRICES, launched_at=NOW, gone_at=NOW + timedelta(seconds=seconds))
    assert attempt_cost(attempt, NOW).seconds == 60


def test_begun_seconds_are_billed_whole() -> None:
    """Clouds bill whole seconds, the last one too."""
    attempt = an_attempt(1, **PRICES, launched_at=NOW, gone_at=NOW + timedelta(seconds=100, microseconds=1))
    assert attempt_cost(attempt, NOW).seconds == 101


def test_the_clouds_own_end_counts() -> None:
    """A machine is billed until the cloud says, however late its end was heard of."""
    end = NOW + timedelta(seconds=100)
    attempt = an_attempt(1, **PRICES, launched_at=NOW, billed_until=end, gone_at=end + timedelta(minutes=9))
    assert attempt_cost(attempt, NOW).seconds == 100


@pytest.mark.parametrize(
    ("changes", "waived"),
    [
        ({}, True),
        ({"ended_by": "us"}, False),
        ({"ended_by": ""}, False),
        ({"market": "on_demand"}, False),
        ({"provider": "gcp"}, False),
        ({"gone_at": NOW + timedelta(hours=1)}, False),
    ],
)
def test_a_machine_taken_back_early_is_not_billed(changes: dict[str, object], waived: bool) -> None:  # noqa: FBT001 (a column)
    """AWS bills nothing for a spot machine that it takes back in its first hour, but for its disk."""
    end = NOW + timedelta(minutes=59)
    fields = {**PRICES, "launched_at": NOW, "gone_at": end, "ended_by": "cloud", **changes}
    cost = attempt_cost(an_attempt(1, **fields), NOW)
    assert (cost.machine_usd == 0, cost.waived_usd > 0) == (waived, waived)
    assert cost.disk_usd > 0
    assert cost.on_demand_usd > cost.machine_usd + cost.waived_usd


def test_machine_that_never_ran_costs_nothing() -> None:
    """A launch that the cloud accepted and could not carry out is free, disk and all."""
    attempt = an_attempt(1, **PRICES, launched_at=NOW, gone_at=NOW + timedelta(minutes=5), ended_by="launch")
    assert attempt_cost(attempt, NOW) == Cost()


def test_machine_that_never_came_to_be_costs_nothing() -> None:
    """A launch that was refused is free."""
    attempt = an_attempt(1, **PRICES, launched_at=None, gone_at=NOW)
    assert attempt_cost(attempt, NOW) == Cost()


def test_unknown_list_price_counts_as_the_price_paid() -> None:
    """Where the list price was unknown nothing is said to be saved."""
    attempt = an_attempt(1, **{**PRICES, "on_demand_usd_hour": None}, launched_at=NOW)
    assert attempt_cost(attempt, NOW + timedelta(hours=1)).saved_usd == 0


def test_spot_dearer_than_the_list_saves_less_than_nothing() -> None:
    """A spot price above the list price shows as a loss, and is not hidden."""
    attempt = an_attempt(1, **{**PRICES, "price": Decimal("0.1")}, launched_at=NOW)
    assert attempt_cost(attempt, NOW + timedelta(hours=1)).saved_usd == Decimal("-0.004")


def test_job_costs_the_sum_of_its_attempts() -> None:
    """The parts add up exactly, before anything is rounded."""
    attempts = [an_attempt(n, **PRICES, launched_at=NOW, gone_at=NOW + timedelta(seconds=61 * n)) for n in (1, 2, 3)]
    assert job_cost(attempts, NOW) == sum((attempt_cost(a, NOW) for a in attempts), Cost())
    assert job_cost(attempts, NOW).seconds == 61 * 6
    assert job_cost([], NOW) == Cost()


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_cost_never_falls_while_a_machine_runs(first: int, later: int) -> None:
    """Asked later, a running machine has cost the same or more."""
    attempt = an_attempt(1, **PRICES, launched_at=NOW)
    start, end = sorted([first, later])
    assert (
        attempt_cost(attempt, NOW + timedelta(seconds=start)).usd
        <= attempt_cost(attempt, NOW + timedelta(seconds=end)).usd
    )


def test_disk_is_priced_by_a_month_of_730_hours() -> None:
    """30 GB at 8 cents a month, to the billionth of a dollar."""
    assert disk_usd_hour(Decimal("0.08"), 30) == Decimal("0.003287671")
    assert disk_usd_hour(Decimal("0.08"), 0) == 0
