"""Queue batches: each message by itself, so that none holds up another."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from spotferry.runtime.observability import count, logger
from spotferry.runtime.queues import Message
from spotferry.types.errors import Conflict, InvalidInput, NotFound, NotYet, Problem, ProviderError
from spotferry.types.faults import sentence_of
from spotferry.types.words import MOST_TOLD, cut


def each_message(event: Mapping[str, Any], perform: Callable[[Message], object]) -> dict[str, Any]:  # Any: SQS's JSON
    """Perform every message of a batch of effects; see `each_body` for what becomes of one that fails."""
    return each_body(event, lambda body: perform(_message(body)))


def each_body(event: Mapping[str, Any], perform: Callable[[str], object]) -> dict[str, Any]:  # Any: SQS's JSON
    """Perform the body of every message; what is worth another try is reported as failed, the rest is acknowledged.

    A message that cannot be read, or is about nothing that exists, is logged, counted and set aside: no number of
    deliveries would mend it. Any other error goes back to the queue, and after its last receive to the dead letters.

    Returns:
        What SQS expects of a function that reports failures message by message.
    """
    failed = [
        {"itemIdentifier": str(record.get("messageId", ""))}
        for record in event.get("Records", ())
        if not _performed(record, perform)
    ]
    return {"batchItemFailures": failed}


def _message(body: str) -> Message:
    try:
        return Message.model_validate_json(body)
    except ValidationError as error:
        raise InvalidInput([Problem("", f"is not a message of ours: {sentence_of(error)}")]) from error


def _performed(record: Mapping[str, Any], perform: Callable[[str], object]) -> bool:  # Any: SQS's JSON
    body = str(record.get("body", ""))
    about = {"message_id": str(record.get("messageId", "")), "body": cut(body, MOST_TOLD)}
    try:
        perform(body)
    except (InvalidInput, NotFound):
        logger.exception("message set aside: it cannot be read, or is about nothing that exists", extra=about)
        count("MessagesSetAside")
    except (Conflict, NotYet, ProviderError) as error:
        logger.warning("message goes back to its queue", extra=about | {"why": str(error)})
        return False
    except Exception:  # noqa: BLE001 (whatever it is, the other messages of the batch are not to blame)
        logger.exception("message failed", extra=about)
        count("MessagesFailed")
        return False
    return True
