"""Which engine makes a checkpoint and why, when the next one is due, and how long each step may take."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from spotferry.agent.__main__ import _by_the_clock
from spotferry.agent.cadence import Cadence
from spotferry.agent.engines import choose
from spotferry.agent.errors import CriuFailed, Ended, Order
from spotferry.agent.orders import Orders
from spotferry.agent.plan import Options, parse
from spotferry.agent.results import URGENT_GRACE_SECONDS, URGENT_SAVE_SECONDS, urgent_limits
from spotferry.agent.subject import Fate
from tests.unit.agent.clocks import ManualClock

WORKS: dict[str, Callable[[], str]] = {"criu": lambda: ""}
GPU: dict[str, Callable[[], str]] = {"criu": lambda: "a process uses /dev/nvidia0"}


@pytest.mark.parametrize(
    ("engine", "paths", "fate", "refusals", "chosen", "why"),
    [
        ("auto", ("a",), Fate.GOES_ON, WORKS, "paths", "paths: they are named"),
        ("paths", ("a",), Fate.IS_OVER, WORKS, "paths", "paths: they are named"),
        ("auto", (), Fate.GOES_ON, WORKS, "criu", "criu: it works for this process tree"),
        ("criu", ("a",), Fate.LEAVES, WORKS, "criu", "criu: it works for this process tree"),
        ("auto", (), Fate.GOES_ON, GPU, "workdir", "workdir: a process uses /dev/nvidia0"),
        ("auto", (), Fate.IS_OVER, WORKS, "workdir", "workdir: the task is over"),
        ("auto", (), Fate.GOES_ON, {}, "workdir", "workdir: criu is not part of this agent"),
        ("paths", (), Fate.GOES_ON, WORKS, "workdir", "workdir: the job names no paths"),
        ("workdir", (), Fate.GOES_ON, WORKS, "workdir", "workdir: the job asks for it"),
    ],
)
def test_an_engine_is_chosen_with_its_reason(
    engine: str, paths: tuple[str, ...], fate: Fate, refusals: dict[str, Callable[[], str]], chosen: str, why: str
) -> None:
    """Paths where they are named, else the process tree where that works, else the work directory."""
    assert choose(Options(engine=engine, paths=paths), fate, refusals) == (chosen, why)


def test_criu_alone_is_criu_or_nothing() -> None:
    """A job that asks for it and cannot have it has no checkpoint, and the reason."""
    with pytest.raises(CriuFailed, match="/dev/nvidia0"):
        choose(Options(engine="criu"), Fate.GOES_ON, GPU)


class Waiting:
    """A cadence whose waits pass on a clock by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.orders = Orders(self.clock)
        self.cadence = Cadence(self.orders, self.clock)
        self.events: list[Callable[[], None]] = []
        monkeypatch.setattr(self.orders._changed, "wait", self.wait)

    def wait(self, seconds: float | None) -> None:
        """The next event comes, or the time passes."""
        if self.events:
            self.events.pop(0)()
        else:
            assert seconds is not None, "it would wait for ever"
            self.clock.now += seconds

    def word(self, **fields: object) -> None:
        """The broker's word."""
        self.orders.heard({"directive": {"kind": "continue"}, **fields}, self.clock.now)

    def due(self) -> bool | None:
        """True once a checkpoint is due."""
        return True if self.cadence.is_due() else None


def test_a_checkpoint_is_due_when_the_interval_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from the end of the last one."""
    w = Waiting(monkeypatch)
    w.word(checkpoint_seconds=60)
    assert w.cadence.wait(w.due)
    assert w.clock.now == 1060
    w.clock.now += 25  # it takes so long
    w.cadence.begin()
    assert w.cadence.wait(w.due)
    assert w.clock.now == 1145


def test_a_new_interval_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the agent waits for the end of a longer one, or for none at all."""
    w = Waiting(monkeypatch)
    w.events = [lambda: w.word(checkpoint_seconds=3600), lambda: w.word(checkpoint_seconds=10)]
    assert w.cadence.wait(w.due)
    assert w.clock.now == 1010


@pytest.mark.parametrize("said", [None, 0, -5, "60"])
def test_no_interval_is_none(monkeypatch: pytest.MonkeyPatch, said: object) -> None:
    """A word without one, or with what is none, means that only orders bring checkpoints."""
    w = Waiting(monkeypatch)
    w.word(checkpoint_seconds=60)
    w.word(checkpoint_seconds=said)
    w.clock.now += 1000
    assert not w.cadence.is_due()
    w.events = [lambda: w.orders.end(Order("stop", ""))]
    with pytest.raises(Ended):
        w.cadence.wait(w.due)


def test_limits_leave_most_of_a_notice_for_the_upload() -> None:
    """Half of what is left where the deadline is known, some seconds where it is not, never none."""
    assert urgent_limits(120).save_seconds == 60
    assert urgent_limits(None).save_seconds == URGENT_SAVE_SECONDS
    assert urgent_limits(-3).save_seconds > 0
    assert urgent_limits(120).grace_seconds == URGENT_GRACE_SECONDS


def test_a_deadline_is_read_on_the_machines_clock() -> None:
    """RFC 3339, with Z or an offset; what is none, or has no zone, is no deadline."""
    clock = ManualClock()
    soon = datetime.now().astimezone() + timedelta(seconds=120)
    for text in (soon.isoformat(), soon.astimezone(tz=None).isoformat()):
        at = _by_the_clock(text, clock)
        assert at is not None
        assert 115 < at - clock.now <= 120
    assert _by_the_clock("2001-01-01T00:00:00Z", clock) is not None
    for none in (None, "", "soon", "2030-01-01T00:00:00"):
        assert _by_the_clock(none, clock) is None


def test_a_plan_without_options_has_the_defaults() -> None:
    """An older broker says nothing of checkpoints and commands."""
    plan = parse({"epoch": 1, "plan": {"mode": "fresh"}})
    assert plan.options == Options("auto", (), "", 30)
    assert plan.commands == {}
    said = {"engine": "paths", "paths": ["a"], "signal": "SIGUSR2", "grace_seconds": 5}
    full = parse({"epoch": 1, "plan": {"mode": "fresh", "checkpoint": said, "commands": {"post_setup": ["true"]}}})
    assert full.options == Options("paths", ("a",), "SIGUSR2", 5)
    assert full.commands == {"post_setup": ("true",)}
