"""What DynamoDB's errors mean: our own errors, and which of them are worth another try at once."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError, PartialCredentialsError
from pynamodb.exceptions import CancellationReason, PynamoDBException, TransactWriteError

from spotferry.types.errors import Conflict, Misconfigured, NotYet, SpotferryError, TooLarge

CONDITION_FAILED = "ConditionalCheckFailed"
COLLISIONS = frozenset({"TransactionConflict", "TransactionConflictException"})
"""Two writers met at one item: neither was wrong, and the loser may go again at once."""

BUSY = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionInProgressException",
    }
)
TOO_LARGE = ("item size", "maximum allowed size", "aggregate size")
RETRY_IN = timedelta(seconds=5)
TRIES = 6
PAUSE_SECONDS = 0.01

_Answer = TypeVar("_Answer")


def codes_of(error: PynamoDBException) -> frozenset[str]:
    """The service's codes: of each item of a cancelled transaction, else of the call; empty without an answer."""
    codes = frozenset(reason.code for reason in _reasons(error))
    if codes or not isinstance(error.cause, ClientError):
        return codes
    return frozenset({error.cause.response.get("Error", {}).get("Code", "without a code")})


def condition_failed(error: PynamoDBException) -> bool:
    """A condition of the write did not hold, so nothing was written."""
    return bool(codes_of(error) & {CONDITION_FAILED, f"{CONDITION_FAILED}Exception"})


def translated(error: PynamoDBException, what: str) -> SpotferryError:
    """Our error for the service's.

    Args:
        error: as PynamoDB raised it.
        what: what was being done, for the message ("save job J").
    """
    codes = codes_of(error)
    words = f"cannot {what}: {', '.join(sorted(codes)) or type(error.cause or error).__name__}: {_message_of(error)}"
    if condition_failed(error) or codes & COLLISIONS:
        return Conflict(f"cannot {what}: somebody saved first")
    if any(part in words.lower() for part in TOO_LARGE):
        return TooLarge(f"cannot {what}: the record is over the database's limit of 400 KB an item")
    credentials = isinstance(error.cause, NoCredentialsError | PartialCredentialsError | NoRegionError)
    unanswered = not codes and isinstance(error.cause, BotoCoreError) and not credentials
    if codes & BUSY or unanswered:
        return NotYet(f"{words}. The database is busy or away; try again", RETRY_IN)
    return Misconfigured(f"{words}. Check that the tables exist and that the function's role may use them")


@contextmanager
def translating(what: str) -> Iterator[None]:
    """Raise the service's errors as ours."""
    try:
        yield
    except PynamoDBException as error:
        raise translated(error, what) from error


def through_collisions(call: Callable[[], _Answer], pause: Callable[[float], None]) -> _Answer:
    """The call's answer; it goes again, a few times with growing random pauses, when it met another writer at an item.

    A collision says nothing about the condition of a write: it may be a plain update (a heartbeat) that met a
    transaction. A call that collided wrote nothing.

    Args:
        call: may be repeated.
        pause: waits for so many seconds.
    """
    for tried in range(TRIES - 1):
        try:
            return call()
        except PynamoDBException as error:
            if condition_failed(error) or not codes_of(error) & COLLISIONS:
                raise
        pause(PAUSE_SECONDS * 2**tried * (0.5 + random.random()))  # noqa: S311 - spreads load, hides nothing
    return call()


def _message_of(error: PynamoDBException) -> str:
    words = [reason.message for reason in _reasons(error) if reason.message]
    if words or not isinstance(error.cause, ClientError):
        return "; ".join(words) or str(error.cause or error)
    return str(error.cause.response.get("Error", {}).get("Message", ""))


def _reasons(error: PynamoDBException) -> list[CancellationReason]:
    reasons = error.cancellation_reasons if isinstance(error, TransactWriteError) else []
    return [reason for reason in reasons if reason is not None]
