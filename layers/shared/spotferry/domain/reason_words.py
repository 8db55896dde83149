"""Reasons that travel as codes, in words for people: of checkpoints, of machines that give a job back, of a status."""

from collections.abc import Mapping
from signal import Signals

from spotferry.types.events import CheckpointReason

ASKED_FOR = "asked for"

_CHECKPOINTS: Mapping[str, str] = {
    CheckpointReason.INSTANCE_TERMINATION: "before the machine goes",
    CheckpointReason.JOB_TERMINATION: "after the task ended",
    CheckpointReason.HEARTBEAT: "periodic",
}
_RELEASES: Mapping[str, str] = {
    "": "as asked",
    CheckpointReason.INSTANCE_TERMINATION: "since it goes",
    CheckpointReason.JOB_TERMINATION: "since the job ends",
    "rebalance": "since the job moves to its successor",
}
_SIGNAL_BASE = 128
_COMMENTS: Mapping[str, str] = {"SIGKILL": ", often for lack of memory"}


def checkpoint_words(reason: str | None, *, asked_for: bool) -> str:
    """Why a checkpoint was made; a reason that has no words here stands as it is."""
    return ASKED_FOR if asked_for else _CHECKPOINTS.get(reason or "", reason or "")


def ends_task(reason: str | None) -> bool:
    """Whether the task did not go on after a checkpoint for this reason, so that it stood still for none."""
    return reason in {CheckpointReason.INSTANCE_TERMINATION, CheckpointReason.JOB_TERMINATION}


def release_words(reason: str) -> str:
    """Why a machine gave its job back, as the end of a sentence; a reason without words here stands behind a colon."""
    known = _RELEASES.get(reason)
    return f": {reason}" if known is None else f", {known}"


def end_words(reason: str) -> str:
    """Why a machine ended; a code of a release becomes words."""
    known = _RELEASES.get(reason) if reason else None
    return reason if known is None else f"gave the job back, {known}"


def status_words(exit_code: int) -> str:
    """An exit status, with the signal that it stands for: `status 143 (killed by SIGTERM)`."""
    try:
        name = Signals(exit_code - _SIGNAL_BASE).name
    except ValueError:
        return f"status {exit_code}"
    return f"status {exit_code} (killed by {name}{_COMMENTS.get(name, '')})"
