"""Something that takes POSTs and keeps them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Relay:
    """What was posted; the first `refusals` calls are answered with `status`."""

    refusals: int = 0
    status: int = 500
    taken: list[tuple[Mapping[str, str], bytes]] = field(default_factory=list)

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        """Answer one."""
        if self.refusals:
            self.refusals -= 1
            return self.status
        self.taken.append((headers, body))
        return 200


@contextmanager
def relay_at_loopback(relay: Relay) -> Iterator[str]:
    """Serve it; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(relay.take(headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
