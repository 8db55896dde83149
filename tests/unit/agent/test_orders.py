"""What the agent was told."""

import threading

import pytest

from spotferry.agent.broker import Json
from spotferry.agent.errors import Ended, Order
from spotferry.agent.orders import Orders
from tests.unit.agent.clocks import ManualClock


def word(kind: str, reason: str = "") -> Json:
    """The broker's word."""
    return {"directive": {"kind": kind, "reason": reason}}


def test_newest_word_stands() -> None:
    """An answer that comes late, to an older call, does not bring an older directive back."""
    orders = Orders(ManualClock())
    orders.heard(word("checkpoint", "heartbeat"), 1002)
    orders.heard(word("continue"), 1001)
    assert orders.standing("checkpoint") is not None
    orders.heard(word("continue"), 1003)
    assert orders.standing("checkpoint") is None


def test_word_from_before_the_last_step_is_no_news() -> None:
    """What was asked before the work moved on is done: hearing it twice is one order."""
    clock = ManualClock()
    orders = Orders(clock)
    orders.heard(word("checkpoint"), 1000)
    clock.now = 1005
    orders.settle()
    orders.heard(word("checkpoint"), 1004)
    assert orders.standing("checkpoint") is None
    orders.heard(word("checkpoint"), 1006)
    assert orders.standing("checkpoint") is not None


def test_order_of_higher_rank_overtakes() -> None:
    """Release, stop, shut down: each interrupts what is done for the one before, never the other way."""
    orders = Orders(ManualClock())
    orders.check()
    orders.heard(word("stop", "cancelled"), 1000)
    orders.heard(word("release", "instance_termination"), 1001)
    with pytest.raises(Ended, match="cancelled"):
        orders.check(1)
    orders.check(2)
    orders.heard(word("shut_down"), 1002)
    with pytest.raises(Ended) as ended:
        orders.check(2)
    assert ended.value.order.kind == "shut_down"
    orders.check(3)


@pytest.mark.parametrize(("reason", "urgent"), [("instance_termination", True), ("", True), ("job_termination", False)])
def test_release_is_urgent_when_the_machine_goes(reason: str, urgent: bool) -> None:  # noqa: FBT001
    """A task has its whole grace only when no cloud is taking the machine."""
    orders = Orders(ManualClock())
    orders.heard(word("release", reason), 1000)
    with pytest.raises(Ended) as ended:
        orders.check()
    assert ended.value.order == Order("release", reason, urgent=urgent)


def test_wait_ends_with_what_is_waited_for() -> None:
    """A word, a poke or the time ends a wait."""
    orders = Orders(ManualClock())
    answers = iter([None, "done"])
    threading.Timer(0.01, orders.poke).start()
    assert orders.wait(lambda: next(answers)) == "done"
    assert orders.wait(lambda: None, timeout=0) is None
    threading.Timer(0.01, orders.heard, (word("go"), 1000)).start()
    assert orders.wait_for("go") == word("go")


def test_wait_is_ended_by_an_order() -> None:
    """Whoever waits hears of the end at once."""
    orders = Orders(ManualClock())
    threading.Timer(0.01, orders.end, (Order("stop", "x"),)).start()
    with pytest.raises(Ended):
        orders.wait_for("go")
