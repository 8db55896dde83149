"""The line to the broker, one call at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spotferry.agent.broker import Broker, Json
from spotferry.agent.errors import BrokerGone, BrokerRefused, BrokerUnreachable, Ended
from spotferry.agent.joblog import JobLog
from spotferry.agent.lease import Lease
from spotferry.agent.link import Link
from spotferry.agent.orders import Orders
from spotferry.agent.settings import Settings
from tests.unit.agent.clocks import ManualClock

SETTINGS = Settings("http://broker.invalid", "i-1", 1, "token", "aws")


class ScriptedBroker(Broker):
    """Answers from a list: an answer, or an error to raise; the last one again and again."""

    def __init__(self, *answers: Json | Exception) -> None:
        super().__init__(SETTINGS, "key")
        self.answers = list(answers)
        self.calls: list[tuple[str, Json]] = []

    def call(self, path: str, body: Json) -> Json:
        """Note the call, give the next answer."""
        self.calls.append((path, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Line:
    """A link with all that it needs."""

    def __init__(self, tmp_path: Path, *answers: Json | Exception) -> None:
        self.clock = ManualClock()
        self.broker = ScriptedBroker(*answers)
        self.orders = Orders(self.clock)
        self.lease = Lease(self.clock)
        self.path = tmp_path / "job.log"
        self.link = Link(self.broker, self.orders, self.lease, JobLog(self.path, chunk_bytes=12), self.clock)

    def step(self) -> bool:
        """One call, when it is due."""

        def wait() -> None:
            self.clock.now = max(self.clock.now, self.link._due_at)

        return self.link._step(wait)


def word(**changes: object) -> Json:
    """The broker's word."""
    return {
        "directive": {"kind": "continue"},
        "heartbeat_seconds": 60,
        "lease_seconds": 900,
        "log_offset": None,
        **changes,
    }


@pytest.fixture
def line(tmp_path: Path) -> Callable[..., Line]:
    """Makes links."""
    return lambda *answers: Line(tmp_path, *answers)


def test_heartbeats_come_as_often_as_asked(line: Callable[..., Line]) -> None:
    """The interval, the lease and the directive come from the word."""
    link = line(word(), word(heartbeat_seconds=2, directive={"kind": "checkpoint"}), word())
    times = []
    for _ in range(4):
        assert link.step()
        times.append(link.clock.now - 1000)
    assert times == [0, 60, 62, 122]
    assert {path for path, _ in link.broker.calls} == {"heartbeat"}
    assert link.lease.left() == 900


def test_log_rides_on_heartbeats_and_goes_on_at_once(line: Callable[..., Line]) -> None:
    """More than one call's worth does not wait for the next heartbeat."""
    link = line(word())
    link.path.write_bytes(b"0123456789abcdefghijklmnopqrs")
    for _ in range(4):
        link.step()
    assert [body["log"] for _, body in link.broker.calls] == [
        {"offset": 0, "text": "0123456789ab"},
        {"offset": 12, "text": "cdefghijklmn"},
        {"offset": 24, "text": "opqrs"},
        None,
    ]
    assert link.clock.now == 1060


def test_reports_go_at_once_in_order_behind_the_log(line: Callable[..., Line]) -> None:
    """All log text that exists goes up before a report does; the last piece rides on it."""
    link = line(word())
    link.step()
    link.path.write_bytes(b"0123456789abcdefgh")
    link.link.report("setup_finished", {"seconds": 1})
    link.link.report("task_started", {"restored_from": None})
    for _ in range(3):
        link.step()
    assert [path for path, _ in link.broker.calls] == ["heartbeat", "heartbeat", "report", "report"]
    assert [body["event"] for path, body in link.broker.calls if path == "report"] == ["setup_finished", "task_started"]
    assert link.broker.calls[2][1]["log"] == {"offset": 12, "text": "cdefgh"}
    assert link.clock.now == 1000


def test_task_that_never_stops_printing_does_not_hold_reports_up(line: Callable[..., Line]) -> None:
    """Only the text from before a report goes before it."""
    link = line(word())
    link.path.write_bytes(b"x" * 20)
    link.link.report("task_started", {"restored_from": None})
    for _ in range(2):
        with link.path.open("ab") as file:
            file.write(b"y" * 100)
        link.step()
    assert [path for path, _ in link.broker.calls] == ["heartbeat", "report"]


def test_reports_are_kept_while_the_broker_is_away(line: Callable[..., Line]) -> None:
    """What could not be delivered is delivered later, in order, with growing pauses between."""
    link = line(BrokerUnreachable("503"), BrokerUnreachable("503"), word())
    link.link.report("task_exited", {"exit_code": 0})
    assert link.step()
    assert link.step()
    assert 1000 < link.clock.now <= 1001
    assert link.step()
    link.link.delivered(lambda: None)
    assert [path for path, _ in link.broker.calls] == ["report"] * 3


def test_lease_is_not_renewed_by_errors(line: Callable[..., Line]) -> None:
    """Only an answer renews the lease."""
    link = line(word(lease_seconds=30), BrokerUnreachable("503"))
    for _ in range(3):
        link.step()
    assert link.lease.left() < 0


def test_refused_report_is_dropped(line: Callable[..., Line]) -> None:
    """Repeating it would not help, and what comes behind it must not wait for ever."""
    link = line(BrokerRefused("409"), word())
    link.link.report("checkpoint_failed", {"reason": "x"})
    link.link.report("task_exited", {"exit_code": 0})
    link.step()
    link.step()
    link.link.delivered(lambda: None)
    assert [body["event"] for _, body in link.broker.calls] == ["checkpoint_failed", "task_exited"]


def test_gone_ends_the_line_and_the_attempt(line: Callable[..., Line]) -> None:
    """401 and 410 are orders to shut down."""
    link = line(BrokerGone("410"))
    assert not link.step()
    with pytest.raises(Ended, match="shut_down"):
        link.orders.check(2)
    with pytest.raises(Ended):
        link.link.call("uploads", {}, link.orders.check)


def test_own_call_is_repeated_and_its_word_is_heard(line: Callable[..., Line]) -> None:
    """A commit's answer is a word like any other."""
    link = line(BrokerUnreachable("x"), word(number=3, lease_seconds=40, directive={"kind": "go"}))
    assert link.link.call("uploads/commit", {}, lambda: None)["number"] == 3
    assert link.orders.standing("go") is not None
    assert link.lease.left() == pytest.approx(40)
