"""What can happen to a job because a person wants it, or its time or its money is up."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """A person wants a checkpoint of the running task."""

    by: str


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """A person wants the job to end."""

    by: str


@dataclass(frozen=True, slots=True)
class RetryRequested:
    """A person wants a held machine to try again."""

    by: str


@dataclass(frozen=True, slots=True)
class LimitReached:
    """The job has used up what its file allows; `limit` says which limit and how much was used, in words."""

    limit: str


@dataclass(frozen=True, slots=True)
class HoldExpired:
    """Nobody asked for a retry in time."""


PersonsOrder = CheckpointRequested | CancelRequested | RetryRequested
"""What a person asks for."""
