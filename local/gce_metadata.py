"""The metadata server of one Compute Engine machine: what it may know of itself, and that it is taken back."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from local.gce_views import PROJECT_NUMBER, number, private_ip, public_ip
from local.market_model import Machine, Purchase

_ROOT = "/computeMetadata/v1/"
_FLAVOR = ("Metadata-Flavor", "Google")
_LONGEST_WAIT_SECONDS = 300.0
_LOOK_SECONDS = 0.05
_ACCOUNT = "instance/service-accounts/default"


def _flag(value: object) -> str:
    return "TRUE" if value else "FALSE"


_PATHS: Mapping[str, Callable[[Machine], str]] = {
    "project/project-id": lambda _: "local",
    "project/numeric-project-id": lambda _: PROJECT_NUMBER,
    "instance/id": number,
    "instance/name": lambda m: m.allocated_id,
    "instance/hostname": lambda m: f"{m.allocated_id}.{m.pool.zone}.c.local.internal",
    "instance/zone": lambda m: f"projects/{PROJECT_NUMBER}/zones/{m.pool.zone}",
    "instance/machine-type": lambda m: f"projects/{PROJECT_NUMBER}/machineTypes/{m.pool.instance_type}",
    "instance/preempted": lambda m: _flag(m.notice),
    "instance/maintenance-event": lambda _: "NONE",
    "instance/scheduling/preemptible": lambda m: _flag(m.pool.purchase is Purchase.SPOT),
    "instance/network-interfaces/0/ip": private_ip,
    "instance/network-interfaces/0/access-configs/0/external-ip": public_ip,
    "instance/attributes/startup-script": lambda m: m.request.user_data.decode(),
}


class GceMetadata:
    """Serves one machine on a loopback port of its own until closed."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        name = f"gce-metadata-{machine.allocated_id}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name, daemon=True)
        self._thread.start()

    @property
    def environment(self) -> Mapping[str, str]:
        """What points the machine's own software at it, by the vendor's own variable."""
        return {"GCE_METADATA_HOST": f"127.0.0.1:{self.port}"}

    def close(self) -> None:
        """Stop serving; who waits for a change is answered."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def get(self, address: str, flavor: str | None) -> tuple[int, str, str]:
        """Answer a path for who knows where it asks: status, ETag and body."""
        path, asked = urlsplit(address).path, parse_qs(urlsplit(address).query)
        if path == "/":
            return 200, "", "computeMetadata/\n"
        if flavor != "Google":
            return 403, "", "Missing Metadata-Flavor:Google header."
        name = path.removeprefix(_ROOT).rstrip("/")
        value = self._value(name, asked)
        if value is None:
            return 404, "", "not found"
        if asked.get("wait_for_change", ["false"])[-1].lower() == "true":
            value = self._changed(name, value, asked)
        return 200, _etag(value), value

    def _changed(self, name: str, value: str, asked: Mapping[str, list[str]]) -> str:
        """The value once it is another than the one that was last seen, or when the time is up."""
        seconds = float(asked.get("timeout_sec", [str(_LONGEST_WAIT_SECONDS)])[-1])
        deadline = time.monotonic() + min(seconds, _LONGEST_WAIT_SECONDS)
        known = asked.get("last_etag", [_etag(value)])[-1]
        while _etag(value) == known and time.monotonic() < deadline and not self._closing.wait(_LOOK_SECONDS):
            value = self._value(name, asked) or ""
        return value

    def _value(self, name: str, asked: Mapping[str, list[str]]) -> str | None:
        if name.startswith(_ACCOUNT):
            return self._of_account(name.removeprefix(_ACCOUNT).strip("/"), asked)
        if name in _PATHS:
            return _PATHS[name](self._machine)
        inside = {path.removeprefix(f"{name}/").partition("/")[0] for path in _PATHS if path.startswith(f"{name}/")}
        return "\n".join(sorted(inside)) or None

    def _of_account(self, what: str, asked: Mapping[str, list[str]]) -> str | None:
        """What a machine with a service account may have in its name; nothing for one without."""
        account = self._machine.request.details["service_account"]
        if not account:
            return None
        if not what:
            return json.dumps({"aliases": ["default"], "email": account, "scopes": []})
        if what == "email":
            return account
        if what == "token":
            return json.dumps({"access_token": f"ya29.{account}", "expires_in": 3599, "token_type": "Bearer"})
        if what == "identity" and asked.get("audience"):
            return _identity(account, asked["audience"][-1])
        return None


def _identity(account: str, audience: str) -> str:
    """A token in the form of Google's; its signature is none."""
    now = int(time.time())
    claims = {"aud": audience, "email": account, "iss": "https://accounts.google.com", "iat": now, "exp": now + 3600}
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts]
    return ".".join([*encoded, "none"])


def _etag(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def _handler(service: GceMetadata) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "Metadata Server for VM"

        def do_GET(self) -> None:
            status, etag, body = service.get(self.path, self.headers.get(_FLAVOR[0]))
            raw = body.encode()
            self.send_response(status)
            self.send_header(*_FLAVOR)
            self.send_header("Content-Type", "application/json" if body.startswith("{") else "application/text")
            if etag:
                self.send_header("ETag", etag)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            """Say nothing: a machine asks all the time."""

    return Handler
