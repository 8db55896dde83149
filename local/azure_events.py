"""Posts what happens to Azure's machines as Event Grid does, in its own schema; never in the market's way."""

from __future__ import annotations

import json
import queue
import sys
import threading
import uuid
from http.client import HTTPException
from urllib.request import Request, urlopen

from local import azure_facts as facts
from local.arm_model import SUBSCRIPTION, utc
from local.json_face import Json
from local.market import Market
from local.market_model import (
    INSTANCE_SHUTDOWN,
    SPOT_TERMINATION,
    EventKind,
    Machine,
    MachineState,
    MarketEvent,
)

_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0)
_ANSWER_SECONDS = 10.0
_KIND = "Microsoft.ResourceNotifications.HealthResources.ResourceAnnotated"
_ANNOTATIONS = {
    SPOT_TERMINATION.code: (
        "VirtualMachinePreempted",
        "Preempted",
        "The Azure Spot virtual machine has been preempted.",
        "Platform Initiated",
        "Unplanned",
    ),
    INSTANCE_SHUTDOWN.code: (
        "VirtualMachineStoppedInternally",
        "Stopped by user or process running inside the virtual machine",
        "The virtual machine has been stopped from inside.",
        "Customer Initiated",
        "Not Applicable",
    ),
}
_ENDING = frozenset({MachineState.SHUTTING_DOWN, MachineState.STOPPING})


def annotated(machine: Machine, event: MarketEvent) -> Json | None:
    """The event of Event Grid about a machine that ends; None where it has none."""
    if event.kind is not EventKind.STATE or event.value not in _ENDING or machine.reason is None:
        return None
    told = _ANNOTATIONS.get(machine.reason.code)
    if told is None:
        return None
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{machine.request.details['group']}"
    target = f"{group}/providers/Microsoft.Compute/virtualMachines/{machine.allocated_id}"
    event_id, at = str(uuid.uuid4()), utc(event.at)
    return {
        "id": event_id,
        "topic": f"/subscriptions/{SUBSCRIPTION}",
        "subject": target,
        "data": {
            "resourceInfo": _resource(target, event_id, at, told),
            "operationalInfo": {"resourceEventTime": at},
            "apiVersion": "2022-08-01",
        },
        "eventType": _KIND,
        "dataVersion": "1",
        "metadataVersion": "1",
        "eventTime": at,
    }


def _resource(target: str, event_id: str, at: str, told: tuple[str, str, str, str, str]) -> Json:
    name, reason, summary, context, category = told
    return {
        "id": f"{target}/providers/Microsoft.ResourceHealth/resourceAnnotations/{event_id}",
        "name": event_id,
        "type": "Microsoft.ResourceHealth/resourceAnnotations",
        "properties": {
            "targetResourceId": target,
            "targetResourceType": "Microsoft.Compute/virtualMachines",
            "occurredTime": at,
            "annotationName": name,
            "reason": reason,
            "summary": summary,
            "context": context,
            "category": category,
        },
    }


class EventGrid:
    """Posts one event at a time to one address, in the order they happened, with a few tries each.

    Args:
        url: the webhook, with the code in its query.
        market: knows the machines.
    """

    def __init__(self, url: str, market: Market) -> None:
        self._url = url
        self._market = market
        self._waiting: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="event-grid", daemon=True)
        self._thread.start()

    def hear(self, event: MarketEvent) -> None:
        """Take the event and return at once; for `Market.subscribe`."""
        if event.provider == facts.PROVIDER and event.kind is EventKind.STATE:
            told = annotated(self._market.get(event.allocated_id), event)
            if told is not None:
                self._waiting.put(told)

    def close(self) -> None:
        """Send what waits, without retries from now on, and stop."""
        self._closing.set()
        self._waiting.put(None)
        self._thread.join(timeout=3)

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None:
            self._send(event)

    def _send(self, event: Json) -> None:
        trouble = ""
        for pause_seconds in (*_PAUSES_SECONDS, None):
            try:
                self._post(event)
            except (OSError, HTTPException) as error:
                trouble = str(error)
            else:
                return
            if pause_seconds is None or self._closing.wait(pause_seconds):
                break
        sys.stderr.write(f"local cloud: Event Grid could not deliver {event['id']}: {trouble}\n")

    def _post(self, event: Json) -> None:
        headers = {"Content-Type": "application/json", "aeg-event-type": "Notification"}
        request = Request(self._url, json.dumps([event]).encode(), headers)  # noqa: S310 - an address of this machine
        with urlopen(request, timeout=_ANSWER_SECONDS):  # noqa: S310 - as above
            return
