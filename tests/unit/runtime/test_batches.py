"""Queue batches: each message by itself, so that none holds up another."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from spotferry.runtime.batches import each_body, each_message
from spotferry.runtime.queues import Message
from spotferry.types import Conflict, InvalidInput, NotFound, NotYet, Problem, ProviderUnavailable


def records(*bodies: str) -> dict[str, list[dict[str, str]]]:
    """A batch of these messages."""
    return {"Records": [{"messageId": f"m{number}", "body": body} for number, body in enumerate(bodies)]}


def raising(error: Exception) -> Callable[[str], None]:
    """Fails on the body "bad"."""

    def perform(body: str) -> None:
        if body == "bad":
            raise error

    return perform


@pytest.mark.parametrize("error", [InvalidInput([Problem("x", "y")]), NotFound("x")])
def test_what_no_delivery_would_mend_is_acknowledged(error: Exception) -> None:
    """It is set aside: the queue does not deliver it for ever."""
    assert each_body(records("bad", "good"), raising(error)) == {"batchItemFailures": []}


@pytest.mark.parametrize(
    "error",
    [Conflict("x"), NotYet("x", timedelta(seconds=1)), ProviderUnavailable("c", "m"), RuntimeError("a bug")],
)
def test_what_is_worth_another_try_goes_back_alone(error: Exception) -> None:
    """Only the message that failed is delivered again."""
    answer = each_body(records("good", "bad", "good"), raising(error))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}


def test_effects_are_read_before_they_are_performed() -> None:
    """What is no message of ours is never performed; the next one is."""
    performed: list[Message] = []
    good = Message(kind="place_job", job_id="j").model_dump_json()
    assert each_message(records("{", good), performed.append) == {"batchItemFailures": []}
    assert performed == [Message(kind="place_job", job_id="j")]


def test_an_event_without_messages_is_nothing() -> None:
    """No record, no failure."""
    assert each_message({}, lambda _: None) == {"batchItemFailures": []}
