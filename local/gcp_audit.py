"""Writes Google Cloud's audit log of the machines that are taken back, as the events that its subscribers get.

Each is a CloudEvent of the type google.cloud.audit.log.v1.written in its binary form, as Eventarc delivers it, posted
to one address: that of `relay_gcp_preemption`. Never in the market's way.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import urllib.error
import urllib.request
from datetime import datetime, timedelta

from local.gce_operations import PREEMPTED
from local.gce_views import number
from local.gcp_facts import PROVIDER
from local.json_face import Json
from local.market import Market
from local.market_model import EventKind, Machine, MarketEvent

_PAUSES_SECONDS = (0.2, 0.5, 1.0, 2.0)
_ANSWER_SECONDS = 10.0
_WRITTEN_AFTER = timedelta(seconds=0.46)
"""Between what happened and its line in the log, in a sample of Google's."""
_LOG = "projects/local/logs/cloudaudit.googleapis.com%2Fsystem_event"


def log_entry(machine: Machine, at: datetime) -> Json:
    """The line of the log about a machine that is taken back."""
    zone, name = machine.pool.zone, machine.allocated_id
    resource = f"projects/local/zones/{zone}/instances/{name}"
    operation = f"systemevent-{int(at.timestamp() * 1000)}-{name}"
    return {
        "protoPayload": {
            "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
            "status": {"message": "Instance was preempted."},
            "authenticationInfo": {"principalEmail": "system@google.com"},
            "serviceName": "compute.googleapis.com",
            "methodName": PREEMPTED,
            "resourceName": resource,
            "request": {"@type": f"type.googleapis.com/{PREEMPTED}"},
        },
        "insertId": f"{number(machine)[:12]}",
        "resource": {
            "type": "gce_instance",
            "labels": {"instance_id": number(machine), "project_id": "local", "zone": zone},
        },
        "timestamp": at.isoformat(),
        "severity": "INFO",
        "logName": _LOG,
        "operation": {"id": operation, "producer": PREEMPTED, "first": True, "last": True},
        "receiveTimestamp": (at + _WRITTEN_AFTER).isoformat(),
    }


def headers(entry: Json) -> dict[str, str]:
    """The attributes of the event that carries a line of the log."""
    payload = entry["protoPayload"]
    return {
        "Content-Type": "application/json",
        "ce-specversion": "1.0",
        "ce-id": f"{_LOG}{entry['insertId']}{entry['timestamp']}",
        "ce-type": "google.cloud.audit.log.v1.written",
        "ce-source": "//cloudaudit.googleapis.com/projects/local/logs/system_event",
        "ce-subject": f"compute.googleapis.com/{payload['resourceName']}",
        "ce-time": entry["receiveTimestamp"],
        "ce-servicename": payload["serviceName"],
        "ce-methodname": payload["methodName"],
        "ce-resourcename": payload["resourceName"],
    }


class AuditLog:
    """Posts events in the order they happened, with a few tries each."""

    def __init__(self, market: Market, relay_url: str) -> None:
        self._market = market
        self._relay_url = relay_url
        self._waiting: queue.SimpleQueue[Json | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._thread = threading.Thread(target=self._run, name="gcp-audit", daemon=True)
        self._thread.start()

    def hear(self, event: MarketEvent) -> None:
        """Take the event and return at once; for `Market.subscribe`."""
        if event.provider != PROVIDER or event.kind is not EventKind.INTERRUPTION:
            return
        machine = self._market.get(event.allocated_id)
        if machine.notice is not None and not machine.notice.false_notice:
            self._waiting.put(log_entry(machine, event.at))

    def close(self) -> None:
        """Send what waits, without retries from now on, and stop."""
        self._closing.set()
        self._waiting.put(None)
        self._thread.join(timeout=3)

    def _run(self) -> None:
        while (entry := self._waiting.get()) is not None:
            for pause_seconds in (*_PAUSES_SECONDS, None):
                trouble = self._post(entry)
                if not trouble:
                    break
                if pause_seconds is None or self._closing.wait(pause_seconds):
                    sys.stderr.write(f"local cloud: a line of the audit log was not sent: {trouble}\n")
                    break

    def _post(self, entry: Json) -> str:
        """Try once; what went wrong, "" for nothing."""
        request = urllib.request.Request(  # noqa: S310 - an address on this machine, given at the start
            self._relay_url, json.dumps(entry).encode(), headers(entry), method="POST"
        )
        try:
            with self._opener.open(request, timeout=_ANSWER_SECONDS):
                return ""
        except (OSError, urllib.error.HTTPError) as error:
            return str(error)
