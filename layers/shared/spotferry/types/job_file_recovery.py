"""The part of a job file about its life: checkpoints, restarts, limits."""

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import Field

from spotferry.types.base import Value
from spotferry.types.errors import Problem
from spotferry.types.job_file_words import check_output

Engine = Literal["auto", "paths", "workdir", "criu"]

ENGINES = ("auto", "paths", "workdir", "criu")
SIGNALS = ("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT", "SIGQUIT", "SIGALRM", "SIGTERM", "SIGCONT", "SIGURG", "SIGWINCH")
"""Signals that a program can catch, and that mean something else to nobody when it has asked for them."""

OTHER_SIGNAL_NAMES: Mapping[str, str] = {
    **{name.removeprefix("SIG").lower(): name for name in SIGNALS},
    **{name.lower(): name for name in SIGNALS},
    "10": "SIGUSR1",
    "12": "SIGUSR2",
}
"""As `kill` takes them, and Linux's numbers of those that are meant for this."""

MIN_INTERVAL_SECONDS = 10
"""A checkpoint is four requests and a saved change: more often than that it costs more than it saves."""
MAX_INTERVAL_SECONDS = 604_800
DEFAULT_KEEP = 2
MAX_KEEP = 100
MAX_RESTARTS = 1000
MAX_EXIT_CODE = 255


class CheckpointOptions(Value):
    """When and how a job is checkpointed.

    Attributes:
        engine: how; "auto" chooses on the machine, and says which and why.
        paths: files, directories or globs below the work directory that hold the application's own checkpoints.
        signal: sent to the task before the paths are read, so that it writes them; "" for none.
        interval_seconds: between two periodic ones; 0: none; None: as the pool's interruptions and their cost suggest.
        keep: how many of the newest are kept.
        on_rebalance: a cloud's forecast that it may take the machine back moves the job at once.
    """

    engine: Engine = "auto"
    paths: tuple[str, ...] = ()
    signal: str = ""
    interval_seconds: int | None = Field(default=None, ge=0, le=MAX_INTERVAL_SECONDS)
    keep: int = Field(default=DEFAULT_KEEP, ge=1, le=MAX_KEEP)
    on_rebalance: bool = False


class RetryOptions(Value):
    """What becomes of a task that fails by itself.

    Attributes:
        max_restarts: how often it is started again on its machine; machines that were lost do not count.
        on_exit_codes: only after these; empty: after any that is not 0.
    """

    max_restarts: int = Field(default=0, ge=0, le=MAX_RESTARTS)
    on_exit_codes: tuple[int, ...] = ()


def check_checkpoint_path(path: str) -> str:
    """A path or glob below the work directory."""
    return check_output(path).replace("outputs are", "checkpoints are made of")


def check_recovery(fields: Mapping[str, object]) -> Iterator[Problem]:
    """What is wrong between keys that are well one by one: a key that would have no effect is refused."""
    checkpoint, retry = fields.get("checkpoint"), fields.get("retry")
    if isinstance(checkpoint, dict):
        yield from _check_engine(checkpoint)
    for limit in ("max_duration_hours", "max_cost_usd"):
        if limit in fields and not fields[limit]:
            yield Problem(limit, "must be above 0, not 0: leave it out for no limit")
    if isinstance(retry, dict) and retry.get("on_exit_codes") and not retry.get("max_restarts"):
        yield Problem("retry.on_exit_codes", "has no effect without retry.max_restarts")


def _check_engine(checkpoint: Mapping[str, object]) -> Iterator[Problem]:
    engine, paths = checkpoint.get("engine", "auto"), checkpoint.get("paths")
    if engine == "paths" and not paths:
        yield Problem("checkpoint.engine", "paths needs checkpoint.paths: what the application writes")
    if paths and engine not in {"auto", "paths"}:
        yield Problem("checkpoint.paths", f"is not used by engine {engine}; leave out one of the two")
    if checkpoint.get("signal") and not paths:
        yield Problem("checkpoint.signal", "is sent before checkpoint.paths are read: say which they are")
