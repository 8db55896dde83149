"""The instance metadata service of one machine of Azure: what it is, its identity's tokens, what is scheduled for it.

Every question carries the header `Metadata: true`, and comes through no proxy. Scheduled events are told at once: the
real service takes up to two minutes for the first answer.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from local.arm_model import SUBSCRIPTION
from local.azure_pricing import TOKEN
from local.json_face import Json
from local.market_model import Machine, Notice, Purchase

_TOKEN_SECONDS = 3600
_BAD_REQUEST = (400, {"error": "Bad request. Required metadata header not specified."})


class MetadataService:
    """Serves one machine on a loopback port of its own until closed."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._shown: tuple[Notice | None, int] = (None, 1)
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        name = f"azure-metadata-{machine.allocated_id}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> Mapping[str, str]:
        """What points the machine's own software at it, by the vendor's own variable."""
        return {"AZURE_POD_IDENTITY_AUTHORITY_HOST": f"http://127.0.0.1:{self.port}"}

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Json | str]:
        """Answer one request."""
        parts = urlsplit(target)
        asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        from_here = headers.get("Metadata", "").lower() == "true" and not headers.get("X-Forwarded-For")
        if not from_here or "api-version" not in asked:
            return _BAD_REQUEST
        path = parts.path.rstrip("/").removeprefix("/metadata/")
        if (method, path) == ("POST", "scheduledevents"):
            return self._start(body)
        known: Mapping[str, Callable[[], Json | str]] = {
            "scheduledevents": self._scheduled,
            "identity/oauth2/token": lambda: _token(asked.get("resource", "")),
            "instance": lambda: {"compute": self._compute()},
            "instance/compute": self._compute,
            "instance/compute/name": lambda: self._machine.allocated_id,
        }
        return (200, known[path]()) if method == "GET" and path in known else (404, {"error": "Not found"})

    def _scheduled(self) -> Json:
        notice = self._machine.notice
        with self._lock:
            before, incarnation = self._shown
            if notice != before:
                incarnation += 1
            self._shown = (notice, incarnation)
        events = [] if notice is None else [self._event(notice)]
        return {"DocumentIncarnation": incarnation, "Events": events}

    def _event(self, notice: Notice) -> Json:
        return {
            "EventId": _event_id(self._machine, notice),
            "EventType": "Preempt",
            "ResourceType": "VirtualMachine",
            "Resources": [self._machine.allocated_id],
            "EventStatus": "Scheduled",
            "NotBefore": format_datetime(notice.due_at.astimezone(UTC).replace(microsecond=0), usegmt=True),
            "Description": "",
            "EventSource": "Platform",
            "DurationInSeconds": -1,
        }

    def _start(self, body: bytes) -> tuple[int, Json]:
        """The machine is ready for an event: it happens now."""
        try:
            wanted = {str(request["EventId"]) for request in json.loads(body)["StartRequests"]}
        except (ValueError, KeyError, TypeError):
            return 400, {"error": "StartRequests are wanted."}
        notice = self._machine.notice
        known = notice is not None and _event_id(self._machine, notice) in wanted
        if notice is not None and known:
            notice.accept()
        return (200, {}) if known else (400, {"error": "No such event is scheduled."})

    def _compute(self) -> Json:
        pool, group = self._machine.pool, self._machine.request.details["group"]
        path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines"
        return {
            "name": self._machine.allocated_id,
            "resourceId": f"{path}/{self._machine.allocated_id}",
            "resourceGroupName": group,
            "subscriptionId": SUBSCRIPTION,
            "location": pool.region,
            "zone": pool.zone,
            "vmSize": pool.instance_type,
            "vmId": str(uuid.uuid5(uuid.NAMESPACE_URL, self._machine.allocated_id)),
            "priority": "Spot" if pool.purchase is Purchase.SPOT else "Regular",
            "evictionPolicy": "Delete" if pool.purchase is Purchase.SPOT else "",
            "osType": "Linux",
            "tagsList": [{"name": name, "value": value} for name, value in self._machine.request.tags.items()],
        }


def _event_id(machine: Machine, notice: Notice) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{machine.allocated_id} {notice.noticed_at.isoformat()}")).upper()


def _token(resource: str) -> Json:
    expires = int(datetime.now(UTC).timestamp()) + _TOKEN_SECONDS
    return {
        "access_token": TOKEN,
        "expires_in": str(_TOKEN_SECONDS),
        "expires_on": str(expires),
        "not_before": str(int(time.time())),
        "resource": resource,
        "token_type": "Bearer",
    }


def _handler(service: MetadataService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "IMDS"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = service.answer(self.command, self.path, dict(self.headers.items()), body)
            raw = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = _answer  # noqa: N815 - the names the base class looks for

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            """Say nothing: a machine asks every few seconds."""

    return Handler
