"""Cursors of job lists: opaque to the caller, checked when they come back."""

import base64
import binascii
import json
from dataclasses import dataclass

from spotferry.store.keys import is_key, parse_sortable
from spotferry.types.errors import InvalidInput, Problem

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Position:
    """The last job of a page; `created_at` is sortable text."""

    owner: str
    created_at: str
    job_id: str


def write_cursor(position: Position) -> str:
    """The position as text that is safe in a URL."""
    fields = [_VERSION, position.owner, position.created_at, position.job_id]
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode().rstrip("=")


def read_cursor(owner: str, cursor: str) -> Position:
    """The position behind a cursor that a list of this owner gave out.

    Raises:
        InvalidInput: it is not one of ours, or another owner's.
    """
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        version, of, created_at, job_id = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        parse_sortable(created_at)
        if version != _VERSION or of != owner or not is_key(job_id):
            raise _foreign()
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError) as error:
        raise _foreign() from error
    return Position(of, created_at, job_id)


def check_limit(limit: int) -> None:
    """A page holds at least one job.

    Raises:
        InvalidInput: it would not.
    """
    if limit < 1:
        raise InvalidInput([Problem("limit", f"must be at least 1, not {limit}")])


def _foreign() -> InvalidInput:
    return InvalidInput(
        [Problem("cursor", "is not one that this list gave out; without one the list starts with the newest")]
    )
