"""The lines that a job, or its deployment, has for points of a job's life: before a checkpoint, after a restore, ..."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional, Protocol, Tuple

from spotferry.agent.clock import Check, Clock
from spotferry.agent.errors import CommandFailed, Data
from spotferry.agent.task import Runner, Script

COMMAND_SECONDS = 600.0
"""How long one point's lines may take before they are killed."""

URGENT_COMMAND_SECONDS = 15.0
"""The same while the cloud takes the machine back."""

_LOOK_SECONDS = 0.05
_KILLED = 137
SHOWN_LINE = 500
"""A report shows at most so much of the line that failed."""


Report = Callable[[str, Data], None]
"""Takes event and data."""


class Start(Protocol):
    """Starts lines in the job's world, beside what runs."""

    def __call__(self, name: str, lines: Tuple[str, ...]) -> Script:
        """The script; raises StepFailed where it could not be started."""
        ...


@dataclass(frozen=True)
class Commands:
    """Runs them, and reports how each ended.

    Args:
        lines: those of a point, by its name.
        start: starts them.
        runner: kills those that take too long.
        report: event and data.
        clock: to wait on.
    """

    lines: Callable[[str], Tuple[str, ...]]
    start: Start
    runner: Runner
    report: Report
    clock: Clock

    def run(self, name: str, check: Check, seconds: float = COMMAND_SECONDS) -> None:
        """Run the lines of a point; nothing where there are none.

        Raises:
            CommandFailed: a line failed, or they took longer than `seconds`.
        """
        lines = self.lines(name)
        if not lines:
            return
        began_at = self.clock.monotonic()
        script = self.start(name, lines)
        in_time = self._over(script, began_at + seconds, check)
        took = round(self.clock.monotonic() - began_at, 3)
        ending = script.ending()
        code = ending.exit_code if ending else _KILLED
        self.report("command_ended", {"command": name, "exit_code": code, "seconds": took})
        if not in_time:
            raise CommandFailed(name, f"took longer than {seconds:g} seconds", code, "")
        if ending is not None and code != 0:
            line = shown(lines, ending.outcome.line)
            raise CommandFailed(name, f"ended with status {code} at: {line}", code, line)

    def tell(self, name: str, check: Check) -> None:
        """Run the lines of a point whose failure changes nothing: the report says it."""
        try:
            self.run(name, check)
        except CommandFailed:
            return

    def _over(self, script: Script, until: float, check: Check) -> bool:
        """Wait for its end; False where it had to be killed. What `check` raises kills it too."""
        try:
            while not script.over(_LOOK_SECONDS):
                check()
                if self.clock.monotonic() >= until:
                    return False
        finally:
            if script.ending() is None:
                self.runner.drop(script)
                script.over(1.0)
        return True


def shown(lines: Tuple[str, ...], number: Optional[int]) -> str:
    """The line of that number, as a report shows it; "" where there is none."""
    return lines[number][:SHOWN_LINE] if number is not None and number < len(lines) else ""
