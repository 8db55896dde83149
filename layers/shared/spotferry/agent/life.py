"""The life of one attempt, from hello to the shutdown; one thread owns all of it."""

from __future__ import annotations

from typing import Callable, Optional, Tuple, TypeVar

from spotferry.agent import VERSION
from spotferry.agent.broker import Json
from spotferry.agent.cadence import HEARTBEAT, Cadence
from spotferry.agent.clock import Clock
from spotferry.agent.console import say
from spotferry.agent.ending import Closing
from spotferry.agent.errors import AddressExpired, BrokerGone, BrokerRefused, Ended, StepFailed
from spotferry.agent.inputs import Inputs
from spotferry.agent.job import Job
from spotferry.agent.link import Link
from spotferry.agent.machine import facts
from spotferry.agent.orders import Orders, positive_seconds
from spotferry.agent.plan import FINALIZE, Plan, parse
from spotferry.agent.results import URGENT_GRACE_SECONDS, Results, State

T = TypeVar("T")

SECOND_LOOK_SECONDS = 3.0
"""A task that died of a signal may have been ended with its machine: an order that comes so soon says that it was."""

_DIED_OF_SIGNAL = 128


class Life:
    """Does what the plan and the orders say.

    Args:
        link: to the broker.
        orders: what comes from it, and from the watch.
        make_job: the job on this machine, for a plan.
        clock: to measure with.
        begin: called once, after hello.
        inputs: brings the job's inputs.
    """

    def __init__(
        self,
        link: Link,
        orders: Orders,
        make_job: Callable[[Plan], Job],
        clock: Clock,
        begin: Callable[[], None],
        inputs: Inputs,
    ) -> None:
        self._link = link
        self._orders = orders
        self._make_job = make_job
        self._clock = clock
        self._begin = begin
        self._inputs = inputs
        self._state = State()
        self._results = Results(link, self._state)
        self._cadence = Cadence(orders, clock)

    def run(self) -> None:
        """Live until an order ends it; returns when the machine may be shut down."""
        try:
            self._live()
        except Ended as ended:
            Closing(self._link, self._orders, self._state, self._results, self._clock).obey(ended.order)
        except (BrokerRefused, BrokerGone) as refused:
            say(f"the broker refuses this attempt: {refused}")
        except ValueError as error:
            say(f"the broker's plan cannot be followed: {error}")

    def _live(self) -> None:
        job = self._make_job(parse(self._ask_plan()))
        self._state.job = job
        self._begin()
        if job.plan.mode != FINALIZE:
            self._until_it_works(job, lambda: self._set_up(job))
        self._await_go(job)
        if job.plan.mode == FINALIZE:
            self._finalize(job)
        self._until_it_works(job, lambda: self._start(job))
        while True:
            self._tend(job)
            self._await_restart()
            self._until_it_works(job, lambda: self._start_again(job))

    def _ask_plan(self) -> Json:
        body = {"agent": {"version": VERSION}, "machine": facts()}
        return self._link.call("hello", body, self._orders.check)

    def _refresh(self, job: Job) -> None:
        """Ask for the plan again: its addresses had run out."""
        job.plan = parse(self._ask_plan())

    def _until_it_works(self, job: Job, step: Callable[[], T]) -> T:
        """Do a step; when it fails, report that, hold the machine, and do it again when told to."""
        while True:
            try:
                return step()
            except StepFailed as failed:
                say(f"{failed}")
                job.end(URGENT_GRACE_SECONDS, self._orders.check)
                self._link.report(failed.event, failed.data)
            self._delivered("held")
            self._orders.wait_for("retry")

    def _set_up(self, job: Job) -> None:
        self._link.phase = "setting_up"
        began_at = self._clock.monotonic()
        job.prepare(self._orders.check, lambda: self._refresh(job))
        self._bring_inputs(job)
        ending = self._orders.wait(job.start_setup(self._orders.poke).ending)
        assert ending is not None
        job.setup_ended(ending, self._orders.check)
        self._link.report("setup_finished", {"seconds": round(self._clock.monotonic() - began_at, 3)})
        self._delivered("waiting")

    def _bring_inputs(self, job: Job) -> None:
        """Copy the inputs, with fresh addresses when those of the plan ran out."""
        try:
            self._inputs.bring(job.plan.inputs, self._orders.check, fresh=False)
        except AddressExpired:
            self._refresh(job)
            self._inputs.bring(job.plan.inputs, self._orders.check, fresh=True)

    def _delivered(self, phase: str) -> None:
        """Enter a phase once the broker knows why: what it answers to `held` or `waiting` rests on that."""
        self._link.delivered(self._orders.check)
        self._link.phase = phase

    def _await_go(self, job: Job) -> None:
        """Wait until the job is ours; a job that needs no set-up may be so from hello on."""
        if job.plan.mode == FINALIZE and self._orders.standing("continue") is not None:
            return
        self._link.phase = "waiting"
        job.plan = job.plan.changed_by(self._orders.wait_for("go"))

    def _start(self, job: Job) -> None:
        """Restore if the plan says so, and start the task."""
        self._link.phase = "running"
        restored_from: Optional[int] = None
        why_not = ""
        if job.plan.mode == "restore":
            restored_from, why_not = job.restore(self._orders.check, lambda: self._refresh(job))
        self._run(job, restored_from, why_not)

    def _await_restart(self) -> None:
        """Wait for the order to start the failed task again, and then as long as it says: no task that fails at once
        is to be started many times within minutes. A checkpoint that is ordered, or an order to end, cuts the pause
        short.
        """
        word = self._orders.wait_for("retry")
        pause = positive_seconds(word["directive"].get("pause_seconds"))
        if pause is not None:
            self._link.phase = "waiting"
            self._orders.wait(lambda: self._orders.standing("checkpoint"), timeout=pause)
        self._state.failed = self._state.task_over = False

    def _start_again(self, job: Job) -> None:
        """Start the task once more, in the work directory as it left it."""
        self._link.phase = "running"
        self._run(job, None, "")

    def _run(self, job: Job, restored_from: Optional[int], why_not: str) -> None:
        job.start_task(restored_from, self._orders.poke)
        self._state.started = True
        self._cadence.begin()
        self._link.report("task_started", {"restored_from": restored_from, "why_not": why_not})

    def _tend(self, job: Job) -> None:
        """Look after the running task until it is over and its outputs are sent."""
        while True:
            code, reason = self._cadence.wait(lambda: self._exit_or_checkpoint(job))
            if code is not None:
                break
            self._results.checkpoint_running(job, reason, self._orders.check)
            self._orders.settle()
            self._cadence.begin()
        self._second_look(code)
        self._results.task_is_over(job, code, lambda: self._orders.check(1))
        self._link.delivered(self._orders.check)
        if self._orders.standing("retry") is None:
            self._results.send_outputs(job, self._orders.check)

    def _exit_or_checkpoint(self, job: Job) -> Optional[Tuple[Optional[int], str]]:
        """The exit status of the task, or the reason of a checkpoint that is wanted; None when neither is there."""
        if (code := job.exit_code()) is not None:
            return code, ""
        if word := self._orders.standing("checkpoint"):
            return None, str(word["directive"].get("reason") or HEARTBEAT)
        return (None, HEARTBEAT) if self._cadence.is_due() else None

    def _second_look(self, code: int) -> None:
        """Wait a little for the order that explains why a task died of a signal."""
        if code <= _DIED_OF_SIGNAL:
            return
        self._state.died_with_machine = True
        self._orders.wait(lambda: None, timeout=SECOND_LOOK_SECONDS)
        self._state.died_with_machine = False

    def _finalize(self, job: Job) -> None:
        """The task was over on another machine: only its outputs are left to send."""
        self._link.phase = "finalizing"
        self._state.task_over = True
        restore = lambda: job.restore(self._orders.check, lambda: self._refresh(job))  # noqa: E731
        self._state.committed, _ = self._until_it_works(job, restore)
        self._results.report_exit(job, job.plan.exit_code)
        self._results.send_outputs(job, self._orders.check)
        self._orders.wait(lambda: None)
