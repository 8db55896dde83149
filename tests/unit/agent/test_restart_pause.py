"""The pause before a failed task is started again, as the agent keeps it: on its clock, and not past an order."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from spotferry.agent.errors import Order
from spotferry.agent.inputs import Inputs
from spotferry.agent.job import Job
from spotferry.agent.life import Life
from spotferry.agent.link import Link
from spotferry.agent.orders import Orders
from spotferry.agent.plan import Plan, parse
from spotferry.agent.scripts import Outcome
from spotferry.agent.subject import Fate, Wanted
from spotferry.agent.task import Ending
from tests.unit.agent.clocks import ManualClock

Json = dict[str, Any]  # Any: JSON bodies


class FakeJob:
    """A job whose runs end at once, with these statuses one after the other.

    Attributes:
        started_at: when each run began, by the clock.
        saved: every checkpoint that was made of it.
    """

    def __init__(self, plan: Plan, clock: ManualClock, codes: list[int]) -> None:
        self.plan = plan
        self.started_at: list[float] = []
        self.saved: list[Wanted] = []
        self._clock = clock
        self._codes = codes

    def start_task(self, _restored_from: int | None, _ended: Callable[[], None]) -> None:
        """It begins, and has ended."""
        self.started_at.append(self._clock.now)

    def exit_code(self) -> int:
        """Of the run that began last."""
        return self._codes[len(self.started_at) - 1]

    def prepare(self, *_: object) -> None:
        """There is no upload."""

    def start_setup(self, _ended: Callable[[], None]) -> "FakeJob":
        """There is no setup."""
        return self

    def ending(self) -> Ending:
        """Of the setup."""
        return Ending(0, Outcome(None, None))

    def setup_ended(self, *_: object) -> None:
        """It exported nothing."""

    def end(self, *_: object) -> None:
        """Nothing runs."""

    def checkpoint(self, wanted: Wanted, _check: Callable[[], None]) -> int:
        """It works."""
        self.saved.append(wanted)
        return len(self.saved)


class Machine:
    """An agent on a clock by hand, and a broker that answers each failure with an order to start again.

    Args:
        monkeypatch: replaces the waits.
        directive: what the order says beside its kind.
        codes: statuses of the runs.
        outputs: of the job.

    Attributes:
        events: what happens in the waits, each once its time has come.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, directive: Json, codes: list[int], outputs: tuple[str, ...] = ()
    ) -> None:
        self.clock = ManualClock()
        self.orders = Orders(self.clock)
        self.phase = ""
        self.phases: list[tuple[float, str]] = []
        self.reports: list[tuple[str, Json]] = []
        self.events: list[tuple[float, Callable[[], None]]] = []
        self._directive = {"kind": "retry", **directive}
        plan = parse({"epoch": 1, "plan": {"mode": "fresh", "outputs": outputs}})
        self.job = FakeJob(plan, self.clock, codes)
        monkeypatch.setattr(self.orders._changed, "wait", self._wait)

    def live(self) -> None:
        """Until the machine may be shut down."""
        inputs = cast("Inputs", _NoInputs())
        Life(cast("Link", self), self.orders, lambda _: cast("Job", self.job), self.clock, lambda: None, inputs).run()

    def call(self, _path: str, _body: Json, _check: Callable[[], None]) -> Json:
        """Hello."""
        return {"epoch": 1, "plan": {"mode": "fresh"}}

    def report(self, event: str, data: Json) -> None:
        """A report, and the word that answers it."""
        self.reports.append((event, data))
        self.orders.settle()
        if event == "setup_finished":
            self.word(kind="go")
        if event == "task_exited":
            self.word(**self._directive if data["exit_code"] else {"kind": "shut_down", "reason": "over"})

    def delivered(self, check: Callable[[], None]) -> None:
        """Every report is answered at once."""
        check()

    def word(self, **directive: object) -> None:
        """The broker's word."""
        self.orders.heard({"directive": directive}, self.clock.now)

    def _wait(self, seconds: float | None) -> None:
        self.phases.append((self.clock.now, self.phase))
        until = float("inf") if seconds is None else self.clock.now + seconds
        if self.events and self.events[0][0] <= until:
            self.clock.now, happens = self.events.pop(0)
            happens()
        else:
            assert seconds is not None, "it would wait for ever"
            self.clock.now = until


class _NoInputs:
    """A job without inputs."""

    def bring(self, *_: object, **__: object) -> None:
        """Nothing is brought."""


def test_the_pause_passes_before_the_task_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """So long as the order says, each time, by the machine's own clock; and then it says that it waits."""
    machine = Machine(monkeypatch, {"pause_seconds": 64}, [1, 1, 0])
    machine.live()
    assert machine.job.started_at == [1000, 1064, 1128]
    assert (1000, "waiting") in machine.phases
    assert [data["exit_code"] for event, data in machine.reports if event == "task_exited"] == [1, 1, 0]


@pytest.mark.parametrize("directive", [{}, {"pause_seconds": 0}, {"pause_seconds": None}, {"pause_seconds": "4"}])
def test_an_order_without_a_pause_has_none(monkeypatch: pytest.MonkeyPatch, directive: Json) -> None:
    """An older broker says nothing of pauses: the task is started again at once."""
    machine = Machine(monkeypatch, directive, [1, 0])
    machine.live()
    assert machine.job.started_at == [1000, 1000]


def test_an_order_that_is_heard_twice_waits_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same order in the next heartbeats does not lengthen the pause."""
    machine = Machine(monkeypatch, {"pause_seconds": 300}, [1, 0])
    again = lambda: machine.word(kind="retry", pause_seconds=300)  # noqa: E731
    machine.events = [(1060, again), (1299, again)]
    machine.live()
    assert machine.job.started_at == [1000, 1300]


@pytest.mark.parametrize(
    ("kind", "reason", "kept"),
    [
        ("release", "instance_termination", ["instance_termination"]),
        ("release", "job_termination", ["job_termination"]),
        ("release", "rebalance", ["instance_termination"]),
        ("stop", "cancelled", []),
        ("shut_down", "over", []),
    ],
)
def test_an_order_to_end_is_heeded_in_the_pause(
    monkeypatch: pytest.MonkeyPatch, kind: str, reason: str, kept: list[str]
) -> None:
    """At once; a release makes what the failed run left safe, as no result, so that the restart undoes nothing."""
    machine = Machine(monkeypatch, {"pause_seconds": 300}, [1, 0])
    machine.events = [(1007, lambda: machine.orders.end(Order(kind, reason)))]
    machine.live()
    assert (machine.clock.now, machine.job.started_at) == (1007, [1000])
    assert [wanted.reason for wanted in machine.job.saved] == kept
    assert all((wanted.fate, wanted.exit_code) == (Fate.IS_OVER, None) for wanted in machine.job.saved)
    said = {"checkpoint": 1 if kept else None, "reason": reason}
    assert [data for event, data in machine.reports if event == "released"] == ([] if kind == "shut_down" else [said])


def test_what_is_safe_already_is_not_saved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job with outputs has a checkpoint of each finished run: a notice is not spent on a second one."""
    machine = Machine(monkeypatch, {"pause_seconds": 300}, [1, 0], outputs=("out",))
    machine.events = [(1007, lambda: machine.orders.end(Order("release", "instance_termination", urgent=True)))]
    machine.live()
    assert [wanted.exit_code for wanted in machine.job.saved] == [1]
    assert machine.reports[-1] == ("released", {"checkpoint": 1, "reason": "instance_termination"})


def test_a_checkpoint_that_is_ordered_ends_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody waits for it: the task is started, and the order stands until then."""
    machine = Machine(monkeypatch, {"pause_seconds": 300}, [1, 0])
    machine.events = [(1030, lambda: machine.word(kind="checkpoint", reason="heartbeat"))]
    machine.live()
    assert machine.job.started_at == [1000, 1030]


@pytest.mark.parametrize("outputs", [(), ("out",)])
@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("event", ["task_started", "task_exited"])
def test_a_failed_run_is_safe_whenever_the_machine_goes(
    monkeypatch: pytest.MonkeyPatch, event: str, code: int, outputs: tuple[str, ...]
) -> None:
    """Also where the notice comes before the word to start it again: of what the run left there is one checkpoint; what
    went well is only kept for its outputs.
    """
    machine = Machine(monkeypatch, {"pause_seconds": 300}, [code, 0], outputs=outputs)
    report = machine.report

    def then_the_notice(what: str, data: Json) -> None:
        if what == event == "task_exited":
            machine.reports.append((what, data))
        else:
            report(what, data)
        if what == event:
            machine.orders.end(Order("release", "instance_termination", urgent=True))

    monkeypatch.setattr(machine, "report", then_the_notice)
    machine.live()
    assert len(machine.job.saved) == (1 if code or outputs else 0)
    assert machine.reports[-1] == (
        "released", {"checkpoint": 1 if machine.job.saved else None, "reason": "instance_termination"}
    )  # fmt: skip
