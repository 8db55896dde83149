"""The same commands over real sockets: a submission with its upload, and outputs coming back."""

import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import main

ARCHIVE_BYTES = 3 * 1024 * 1024


class Wire(ThreadingHTTPServer):
    """A broker and a bucket on one port of this machine."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.stored: dict[str, bytes] = {}
        self.headers_of_put: dict[str, str] = {}

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Answers like the broker, and keeps what is put like the bucket."""

    server: Wire
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Uploads get an address, jobs an id."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/uploads":
            self._answer({"exists": False, "url": f"{self.server.url}/bucket/{body['sha256']}", "headers": {}})
        else:
            self._answer({"job": {"job_id": "j-1"}, "plan": {}})

    def do_PUT(self) -> None:
        """Store."""
        self.server.headers_of_put = dict(self.headers.items())
        self.server.stored[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer({})

    def do_GET(self) -> None:
        """What was stored comes back as the job's outputs."""
        path, content = next(iter(self.server.stored.items()))
        if self.path == path:
            self._send(content)
            return
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            files = [
                {"path": m.name, "size_bytes": m.size, "sha256": hashlib.sha256(file.read()).hexdigest()}
                for m in tar
                if (file := tar.extractfile(m))
            ]
        digest = hashlib.sha256(content).hexdigest()
        self._answer({"url": self.server.url + path, "sha256": digest, "size_bytes": len(content), "files": files})

    def _answer(self, document: object) -> None:
        self._send(json.dumps(document).encode())

    def _send(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A server for the time of a test."""
    with Wire() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join(timeout=10)


def test_there_and_back(wire: Wire, tmp_path: Path) -> None:
    """What was submitted arrives whole, in one piece of a known length, and comes back byte for byte."""
    work_dir = tmp_path / "mine" / "work"
    work_dir.mkdir(parents=True)
    noise = hashlib.shake_256(b"seed").digest(ARCHIVE_BYTES)
    (work_dir / "noise.bin").write_bytes(noise)
    (tmp_path / "mine" / "job.yml").write_text("work_dir: work\ntask: {run: ls}\n")
    submitted = CliRunner().invoke(main, ["--url", wire.url, "submit", "mine/job.yml"], catch_exceptions=False)
    assert (submitted.exit_code, submitted.stdout) == (0, "j-1\n")
    assert int(wire.headers_of_put["Content-Length"]) > ARCHIVE_BYTES
    assert "Transfer-Encoding" not in wire.headers_of_put
    fetched = CliRunner().invoke(main, ["--url", wire.url, "download", "j-1", "--into", "out"], catch_exceptions=False)
    assert fetched.exit_code == 0
    assert (tmp_path / "out" / "noise.bin").read_bytes() == noise
