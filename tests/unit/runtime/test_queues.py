"""The queues that carry effects."""

from datetime import timedelta
from typing import Any

import pytest

from spotferry.domain.view import CheckLaunch, DestroyInstance, Effect, PlaceJob
from spotferry.runtime.queues import Message, NotQueued, Queues
from tests.builders import NOW


class FakeSqs:
    """Keeps what it is sent; can refuse some."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[dict[str, Any]]]] = []
        self.failed: list[dict[str, str]] = []

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        """As SQS does."""
        self.calls.append((QueueUrl, Entries))
        return {"Failed": self.failed} if self.failed else {}

    def send_message(self, *, QueueUrl: str, MessageBody: str, DelaySeconds: int) -> None:  # noqa: N803
        """As SQS does."""
        self.calls.append((QueueUrl, [{"MessageBody": MessageBody, "DelaySeconds": DelaySeconds}]))


def sent(*effects: Effect) -> FakeSqs:
    """What the queues are sent for these effects."""
    sqs = FakeSqs()
    Queues("placement", "destroy", lambda: sqs).send(effects, NOW)
    return sqs


def test_each_effect_goes_to_its_queue_as_a_message_that_reads_back() -> None:
    """Placements and checks to one queue, orders to end to the other, in one call each."""
    sqs = sent(PlaceJob("j"), CheckLaunch("j", "i"), DestroyInstance("j", "i", "i-cloud"))
    read = {url: [Message.model_validate_json(entry["MessageBody"]) for entry in entries] for url, entries in sqs.calls}
    assert read == {
        "placement": [
            Message(kind="place_job", job_id="j"),
            Message(kind="check_launch", job_id="j", instance_id="i"),
        ],
        "destroy": [Message(kind="destroy_instance", job_id="j", instance_id="i")],
    }


@pytest.mark.parametrize(
    ("effect", "seconds"),
    [
        (PlaceJob("j"), 0),
        (PlaceJob("j", NOW - timedelta(hours=1)), 0),
        (PlaceJob("j", NOW + timedelta(seconds=15)), 15),
        (PlaceJob("j", NOW + timedelta(seconds=14.2)), 15),
        (PlaceJob("j", NOW + timedelta(hours=5)), 900),
        (CheckLaunch("j", "i"), 45),
        (DestroyInstance("j", "i"), 0),
    ],
)
def test_delays_are_kept_as_far_as_the_queue_can(effect: Effect, seconds: int) -> None:
    """Never early by a fraction of a second, at most fifteen minutes."""
    ((_, (entry,)),) = sent(effect).calls
    assert entry["DelaySeconds"] == seconds


def test_many_effects_go_ten_a_call() -> None:
    """The queue takes ten messages a call; ids are unique within each."""
    sqs = sent(*(PlaceJob(f"j-{n}") for n in range(23)))
    assert [len(entries) for _, entries in sqs.calls] == [10, 10, 3]
    for _, entries in sqs.calls:
        assert len({entry["Id"] for entry in entries}) == len(entries)


def test_nothing_to_send_costs_nothing() -> None:
    """No effect, no call."""
    assert sent().calls == []


def test_a_message_that_was_not_taken_is_an_error() -> None:
    """The caller learns that something is still owed."""
    sqs = FakeSqs()
    sqs.failed = [{"Id": "0", "Code": "InternalError"}]
    with pytest.raises(NotQueued, match="1 of 1 messages were not taken: InternalError"):
        Queues("placement", "destroy", lambda: sqs).send([PlaceJob("j")], NOW)


def test_an_unknown_event_comes_back_after_a_pause() -> None:
    """The event goes as it came, and waits fifteen seconds."""
    sqs = FakeSqs()
    Queues("placement", "destroy", lambda: sqs).hear_again({"source": "aws.ec2", "detail": {"x": 1}})
    ((url, (entry,)),) = sqs.calls
    assert (url, entry["DelaySeconds"]) == ("placement", 15)
    message = Message.model_validate_json(entry["MessageBody"])
    assert (message.kind, message.event) == ("hear_notice", {"source": "aws.ec2", "detail": {"x": 1}})


def test_a_message_of_a_later_version_is_read() -> None:
    """A field that this version does not know is ignored."""
    text = '{"version": 2, "kind": "place_job", "job_id": "j", "speed": "fast"}'
    assert Message.model_validate_json(text).job_id == "j"
