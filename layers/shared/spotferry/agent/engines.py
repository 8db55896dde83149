"""Engines: the ways to put a task's state into the parts of a checkpoint and back, and which one is taken."""

from __future__ import annotations

from typing import Callable, Mapping, Optional, Protocol, Tuple

from spotferry.agent.clock import Check
from spotferry.agent.errors import CriuFailed
from spotferry.agent.plan import Options, Saved
from spotferry.agent.subject import Fate, Subject
from spotferry.agent.uploads import Outgoing

WORKDIR = "workdir"
PATHS = "paths"
CRIU = "criu"
AUTO = "auto"


class Engine(Protocol):
    """One way to make checkpoints, for as long as the attempt lives."""

    @property
    def parts(self) -> Tuple[str, ...]:
        """The parts that the next capture may write."""
        ...

    def capture(self, subject: Subject, outgoing: Outgoing, check: Check) -> None:
        """Write the state into parts. It returns when all is read; then the task may go on, and the bytes follow.

        Raises:
            CriuFailed: it cannot be done for this task; nothing was captured, and the task runs on.
            OSError, ValueError, AgentError: it did not work; a task that was to go on does.
        """
        ...

    def committed(self, number: Optional[int]) -> None:
        """What was captured counts as this checkpoint; None: it never will."""
        ...

    def restore(self, saved: Saved, check: Check) -> str:
        """Bring a checkpoint of this engine back; what of it did not come, "" when all did.

        Raises:
            AddressExpired: an address is no longer good.
            ArchiveInvalid, TransferFailed, OSError: it is not whole, or cannot be had; the work directory is as before.
        """
        ...


def choose(options: Options, fate: Fate, refusals: Mapping[str, Callable[[], str]]) -> Tuple[str, str]:
    """The engine for the next checkpoint, and why that one.

    Args:
        options: of the job.
        fate: of the task: one that is over has no processes to dump.
        refusals: why an engine that does not always work cannot be used now, by name; "" when it can.

    Raises:
        CriuFailed: the job asks for criu alone, which cannot be used now.
    """
    if options.engine == WORKDIR:
        return WORKDIR, "workdir: the job asks for it"
    if options.engine in (PATHS, AUTO) and options.paths:
        return PATHS, "paths: they are named"
    if options.engine == PATHS:
        return WORKDIR, "workdir: the job names no paths"
    if fate is Fate.IS_OVER:
        return WORKDIR, "workdir: the task is over"
    refusal = refusals[CRIU]() if CRIU in refusals else "criu is not part of this agent"
    if not refusal:
        return CRIU, "criu: it works for this process tree"
    if options.engine == CRIU:
        raise CriuFailed(refusal)
    return WORKDIR, f"workdir: {refusal}"
