"""How an attempt ends: a release, a stop, or at once."""

from __future__ import annotations

from typing import Optional

from spotferry.agent.clock import Clock
from spotferry.agent.console import say
from spotferry.agent.errors import Ended, Order
from spotferry.agent.job import Job
from spotferry.agent.link import Link
from spotferry.agent.orders import TAKEN_BACK, Orders
from spotferry.agent.results import URGENT_GRACE_SECONDS, Limits, Results, State, urgent_limits

_REASONS = (TAKEN_BACK, "job_termination", "heartbeat")


class Closing:
    """Obeys the orders that end an attempt.

    Args:
        link: to the broker.
        orders: where a higher order may come from meanwhile.
        state: of the attempt.
        results: makes them safe.
        clock: to measure with.
    """

    def __init__(self, link: Link, orders: Orders, state: State, results: Results, clock: Clock) -> None:
        self._link = link
        self._orders = orders
        self._state = state
        self._results = results
        self._clock = clock

    def obey(self, order: Order) -> None:
        """Do what the order asks; a higher one overtakes it. Returns when no process of the job is left."""
        while True:
            say(f"{order.kind}: {order.reason or 'no reason given'}")
            self._link.phase = "stopping"
            try:
                if order.kind == "release":
                    self._release(order)
                elif order.kind == "stop":
                    self._stop(order)
            except Ended as higher:
                order = higher.order
                continue
            if self._state.job:
                self._state.job.end(0)
            return

    def _release(self, order: Order) -> None:
        """Stop the task, make its last checkpoint, report that the job may go on elsewhere."""
        job, number = self._state.job, self._state.committed
        if job is not None and self._state.started and not self._state.task_over:
            number = self._leave(job, order)
        elif job is not None:
            job.end(URGENT_GRACE_SECONDS, lambda: self._orders.check(order.rank))
            self._results.save_failed_run(job, _reason(order), lambda: self._orders.check(order.rank))
            number = self._state.committed
        self._report_released(order, number)

    def _leave(self, job: Job, order: Order) -> Optional[int]:
        """Leave a started task in a checkpoint. One that ended before we told it to has a result instead, and may
        have to be started again from it.
        """

        def check() -> None:
            self._orders.check(order.rank)

        code = None if self._state.died_with_machine else job.exit_code()
        if code is not None:
            self._results.task_is_over(job, code, check)
            self._results.save_failed_run(job, _reason(order), check)
            return self._state.committed
        left = None if order.ends_at is None else order.ends_at - self._clock.monotonic()
        limits = urgent_limits(left) if order.urgent else Limits()
        return self._results.last_checkpoint(job, _reason(order), limits, check)

    def _stop(self, order: Order) -> None:
        """End the task; nothing is kept of it but its log."""
        if self._state.job:
            self._state.job.end(self._state.job.plan.grace_seconds, lambda: self._orders.check(order.rank))
        self._report_released(order, self._state.committed)

    def _report_released(self, order: Order, number: Optional[int]) -> None:
        self._link.report("released", {"checkpoint": number, "reason": order.reason})
        self._link.delivered(lambda: self._orders.check(order.rank))


def _reason(order: Order) -> str:
    """What its last checkpoint is made for."""
    return order.reason if order.reason in _REASONS else TAKEN_BACK
