"""The queues that carry effects to the functions that perform them."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

from spotferry.domain.asking import LAUNCH_LEASE
from spotferry.domain.interruption import UNKNOWN_PAUSE
from spotferry.domain.view import CheckLaunch, DestroyInstance, Effect, PlaceJob
from spotferry.runtime.aws_clients import Client
from spotferry.types.base import RECORD_VERSION, Record
from spotferry.types.errors import SpotferryError

_LONGEST_DELAY = timedelta(minutes=15)
_BATCH = 10


class Message(Record):
    """What stands in a queue: the name of an effect and what it is about, or an event that comes back."""

    version: int = RECORD_VERSION
    kind: Literal["place_job", "check_launch", "destroy_instance", "hear_notice"]
    job_id: str = ""
    instance_id: str = ""
    event: Mapping[str, Any] = {}  # Any: a cloud's event as it came


class NotQueued(SpotferryError):
    """The queue did not take every message; what is missing is sent again by the next poll."""


class Queues:
    """The placement queue and the destroy queue.

    Args:
        placement_url, destroy_url: where they are.
        client: makes the SQS client, on first use.
    """

    def __init__(self, placement_url: str, destroy_url: str, client: Callable[[], Client]) -> None:
        self._placement_url = placement_url
        self._destroy_url = destroy_url
        self._client = client

    def send(self, effects: Sequence[Effect], now: datetime) -> None:
        """Send all effects, in as few calls as the queues allow; a wait beyond 15 minutes ends after 15 minutes.

        Raises:
            NotQueued: the queue took some but not all.
        """
        by_url: dict[str, list[dict[str, object]]] = {}
        for effect in effects:
            url = self._destroy_url if isinstance(effect, DestroyInstance) else self._placement_url
            by_url.setdefault(url, []).append(_entry(effect, now))
        for url, entries in by_url.items():
            for start in range(0, len(entries), _BATCH):
                self._send_batch(url, entries[start : start + _BATCH])

    def hear_again(self, envelope: Mapping[str, Any]) -> None:  # Any: the bus's JSON
        """Have an event about a machine that nobody knows yet come back after `UNKNOWN_PAUSE`, behind its launch."""
        message = Message(kind="hear_notice", event=envelope)
        self._client().send_message(
            QueueUrl=self._placement_url,
            MessageBody=json.dumps(message.model_dump(), separators=(",", ":"), default=str),
            DelaySeconds=int(UNKNOWN_PAUSE.total_seconds()),
        )

    def _send_batch(self, url: str, entries: Sequence[Mapping[str, object]]) -> None:
        numbered = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
        failed = self._client().send_message_batch(QueueUrl=url, Entries=numbered).get("Failed")
        if failed:
            raise NotQueued(f"{len(failed)} of {len(numbered)} messages were not taken: {failed[0].get('Code')}")


def _entry(effect: Effect, now: datetime) -> dict[str, object]:
    match effect:
        case PlaceJob():
            message = Message(kind="place_job", job_id=effect.job_id)
            wait = effect.not_before - now if effect.not_before else timedelta(0)
        case CheckLaunch():
            message = Message(kind="check_launch", job_id=effect.job_id, instance_id=effect.instance_id)
            wait = LAUNCH_LEASE  # what is settled by then costs a read, and no second call to the cloud
        case DestroyInstance():
            message = Message(kind="destroy_instance", job_id=effect.job_id, instance_id=effect.instance_id)
            wait = timedelta(0)
    seconds = int(min(max(wait, timedelta(0)), _LONGEST_DELAY).total_seconds() + 0.999)
    body = json.dumps(message.model_dump(exclude={"event"}), separators=(",", ":"))
    return {"MessageBody": body, "DelaySeconds": min(seconds, int(_LONGEST_DELAY.total_seconds()))}
