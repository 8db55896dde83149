"""The instance metadata service of one machine, version 2: a token first, then what the machine may know of itself."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from local.ec2_moto import ACCOUNT_ID
from local.ec2_views import private_ip
from local.market_model import Machine, Purchase

_MOST_TTL_SECONDS = 21600
_TOKEN_PATH = "/latest/api/token"  # noqa: S105 - a path
_TTL_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
_TOKEN_HEADER = "X-aws-ec2-metadata-token"  # noqa: S105 - a header's name


def _utc(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _instance_action(machine: Machine) -> str | None:
    notice = machine.notice
    return json.dumps({"action": notice.action, "time": _utc(notice.due_at)}) if notice else None


def _rebalance(machine: Machine) -> str | None:
    return json.dumps({"noticeTime": _utc(machine.rebalance_at)}) if machine.rebalance_at else None


def _identity(machine: Machine) -> str:
    return json.dumps(
        {
            "accountId": ACCOUNT_ID,
            "architecture": machine.request.shape.arch,
            "availabilityZone": machine.pool.zone,
            "imageId": machine.request.details["image_id"],
            "instanceId": machine.allocated_id,
            "instanceType": machine.pool.instance_type,
            "pendingTime": _utc(machine.launched_at),
            "privateIp": private_ip(machine),
            "region": machine.pool.region,
            "version": "2017-09-30",
        },
        indent=2,
    )


_PATHS: dict[str, Callable[[Machine], str | None]] = {
    "meta-data/instance-id": lambda m: m.allocated_id,
    "meta-data/instance-type": lambda m: m.pool.instance_type,
    "meta-data/instance-life-cycle": lambda m: "spot" if m.pool.purchase is Purchase.SPOT else "on-demand",
    "meta-data/ami-id": lambda m: m.request.details["image_id"],
    "meta-data/local-ipv4": private_ip,
    "meta-data/placement/availability-zone": lambda m: m.pool.zone,
    "meta-data/placement/region": lambda m: m.pool.region,
    "meta-data/spot/instance-action": _instance_action,
    "meta-data/spot/termination-time": lambda m: _utc(m.notice.due_at) if m.notice else None,
    "meta-data/events/recommendations/rebalance": _rebalance,
    "meta-data/events/maintenance/scheduled": lambda _: "[]",
    "dynamic/instance-identity/document": _identity,
}


class MetadataService:
    """Serves one machine on a loopback port of its own until closed."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._tokens: dict[str, float] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        name = f"imds-{machine.allocated_id}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> Mapping[str, str]:
        """What points the machine's own software at it, by the vendor's own variable."""
        return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"http://127.0.0.1:{self.port}"}

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def put(self, path: str, ttl: str | None) -> tuple[int, bytes]:
        """Hand out a token."""
        if path != _TOKEN_PATH:
            return 405, b""
        if ttl is None or not ttl.isdigit() or not 1 <= int(ttl) <= _MOST_TTL_SECONDS:
            return 400, b""
        token = secrets.token_urlsafe(40)
        self._tokens[token] = time.monotonic() + int(ttl)
        return 200, token.encode()

    def get(self, path: str, token: str | None) -> tuple[int, bytes]:
        """Answer a path for who shows a token that is still good."""
        if token is None or self._tokens.get(token, 0.0) < time.monotonic():
            return 401, b""
        name = urlsplit(path).path.rstrip("/").removeprefix("/latest/")
        if name == "user-data":
            return (200, self._machine.request.user_data) if self._machine.request.user_data else (404, b"")
        answer = _PATHS[name](self._machine) if name in _PATHS else _listing(name)
        return (404, b"") if answer is None else (200, answer.encode())


def _listing(name: str) -> str | None:
    """What EC2 answers for a folder of the tree: the names in it."""
    inside = [path.removeprefix(f"{name}/") for path in _PATHS if path.startswith(f"{name}/")]
    parts = {f"{rest.split('/')[0]}/" if "/" in rest else rest for rest in inside}
    return "\n".join(sorted(parts)) if parts else None


def _handler(service: MetadataService) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "EC2ws"

        def do_PUT(self) -> None:
            self._send(*service.put(self.path, self.headers.get(_TTL_HEADER)))

        def do_GET(self) -> None:
            self._send(*service.get(self.path, self.headers.get(_TOKEN_HEADER)))

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            """Say nothing: a machine asks every few seconds."""

    return Handler
