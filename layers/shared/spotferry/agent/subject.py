"""The task as a checkpoint finds it: it goes on afterwards, leaves with the machine, or is over."""

from __future__ import annotations

import enum
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Iterator, Optional

from spotferry.agent.chunks import Room
from spotferry.agent.clock import Check, Clock
from spotferry.agent.task import Runner


class Fate(enum.Enum):
    """What becomes of the task after its checkpoint."""

    GOES_ON = "goes on"
    LEAVES = "leaves"
    IS_OVER = "is over"


@dataclass(frozen=True)
class Wanted:
    """A checkpoint that is to be made.

    Attributes:
        reason: as the protocol has it.
        fate: of the task.
        exit_code: of a task that is over.
        save_seconds: how long the task may take to write what it keeps itself.
        grace_seconds: how long a task that leaves may take to end.
        command_seconds: how long the lines of `pre_checkpoint` may take.
    """

    reason: str
    fate: Fate
    exit_code: Optional[int] = None
    save_seconds: float = 30.0
    grace_seconds: float = 30.0
    command_seconds: float = 600.0


class Subject:
    """The task, in the hands of an engine.

    Args:
        runner: who runs it.
        wanted: the checkpoint.
        clock: to measure with.
        check: called while the task has its grace; may raise, and then nothing of the task is left.

    Attributes:
        wanted: the checkpoint.
        runner: for engines that need more than `still`.
        paused_seconds: how long the task stood still.
    """

    def __init__(self, runner: Runner, wanted: Wanted, clock: Clock, check: Check) -> None:
        self.wanted = wanted
        self.runner = runner
        self.paused_seconds = 0.0
        self._clock = clock
        self._check = check

    @contextmanager
    def still(self, room: Room) -> Iterator[None]:
        """Nothing of the job moves in the block: it is stopped where it goes on afterwards, and then chunks are taken
        in as fast as they are made; else it is ended.
        """
        if self.wanted.fate is Fate.LEAVES:
            self.runner.end(self.wanted.grace_seconds, self._check)
        if self.wanted.fate is not Fate.GOES_ON:
            yield
            return
        began_at = self._clock.monotonic()
        stopped = self.runner.freeze()
        try:
            with room.hurried():
                yield
        finally:
            self.runner.thaw(stopped)
            self.paused_seconds += self._clock.monotonic() - began_at

    @contextmanager
    def dumped(self, dump: Callable[[], None], room: Room) -> Iterator[None]:
        """Nothing of the job moves in the block: `dump` stops the task where it stands, with no word to it. A task that
        leaves goes on elsewhere from there, so it is killed afterwards; any other goes on.
        """
        began_at = self._clock.monotonic()
        dump()
        try:
            with room.hurried():
                yield
        finally:
            if self.wanted.fate is Fate.GOES_ON:
                self.runner.resume()
            else:
                self.runner.end(0)
            self.paused_seconds += self._clock.monotonic() - began_at
