"""How the task is asked to write its own checkpoint, and says that it has."""

from __future__ import annotations

import os
import signal
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Dict

from spotferry.agent.clock import Check, Clock
from spotferry.agent.subject import Subject
from spotferry.agent.world import World

ENVIRONMENT = "SPOTFERRY_CHECKPOINT_ENV"
READY = "SPOTFERRY_CHECKPOINT_READY"
_LOOK_SECONDS = 0.05


class Request:
    """Asks for one checkpoint after the other.

    Args:
        world: whose task it is.
        base: the agent's directory.
        clock: to wait on.
    """

    def __init__(self, world: World, base: Path, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self._file = base / "scripts" / "checkpoint.env"
        self._ready = base / "ready" / "checkpoint"

    def variables(self) -> Dict[str, str]:
        """What the task finds in its environment: where the request is written, and which file answers it."""
        return {ENVIRONMENT: str(self._file), READY: str(self._ready)}

    def make_places(self) -> None:
        """The answer's directory is the task's, so that its user can make the file; the request's is the agent's."""
        for directory in (self._file.parent, self._ready.parent):
            directory.mkdir(exist_ok=True)
        self._world.give(self._ready.parent)

    def make(self, name: str, subject: Subject, check: Check) -> None:
        """Send the signal, and wait until the task says that its state is on the disk, or its time is over. A task
        that has no handler for the signal is not asked.

        Raises:
            ValueError: there is no such signal.
        """
        number = getattr(signal, name, None)
        if not isinstance(number, signal.Signals):
            raise ValueError(f"checkpoint.signal: there is no signal {name!r}")  # noqa: TRY004  (the value is wrong)
        self._ready.unlink(missing_ok=True)
        until = self._clock.monotonic() + subject.wanted.save_seconds
        self._write(subject.wanted.reason, subject.wanted.save_seconds)
        if not subject.runner.ask(number):
            return
        while not os.path.lexists(self._ready) and self._clock.monotonic() < until:
            check()
            if not subject.runner.lives():
                return
            self._clock.sleep(_LOOK_SECONDS)

    def _write(self, reason: str, seconds: float) -> None:
        deadline = datetime.now(timezone.utc) + timedelta(seconds=seconds)
        text = f"SPOTFERRY_DEADLINE={deadline.isoformat(timespec='seconds')}\nSPOTFERRY_REASON={reason}\n"
        new = self._file.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        new.chmod(0o644)
        new.replace(self._file)
