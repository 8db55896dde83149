"""What DynamoDB's errors mean."""

from collections.abc import Sequence

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from pynamodb.exceptions import (
    CancellationReason,
    GetError,
    PynamoDBException,
    TransactWriteError,
    UpdateError,
    VerboseClientError,
)

from spotferry.store.failures import PAUSE_SECONDS, TRIES, condition_failed, through_collisions, translated
from spotferry.types.errors import Conflict, Misconfigured, NotYet, SpotferryError, TooLarge


def cancelled(*codes: str | None, message: str = "") -> TransactWriteError:
    """A transaction that was cancelled for these reasons, one an item."""
    reasons = [CancellationReason(code, message) if code else None for code in codes]
    error = {"Error": {"Code": "TransactionCanceledException", "Message": "Transaction cancelled"}}
    cause = VerboseClientError(error, "TransactWriteItems", cancellation_reasons=reasons)
    return TransactWriteError("failed", cause)


def refused(code: str, message: str = "words") -> UpdateError:
    """A call that the service refused."""
    return UpdateError("failed", VerboseClientError({"Error": {"Code": code, "Message": message}}, "UpdateItem"))


@pytest.mark.parametrize(
    ("error", "ours"),
    [
        (cancelled(None, "ConditionalCheckFailed"), Conflict),
        (cancelled("TransactionConflict", None), Conflict),
        (cancelled("ThrottlingError", "ConditionalCheckFailed"), Conflict),
        (refused("ConditionalCheckFailedException"), Conflict),
        (refused("TransactionConflictException"), Conflict),
        (cancelled(None, "ThrottlingError"), NotYet),
        (cancelled("ProvisionedThroughputExceeded"), NotYet),
        (refused("ProvisionedThroughputExceededException"), NotYet),
        (refused("ThrottlingException"), NotYet),
        (refused("RequestLimitExceeded"), NotYet),
        (refused("InternalServerError"), NotYet),
        (refused("TransactionInProgressException"), NotYet),
        (GetError("failed", EndpointConnectionError(endpoint_url="http://x")), NotYet),
        (GetError("failed", ReadTimeoutError(endpoint_url="http://x")), NotYet),
        (cancelled("ValidationError", message="Item size to update has exceeded the maximum allowed size"), TooLarge),
        (refused("ValidationException", "Item size has exceeded the maximum allowed size"), TooLarge),
        (refused("ResourceNotFoundException"), Misconfigured),
        (refused("AccessDeniedException"), Misconfigured),
        (refused("ValidationException"), Misconfigured),
        (GetError("failed", NoCredentialsError()), Misconfigured),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_error_is_named_for_what_to_do(error: PynamoDBException, ours: type[SpotferryError]) -> None:
    """Each of the service's errors becomes the one of ours that says what to do next, and tells what was being done."""
    found = translated(error, "save job j-1")
    assert type(found) is ours
    assert "save job j-1" in str(found)


def test_the_services_words_are_kept() -> None:
    """An operator reads the code and the words of the service."""
    assert "AccessDeniedException: not authorized" in str(
        translated(refused("AccessDeniedException", "not authorized"), "x")
    )


def run(errors: Sequence[PynamoDBException]) -> tuple[int, list[float]]:
    """How often a call was made that fails in these ways first, and the pauses between."""
    left, pauses, calls = list(errors), list[float](), 0

    def call() -> int:
        nonlocal calls
        calls += 1
        if left:
            raise left.pop(0)
        return calls

    return through_collisions(call, pauses.append), pauses


def test_a_collision_is_tried_again() -> None:
    """A writer that met another goes again, with pauses that grow."""
    calls, pauses = run([cancelled("TransactionConflict", None), refused("TransactionConflictException")])
    assert calls == 3
    assert PAUSE_SECONDS / 2 <= pauses[0] < PAUSE_SECONDS * 1.5
    assert PAUSE_SECONDS <= pauses[1] < PAUSE_SECONDS * 3


def test_collisions_without_end_are_a_conflict() -> None:
    """The tries are bounded, and the last error is told."""
    with pytest.raises(TransactWriteError) as caught:
        run([cancelled("TransactionConflict")] * TRIES)
    assert type(translated(caught.value, "x")) is Conflict
    assert run([cancelled("TransactionConflict")] * (TRIES - 1))[0] == TRIES


@pytest.mark.parametrize(
    "error",
    [
        cancelled("TransactionConflict", "ConditionalCheckFailed"),
        refused("ConditionalCheckFailedException"),
        refused("AccessDeniedException"),
        GetError("failed", ReadTimeoutError(endpoint_url="http://x")),
    ],
)
def test_nothing_else_is_tried_again(error: PynamoDBException) -> None:
    """A condition that failed stays failed, and other errors are the client's own to repeat."""
    with pytest.raises(type(error)):
        run([error])


def test_a_condition_that_failed_is_told_from_the_rest() -> None:
    """Only the condition's own code counts."""
    assert condition_failed(cancelled(None, "ConditionalCheckFailed"))
    assert condition_failed(refused("ConditionalCheckFailedException"))
    assert not condition_failed(cancelled("TransactionConflict"))
    assert not condition_failed(GetError("failed", NoCredentialsError()))
