"""The wire of the fake broker: its calls, its bucket and the metadata service, by path."""

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.agent.fake_broker import FakeBroker


class Server(ThreadingHTTPServer):
    """The server of one fake broker."""

    daemon_threads = True

    def __init__(self, broker: "FakeBroker") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.broker = broker


class _Handler(BaseHTTPRequestHandler):
    """Broker, bucket and metadata service by path."""

    protocol_version = "HTTP/1.1"

    @property
    def broker(self) -> "FakeBroker":
        """Whose call it is."""
        assert isinstance(self.server, Server)
        return self.server.broker

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def reply(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer the call."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def do_POST(self) -> None:
        """A call of the protocol."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.removeprefix("/agent/v1/")
        status, answer = self.broker.answer(path, self.headers["Authorization"], body)
        self.reply(status, json.dumps(answer).encode())

    def do_GET(self) -> None:
        """An object, the agent, or metadata."""
        if self.path.startswith("/latest/meta-data/"):
            self._metadata(self.path.removeprefix("/latest/meta-data/"))
        elif self.path.startswith("/agent/v1/agent/"):
            self.reply(200, self.broker.agent)
        else:
            self._object(self.broker.bucket.objects.get(self.path.removeprefix("/bucket/")))

    def do_PUT(self) -> None:
        """A chunk, or the metadata service's session."""
        if self.path == "/latest/api/token":
            self.reply(200, b"session")
            return
        broker = self.broker
        with broker.changed:
            broker.puts_begun += 1
            broker.changed.notify_all()
        size = int(self.headers["Content-Length"])
        if broker.cut_put_after is not None:
            self.rfile.read(min(size, broker.cut_put_after))
            self.close_connection = True
            return
        content = self.rfile.read(size)
        broker.stop.wait(broker.put_seconds)
        if broker.refuse_puts > 0:
            broker.refuse_puts -= 1
            self.reply(503, b"")
            return
        etag = broker.bucket.take(self.path, content)
        self.reply(200 if etag else 403, b"", {"ETag": etag} if etag else {})

    def _object(self, content: bytes | None) -> None:
        """A whole object, or what is asked of it; cut short where the lever says so."""
        broker, said = self.broker, self.headers.get("Range", "")
        if content is None:
            self.reply(404, b"")
            return
        rest = content[int(said.removeprefix("bytes=").rstrip("-") or 0) :]
        if broker.cut_gets > 0 and len(rest) > broker.cut_get_after:
            broker.cut_gets -= 1
            self.send_response(206 if said else 200)
            self.send_header("Content-Length", str(len(rest)))
            self.end_headers()
            self.wfile.write(rest[: broker.cut_get_after])
            self.close_connection = True
            return
        self.reply(206 if said else 200, rest)

    def _metadata(self, path: str) -> None:
        if self.headers["X-aws-ec2-metadata-token"] != "session":
            self.reply(401, b"")
        elif path in self.broker.imds:
            self.reply(200, json.dumps(self.broker.imds[path]).encode())
        else:
            self.reply(404, b"")
