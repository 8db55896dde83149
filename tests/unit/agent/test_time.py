"""Clock, retries and lease."""

import itertools

import pytest

from spotferry.agent.clock import Clock, patiently, pauses
from spotferry.agent.errors import BrokerUnreachable, Ended, Order, TransferFailed
from spotferry.agent.lease import FIRST_LEASE_SECONDS, Lease
from tests.unit.agent.clocks import ManualClock


def nothing() -> None:
    """No order."""


def test_clock_never_goes_back() -> None:
    """The real clock is monotonic."""
    clock = Clock()
    first = clock.monotonic()
    clock.sleep(0)
    assert clock.monotonic() >= first


def test_pauses_grow_to_a_limit_with_jitter() -> None:
    """Each pause is between half of its step and the step; steps double up to the most."""
    steps = (0.5, 1, 2, 4, 8, 15, 15)
    for pause, step in zip(itertools.islice(pauses(), 7), steps, strict=True):
        assert step / 2 <= pause <= step


def test_call_is_tried_until_it_works() -> None:
    """What another try may mend is tried again, after pauses."""
    clock, answers = ManualClock(), iter([BrokerUnreachable("a"), BrokerUnreachable("b"), None])

    def call() -> str:
        if error := next(answers):
            raise error
        return "done"

    assert patiently(call, again_on=(BrokerUnreachable,), clock=clock, check=nothing) == "done"
    assert 0.75 <= clock.now - 1000 <= 1.5


def test_tries_are_limited_and_other_errors_pass() -> None:
    """The last of so many tries raises; an error that no try mends does so at once."""
    clock, calls = ManualClock(), []

    def call() -> None:
        calls.append(1)
        raise TransferFailed("no")

    with pytest.raises(TransferFailed):
        patiently(call, again_on=(TransferFailed,), clock=clock, check=nothing, tries=3)
    assert len(calls) == 3
    with pytest.raises(TransferFailed):
        patiently(call, again_on=(BrokerUnreachable,), clock=clock, check=nothing)
    assert len(calls) == 4


def test_order_ends_the_tries_within_a_quarter_second() -> None:
    """A pause never outlasts an order by more than its smallest step."""
    clock = ManualClock()

    def check() -> None:
        if clock.now > 1000.3:
            raise Ended(Order("stop", ""))

    def call() -> None:
        raise BrokerUnreachable("away")

    with pytest.raises(Ended):
        patiently(call, again_on=(BrokerUnreachable,), clock=clock, check=check)
    assert clock.now <= 1000.8
    assert max(clock.slept) <= 0.25


def test_lease_runs_from_the_sending_of_the_newest_call() -> None:
    """A machine is born with a lease; an answer counts from when its call was sent; a late one changes nothing."""
    clock = ManualClock()
    lease = Lease(clock)
    assert lease.left() == FIRST_LEASE_SECONDS
    clock.now = 1010
    lease.renew(1005, 60)
    assert lease.left() == 55
    lease.renew(1002, 500)
    assert lease.left() == 55
    clock.now = 1066
    assert lease.left() == -1
