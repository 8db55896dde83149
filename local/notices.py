"""Puts what happens to EC2 machines on the event bus, in EC2's own events; never in the market's way."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local.ec2_call import PROVIDER
from local.ec2_moto import ACCOUNT_ID
from local.market_model import EventKind, MarketEvent

_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0)
_BATCH = 10
_DETAIL_TYPES = {
    EventKind.STATE: "EC2 Instance State-change Notification",
    EventKind.INTERRUPTION: "EC2 Spot Instance Interruption Warning",
    EventKind.REBALANCE: "EC2 Instance Rebalance Recommendation",
}


def detail(event: MarketEvent) -> dict[str, str]:
    """The `detail` of EC2's event."""
    match event.kind:
        case EventKind.STATE:
            return {"instance-id": event.allocated_id, "state": event.value}
        case EventKind.INTERRUPTION:
            return {"instance-id": event.allocated_id, "instance-action": event.value}
        case EventKind.REBALANCE:
            return {"instance-id": event.allocated_id}


def entry(event: MarketEvent) -> dict[str, object]:
    """What PutEvents is given for the event; the bus itself makes the envelope."""
    return {
        "Time": event.at,
        "Source": "aws.ec2",
        "DetailType": _DETAIL_TYPES[event.kind],
        "Resources": [f"arn:aws:ec2:{event.region}:{ACCOUNT_ID}:instance/{event.allocated_id}"],
        "Detail": json.dumps(detail(event)),
    }


class Notices:
    """Sends events in the order they happened, each to the bus of its machine's region, with a few tries each."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._waiting: queue.SimpleQueue[MarketEvent | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        # boto3 makes its clients at run time: they have no type of their own.
        self._clients: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
        self._thread.start()

    def hear(self, event: MarketEvent) -> None:
        """Take the event and return at once; for `Market.subscribe`."""
        if event.provider == PROVIDER:
            self._waiting.put(event)

    def close(self) -> None:
        """Send what waits, without retries from now on, and stop."""
        self._closing.set()
        self._waiting.put(None)
        self._thread.join(timeout=3)

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            if event is None:
                return
            batch, last = self._together(event)
            self._send(batch)
            if last:
                return

    def _together(self, first: MarketEvent) -> tuple[list[MarketEvent], bool]:
        """The events that can travel with the first one, and whether the end was seen on the way."""
        batch = [first]
        while len(batch) < _BATCH:
            try:
                event = self._waiting.get_nowait()
            except queue.Empty:
                return batch, False
            if event is None:
                return batch, True
            batch.append(event)
        return batch, False

    def _send(self, batch: list[MarketEvent]) -> None:
        for region in dict.fromkeys(event.region for event in batch):
            entries = [entry(event) for event in batch if event.region == region]
            for pause_seconds in (*_PAUSES_SECONDS, None):
                entries, trouble = self._put(region, entries)
                if not entries:
                    break
                if pause_seconds is None or self._closing.wait(pause_seconds):
                    sys.stderr.write(f"local cloud: {len(entries)} events for {region} were not sent: {trouble}\n")
                    break

    def _put(self, region: str, entries: list[dict[str, object]]) -> tuple[list[dict[str, object]], str]:
        """Try once; answer the entries that were refused, and why."""
        try:
            answer = self._client(region).put_events(Entries=entries)
        except (BotoCoreError, ClientError) as error:
            return entries, str(error)
        pairs = list(zip(entries, answer["Entries"], strict=True))
        refused = [given for given, taken in pairs if "ErrorCode" in taken]
        return refused, str([taken for _, taken in pairs if "ErrorCode" in taken])

    # The client has no type of its own, see above.
    def _client(self, region: str) -> Any:
        if region not in self._clients:
            keys = None if "AWS_ACCESS_KEY_ID" in os.environ else "test"
            self._clients[region] = boto3.client(
                "events",
                region_name=region,
                endpoint_url=self._endpoint,
                aws_access_key_id=keys,
                aws_secret_access_key=keys,
                config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5),
            )
        return self._clients[region]
