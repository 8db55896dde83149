"""What an attempt has come to, and how its results are made safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from spotferry.agent.clock import Check
from spotferry.agent.errors import TransferFailed, reason_of
from spotferry.agent.job import Job
from spotferry.agent.link import Link

URGENT_GRACE_SECONDS = 5.0
"""How long a task has when the cloud takes the machine back: the rest of the notice is for its checkpoint."""

FAILURES = (TransferFailed, OSError, ValueError)
"""What may go wrong with a checkpoint or outputs; each is reported, none ends the agent."""


@dataclass
class State:
    """How far the attempt is.

    Attributes:
        job: known after hello.
        started: the task was started.
        task_over: the task ended by itself, and its result is being, or was, made safe.
        died_with_machine: the task's end is no result: the machine was being shut down.
        committed: number of the newest checkpoint that this attempt made, or finalizes.
    """

    job: Optional[Job] = None
    started: bool = False
    task_over: bool = False
    died_with_machine: bool = False
    committed: Optional[int] = None


class Results:
    """Makes checkpoints and results safe, and reports them.

    Args:
        link: to the broker.
        state: kept up to date.
    """

    def __init__(self, link: Link, state: State) -> None:
        self._link = link
        self._state = state

    def checkpoint_running(self, job: Job, reason: str, check: Check) -> None:
        """A checkpoint of a task that goes on."""
        self._link.phase = "checkpointing"
        try:
            self._state.committed = job.checkpoint_running(reason, check)
        except FAILURES as error:
            self._link.report("checkpoint_failed", {"reason": reason_of(error)})
        self._link.phase = "running"

    def last_checkpoint(self, job: Job, reason: str, check: Check, exit_code: Optional[int] = None) -> Optional[int]:
        """A checkpoint of a task that has ended; its number, None when it failed."""
        try:
            self._state.committed = job.checkpoint_ended(reason, check, exit_code)
        except FAILURES as error:
            self._link.report("checkpoint_failed", {"reason": reason_of(error)})
            return None
        return self._state.committed

    def task_is_over(self, job: Job, code: int, check: Check) -> None:
        """The task ended by itself: what it left running is ended, its work directory made safe, its status reported.

        Args:
            job: whose task.
            code: its exit status.
            check: must not raise for a release: this is the very checkpoint that a release would make.
        """
        job.end(URGENT_GRACE_SECONDS, check)
        self._state.task_over = True
        if job.plan.outputs:
            self._link.phase = "finalizing"
            self.last_checkpoint(job, "job_termination", check, code)
        self.report_exit(job, code)

    def report_exit(self, job: Job, code: int) -> None:
        """Report the task's exit status, and whether outputs follow."""
        outputs = bool(job.plan.outputs)
        self._link.phase = "finalizing" if outputs else "stopping"
        self._link.report("task_exited", {"exit_code": code, "outputs": outputs})

    def send_outputs(self, job: Job, check: Check) -> None:
        """Send the outputs, if the job has any."""
        if not job.plan.outputs:
            return
        try:
            job.send_outputs(check)
        except FAILURES as error:
            self._link.report("outputs_failed", {"reason": reason_of(error)})
        self._link.phase = "stopping"
