"""The job on this machine: its scripts, its work directory, its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Callable, Dict, Optional, Tuple

from spotferry.agent.clock import Check, Clock
from spotferry.agent.commands import Commands, Report, shown
from spotferry.agent.criu import prefer_high_pids
from spotferry.agent.criu_engine import CriuEngine
from spotferry.agent.engines import CRIU, PATHS, WORKDIR, Engine
from spotferry.agent.errors import AddressExpired, CommandFailed, StepFailed, reason_of
from spotferry.agent.joblog import JobLog
from spotferry.agent.paths import PathsEngine
from spotferry.agent.place import WorkPlace
from spotferry.agent.plan import FINALIZE, Plan
from spotferry.agent.saving import Saving
from spotferry.agent.settings import Places
from spotferry.agent.signals import Request
from spotferry.agent.subject import Fate, Subject, Wanted
from spotferry.agent.task import TASK, Ending, Runner, Script
from spotferry.agent.uploads import Uploader
from spotferry.agent.workdir import WorkdirEngine
from spotferry.agent.world import World, checked_variables


@dataclass(frozen=True)
class Tools:
    """What a job is done with.

    Attributes:
        world: where it runs.
        places: the agent's directories.
        runner: runs scripts.
        log: of setup and task.
        uploader: sends archives.
        report: takes event and data of what is reported from within.
        clock: to wait on.
    """

    world: World
    places: Places
    runner: Runner
    log: JobLog
    uploader: Uploader
    report: Report
    clock: Clock


class Job:
    """What is done with the job; when it is done, `life` decides.

    Args:
        plan: what hello said.
        tools: what it is done with.

    Attributes:
        plan: may be replaced by a newer one.
    """

    def __init__(self, plan: Plan, tools: Tools) -> None:
        self.plan = plan
        self._tools = tools
        self._environment: Optional[Dict[str, str]] = None
        self._restored_from = ""
        self._task: Optional[Script] = None
        self._request = Request(tools.world, tools.places.base, tools.clock)
        self._commands = Commands(self._lines_of, self._start_beside, tools.runner, tools.report, tools.clock)

    @cached_property
    def _work_dir(self) -> Path:
        return self._tools.world.work_dir(self.plan.work_dir_name)

    @cached_property
    def _saving(self) -> Saving:
        place = WorkPlace(self._tools.world, self._work_dir, self._tools.clock)
        paths = PathsEngine(
            place, lambda: self.plan.options, lambda: self.plan.outputs, self._request, self._tools.places.spool
        )
        engines: Dict[str, Engine] = {WORKDIR: WorkdirEngine(place), PATHS: paths, CRIU: self._criu}
        return Saving(place, engines, {CRIU: self._criu.refusal}, self._tools.uploader, self._tools.clock)

    @cached_property
    def _criu(self) -> CriuEngine:
        place = WorkPlace(self._tools.world, self._work_dir, self._tools.clock)
        path = lambda: self._variables()["PATH"]  # noqa: E731
        alone = lambda: self.plan.options.engine == CRIU  # noqa: E731
        return CriuEngine(place, self._tools.runner, self._tools.places.spool, path, alone)

    def prepare(self, check: Check, refresh: Callable[[], None]) -> None:
        """Put the pristine upload in place.

        Raises:
            StepFailed: it cannot be had.
        """
        try:
            self._saving.unpack_upload(self.plan.work_dir, check, fresh=False)
        except AddressExpired:
            refresh()
            self._saving.unpack_upload(self.plan.work_dir, check, fresh=True)

    def start_setup(self, ended: Callable[[], None]) -> Script:
        """Start the lines of `setup`."""
        self._environment = None
        self._request.make_places()
        return self._start("setup", self.plan.setup, ended)

    def setup_ended(self, ending: Ending, check: Check) -> None:
        """Keep what setup exported, and run what comes after it.

        Raises:
            StepFailed: one of them failed; the report names the line.
        """
        if ending.exit_code != 0:
            line = shown(self.plan.setup, ending.outcome.line)
            raise StepFailed("setup_failed", {"exit_code": ending.exit_code, "line": line})
        self._environment = ending.outcome.environment
        try:
            self._commands.run("post_setup", check)
        except CommandFailed as failed:
            line = f"post_setup: {failed.line}"
            raise StepFailed("setup_failed", {"exit_code": failed.exit_code, "line": line}) from failed

    def restore(self, check: Check, refresh: Callable[[], None]) -> Tuple[int, str]:
        """As `Saving.restore`, with fresh addresses when those of the plan ran out, and with what comes before and
        after it.

        Raises:
            StepFailed: no checkpoint can be restored, or a command failed.
        """
        self._step("pre_restore", check)
        try:
            number, why_not = self._saving.restore(self.plan.checkpoints, check, fresh=False)
        except AddressExpired:
            refresh()
            number, why_not = self._saving.restore(self.plan.checkpoints, check, fresh=True)
        self._restored_from = str(number)
        self._step("post_restore", check)
        return number, why_not

    def _step(self, command: str, check: Check) -> None:
        if self.plan.mode == FINALIZE:  # nothing of the job runs any more
            return
        try:
            self._commands.run(command, check)
        except CommandFailed as failed:
            raise StepFailed("startup_failed", {"reason": str(failed)}) from failed

    def start_task(self, restored_from: Optional[int], ended: Callable[[], None]) -> None:
        """Start the task, or what runs instead of it after a restore, this one or an earlier one; processes that a
        restore brought back go on instead.

        Raises:
            StepFailed: it could not be started.
        """
        if restored_from is not None:
            self._restored_from = str(restored_from)
        brought = self._criu.brought()
        if brought is not None:
            self._tools.log.complete(complete=False)
            self._task = self._tools.runner.adopt(brought, ended)
            return
        if not self._criu.unavailable():
            prefer_high_pids()
        restored = bool(self._restored_from and self.plan.restored_task)
        lines = self.plan.restored_task if restored else self.plan.task
        self._task = self._start(TASK, lines, ended)

    def exit_code(self) -> Optional[int]:
        """The task's exit status; None before it has one."""
        ending = self._task.ending() if self._task else None
        return ending.exit_code if ending else None

    def end(self, grace_seconds: float, check: Check = lambda: None) -> None:
        """End every process of the job; afterwards the log is complete."""
        self._tools.runner.end(grace_seconds, check)
        self._tools.log.complete(complete=True)

    def checkpoint(self, wanted: Wanted, check: Check) -> int:
        """Make a checkpoint, with what comes before and after it; its number. A task that leaves has ended then.

        Raises:
            CommandFailed, TransferFailed, Unreadable, OSError, ValueError: nothing was committed; a task that leaves
                may still run.
        """
        began_at = self._tools.clock.monotonic()
        lives = wanted.fate is not Fate.IS_OVER
        if lives:
            self._commands.run("pre_checkpoint", check, wanted.command_seconds)
        subject = Subject(self._tools.runner, wanted, self._tools.clock, check)
        number = self._saving.checkpoint(subject, self.plan.options, began_at, check)
        if lives:
            self._commands.tell("post_checkpoint", check)
        if wanted.fate is not Fate.GOES_ON:
            self._tools.log.complete(complete=True)
        return number

    def send_outputs(self, check: Check) -> None:
        """As `Saving.send_outputs`, of the plan's outputs."""
        self._saving.send_outputs(self.plan.outputs, check)

    def _lines_of(self, command: str) -> Tuple[str, ...]:
        return self.plan.commands.get(command, ())

    def _variables(self) -> Dict[str, str]:
        """What setup exported; before that, what it starts with."""
        return self._environment or self._tools.world.environment(checked_variables(self.plan.variables))

    def _start_beside(self, name: str, lines: Tuple[str, ...]) -> Script:
        return self._start(name, lines, lambda: None, leads=False)

    def _start(self, name: str, lines: Tuple[str, ...], ended: Callable[[], None], *, leads: bool = True) -> Script:
        environment = {
            **self._variables(),
            "SPOTFERRY_JOB_ID": self.plan.job_id,
            "SPOTFERRY_EPOCH": str(self.plan.epoch),
            "SPOTFERRY_RESTORED_FROM": self._restored_from,
            "SPOTFERRY_WORK_DIR": str(self._work_dir),
            "SPOTFERRY_INPUTS_DIR": str(self._tools.world.inputs_dir),
            **self._request.variables(),
        }
        self._tools.log.complete(complete=False)
        try:
            return self._tools.runner.start(name, lines, self._work_dir, environment, ended, leads=leads)
        except (OSError, ValueError) as error:
            reason = f"{name} could not be started: {reason_of(error)}"
            raise StepFailed("startup_failed", {"reason": reason}) from error
