"""The job on this machine: its scripts, its work directory, its checkpoints."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Callable, Dict, Iterator, Optional, Tuple

from spotferry.agent.clock import Check, Clock
from spotferry.agent.errors import AddressExpired, StepFailed, reason_of
from spotferry.agent.joblog import JobLog
from spotferry.agent.plan import Plan
from spotferry.agent.saving import Saving
from spotferry.agent.task import Ending, Runner, Script
from spotferry.agent.uploads import Uploader
from spotferry.agent.world import World, checked_variables

SHOWN_LINE = 500
"""A report shows at most so much of the line that failed."""


class Job:
    """What is done with the job; when it is done, `life` decides.

    Args:
        plan: what hello said.
        world: where it runs.
        runner: runs scripts.
        log: of setup and task.
        uploader: sends archives.
        spool: directory for archives.
        clock: to wait on.

    Attributes:
        plan: may be replaced by a newer one.
    """

    def __init__(
        self, plan: Plan, world: World, runner: Runner, log: JobLog, uploader: Uploader, spool: Path, clock: Clock
    ) -> None:
        self.plan = plan
        self._world = world
        self._runner = runner
        self._log = log
        self._uploader = uploader
        self._spool = spool
        self._clock = clock
        self._environment: Optional[Dict[str, str]] = None
        self._task: Optional[Script] = None

    def prepare(self, check: Check, refresh: Callable[[], None]) -> None:
        """Put the pristine upload in place.

        Raises:
            StepFailed: it cannot be had.
        """
        try:
            self._saving().unpack_upload(self.plan.work_dir, check, fresh=False)
        except AddressExpired:
            refresh()
            self._saving().unpack_upload(self.plan.work_dir, check, fresh=True)

    def start_setup(self, ended: Callable[[], None]) -> Script:
        """Start the lines of `setup`."""
        self._environment = None
        return self._start("setup", self.plan.setup, "", ended)

    def setup_ended(self, ending: Ending) -> None:
        """Keep what setup exported.

        Raises:
            StepFailed: it failed; the report names the line.
        """
        if ending.exit_code != 0:
            line = ending.outcome.line
            text = self.plan.setup[line][:SHOWN_LINE] if line is not None and line < len(self.plan.setup) else ""
            raise StepFailed("setup_failed", {"exit_code": ending.exit_code, "line": text})
        self._environment = ending.outcome.environment

    def restore(self, check: Check, refresh: Callable[[], None]) -> Tuple[int, str]:
        """As `Saving.restore`, with fresh addresses when those of the plan ran out."""
        try:
            return self._saving().restore(self.plan.checkpoints, check, fresh=False)
        except AddressExpired:
            refresh()
            return self._saving().restore(self.plan.checkpoints, check, fresh=True)

    def start_task(self, restored_from: Optional[int], ended: Callable[[], None]) -> None:
        """Start the task, or what runs instead of it after a restore.

        Raises:
            StepFailed: it could not be started.
        """
        restored = restored_from is not None
        lines = self.plan.restored_task if restored and self.plan.restored_task else self.plan.task
        self._task = self._start("task", lines, str(restored_from) if restored else "", ended)

    def exit_code(self) -> Optional[int]:
        """The task's exit status; None before it has one."""
        ending = self._task.ending() if self._task else None
        return ending.exit_code if ending else None

    def end(self, grace_seconds: float, check: Check = lambda: None) -> None:
        """End every process of the job; afterwards the log is complete."""
        self._runner.end(grace_seconds, check)
        self._log.complete(complete=True)

    def checkpoint_running(self, reason: str, check: Check) -> int:
        """Stop the task, archive its work directory, let it go on, then send the checkpoint; its number.

        Raises:
            TransferFailed, OSError: nothing was committed.
        """
        with self._frozen():
            packed = self._saving().pack(check)
        return self._saving().commit(packed, reason, check)

    def checkpoint_ended(self, reason: str, check: Check, exit_code: Optional[int] = None) -> int:
        """A checkpoint of a task that was ended, or that is over with an exit status; its number.

        Raises:
            TransferFailed, OSError: nothing was committed.
        """
        packed = self._saving().pack(check)
        return self._saving().commit(packed, reason, check, exit_code)

    def send_outputs(self, check: Check) -> None:
        """As `Saving.send_outputs`, of the plan's outputs."""
        self._saving().send_outputs(self.plan.outputs, check)

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        pids = self._runner.freeze()
        try:
            yield
        finally:
            self._runner.thaw(pids)

    def _saving(self) -> Saving:
        work_dir = self._world.work_dir(self.plan.work_dir_name)
        return Saving(self._world, work_dir, self._spool, self._uploader, self._clock)

    def _start(self, name: str, lines: Tuple[str, ...], restored_from: str, ended: Callable[[], None]) -> Script:
        work_dir = self._world.work_dir(self.plan.work_dir_name)
        environment = {
            **(self._environment or self._world.environment(checked_variables(self.plan.variables))),
            "SPOTFERRY_JOB_ID": self.plan.job_id,
            "SPOTFERRY_EPOCH": str(self.plan.epoch),
            "SPOTFERRY_RESTORED_FROM": restored_from,
            "SPOTFERRY_WORK_DIR": str(work_dir),
            "SPOTFERRY_INPUTS_DIR": str(self._world.inputs_dir),
        }
        self._log.complete(complete=False)
        try:
            return self._runner.start(name, lines, work_dir, environment, ended)
        except (OSError, ValueError) as error:
            reason = f"{name} could not be started: {reason_of(error)}"
            raise StepFailed("startup_failed", {"reason": reason}) from error
