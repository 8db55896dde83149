"""Where things are in the bucket."""

import re
import secrets
from datetime import datetime

from spotferry.types.errors import InvalidInput, Problem
from spotferry.types.words import shown

_TIME_DIGITS = 12
_PART_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def upload_key(sha256: str) -> str:
    """A packed work directory, named by its content."""
    return f"uploads/{sha256}.tar.gz"


def agent_key(sha256: str) -> str:
    """The agent's zip application, named by its content."""
    return f"agent/{sha256}.pyz"


def new_nonce(now: datetime) -> str:
    """Names one upload: 12 hex digits of when it was begun, in milliseconds, and 20 that nobody guesses."""
    return f"{_milliseconds(now)}{secrets.token_hex(10)}"


def begun_later(key: str, other: str, now: datetime) -> bool:
    """Whether the archive of one manifest key was begun later than that of another, by the same attempt.

    A name that tells a time to come is of an older broker, whose names told none.
    """
    (place, begun), (other_place, other_begun) = _begun(key), _begun(other)
    return place == other_place and other_begun < begun <= _milliseconds(now)


def _begun(key: str) -> tuple[str, str]:
    place, _, nonce = key.removesuffix("/manifest.json").rpartition("/")
    return place, nonce[:_TIME_DIGITS]


def _milliseconds(at: datetime) -> str:
    return f"{int(at.timestamp() * 1000):0{_TIME_DIGITS}x}"


def archive_prefix(kind: str, job_id: str, epoch: int, nonce: str) -> str:
    """Everything of one checkpoint, or of one try to send outputs."""
    if not re.fullmatch(r"[0-9a-f]{32}", nonce):
        raise InvalidInput([Problem("nonce", "is not one that this broker gave out")])
    return f"{job_prefix(kind, job_id)}{epoch:06}/{nonce}/"


def job_prefix(kind: str, job_id: str) -> str:
    """All archives of one kind that a job made."""
    return f"{'checkpoints' if kind == 'checkpoint' else 'outputs'}/{job_id}/"


def part_key(prefix: str, name: str) -> str:
    """One part of an archive."""
    if not _PART_NAME.fullmatch(name) or name == "manifest.json":
        raise InvalidInput([Problem("parts.name", f"{shown(name)} is not a plain lower-case file name")])
    return f"{prefix}{name}"


def manifest_key(prefix: str) -> str:
    """The manifest of an archive."""
    return f"{prefix}manifest.json"


def log_prefix(job_id: str) -> str:
    """All that a job printed."""
    return f"logs/{job_id}/"


def log_key(job_id: str, epoch: int, begin: int, end: int) -> str:
    """A piece of what an attempt printed, by where it begins and ends; keys sort in the order of the text.

    A piece that is sent again because its answer was lost may have grown by then: it gets a key behind the first one's.
    """
    return f"{log_prefix(job_id)}{epoch:06}/{begin:015}-{end:015}"
