"""What an attempt has come to, and how its results are made safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from spotferry.agent.clock import Check
from spotferry.agent.commands import COMMAND_SECONDS, URGENT_COMMAND_SECONDS
from spotferry.agent.errors import CommandFailed, CriuFailed, StepFailed, TransferFailed, Unreadable, reason_of
from spotferry.agent.job import Job
from spotferry.agent.link import Link
from spotferry.agent.subject import Fate, Wanted

URGENT_GRACE_SECONDS = 5.0
"""How long a task has when the cloud takes the machine back: the rest of the notice is for its checkpoint."""

URGENT_SAVE_SECONDS = 10.0
"""How long it has to write its own checkpoint then, where nobody says when the machine goes; half of what is left where
somebody does."""

_LEAST_SAVE_SECONDS = 2.0

FAILURES = (CommandFailed, CriuFailed, StepFailed, TransferFailed, Unreadable, OSError, ValueError, RecursionError)
"""What may go wrong with a checkpoint or outputs; each is reported, none ends the agent."""


@dataclass(frozen=True)
class Limits:
    """How long the steps of a last checkpoint may take; the fields are as in `Wanted`."""

    save_seconds: float = float("inf")
    grace_seconds: float = float("inf")
    command_seconds: float = COMMAND_SECONDS


def urgent_limits(left: Optional[float]) -> Limits:
    """Those while the cloud takes the machine back.

    Args:
        left: seconds until it does; None where nobody says.
    """
    save = URGENT_SAVE_SECONDS if left is None else max(_LEAST_SAVE_SECONDS, left / 2)
    return Limits(save, URGENT_GRACE_SECONDS, URGENT_COMMAND_SECONDS)


@dataclass
class State:
    """How far the attempt is.

    Attributes:
        job: known after hello.
        started: the task was started.
        task_over: the task ended by itself, and its result is being, or was, made safe.
        result_saved: a checkpoint holds what the task that is over left.
        failed: so it ended, and nobody has started it again: another machine may have to.
        died_with_machine: the task's end is no result: the machine was being shut down.
        committed: number of the newest checkpoint that this attempt made, or finalizes.
    """

    job: Optional[Job] = None
    started: bool = False
    task_over: bool = False
    result_saved: bool = False
    failed: bool = False
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
        self._checkpoint(job, Wanted(reason, Fate.GOES_ON, save_seconds=job.plan.options.grace_seconds), check)
        self._link.phase = "running"

    def last_checkpoint(self, job: Job, reason: str, limits: Limits, check: Check) -> Optional[int]:
        """A checkpoint with which a task leaves; its number, None when it failed. The task has ended in any case."""
        wanted = Wanted(
            reason,
            Fate.LEAVES,
            save_seconds=min(job.plan.options.grace_seconds, limits.save_seconds),
            grace_seconds=min(job.plan.grace_seconds, limits.grace_seconds),
            command_seconds=limits.command_seconds,
        )
        try:
            return self._checkpoint(job, wanted, check)
        finally:
            job.end(wanted.grace_seconds, check)

    def _checkpoint(self, job: Job, wanted: Wanted, check: Check) -> Optional[int]:
        """Its number; None when it failed, which is reported."""
        try:
            self._state.committed = job.checkpoint(wanted, check)
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
        self._state.task_over, self._state.result_saved, self._state.failed = True, False, code != 0
        if job.plan.outputs:
            self._link.phase = "finalizing"
            wanted = Wanted("job_termination", Fate.IS_OVER, exit_code=code)
            self._state.result_saved = self._checkpoint(job, wanted, check) is not None
        self.report_exit(job, code)

    def save_failed_run(self, job: Job, reason: str, check: Check) -> None:
        """A checkpoint of what a failed task left that another machine may start again, if there is none yet. It is no
        result, so it has no exit status.
        """
        if self._state.failed and not self._state.result_saved:
            self._checkpoint(job, Wanted(reason, Fate.IS_OVER), check)

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
