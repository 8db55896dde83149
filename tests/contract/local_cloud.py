"""Starts the local cloud as its users do, as a process of its own, and speaks to it through the official client."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from local.ec2 import public_image_id

REPOSITORY = Path(__file__).parents[2]
UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
READY_SECONDS = 30.0


def eventually(check: Callable[[], Any], seconds: float = 10.0, what: str = "") -> Any:
    """The first true answer of the check, asked again and again until the deadline."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = check()
        if answer:
            return answer
        time.sleep(0.03)
    raise AssertionError(f"not within {seconds} s: {what or check}")


@dataclass
class LocalCloud:
    """A running local cloud."""

    process: subprocess.Popen[bytes]
    port: int
    state_dir: Path
    last_seen: list[dict[str, Any]] = field(default_factory=list)

    # boto3 makes its clients at run time: they have no type of their own.
    def ec2(self, region: str, access_key: str = "key") -> Any:
        """A client of EC2 that retries nothing."""
        return boto3.client(
            "ec2",
            region_name=region,
            endpoint_url=f"http://127.0.0.1:{self.port}",
            aws_access_key_id=access_key,
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1}, max_pool_connections=20),
        )

    def lever(self, name: str, body: object = None) -> Any:
        """Pull a lever; answers its JSON."""
        return self.ask("POST", name, body if body is not None else {})[1]

    def machines(self) -> list[dict[str, Any]]:
        """Every machine ever sold."""
        found: list[dict[str, Any]] = self.ask("GET", "machines")[1]
        return found

    def end(self, number: signal.Signals) -> None:
        """End it with the signal, which it must obey with status 0; `last_seen` keeps the machines it had."""
        self.last_seen = self.machines()
        self.process.send_signal(number)
        assert self.process.wait(READY_SECONDS) == 0, "the local cloud did not end well"

    def machine(self, allocated_id: str) -> dict[str, Any]:
        """One machine."""
        return next(machine for machine in self.machines() if machine["allocated_id"] == allocated_id)

    def ask(self, method: str, name: str, body: object = None) -> tuple[int, Any]:
        """Send a request to the levers; answers status and JSON."""
        data = None if method == "GET" else json.dumps(body).encode()
        address = f"http://127.0.0.1:{self.port}/_market/{name}"
        try:
            with urllib.request.urlopen(urllib.request.Request(address, data, method=method), timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)


@contextmanager
def local_cloud(state_dir: Path, *options: str) -> Iterator[LocalCloud]:
    """A local cloud that is ended, with all its machines, when the block is left."""
    command = [sys.executable, "-m", "local.cloud", "--port", "0", "--state-dir", str(state_dir), *options]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            ready, _, _ = select.select([process.stdout], [], [], READY_SECONDS)
            assert ready, "the local cloud did not say that it is ready"
            cloud = LocalCloud(process, json.loads(process.stdout.readline())["port"], state_dir)
            yield cloud
            if process.poll() is None:
                cloud.end(signal.SIGTERM)
        finally:
            process.kill()


def launch(ec2: Any, **changes: Any) -> dict[str, Any]:
    """Launch one small spot machine; None takes a parameter out."""
    wish = {
        "ImageId": public_image_id(ec2.meta.region_name, UBUNTU),
        "InstanceType": "m5.large",
        "MinCount": 1,
        "MaxCount": 1,
        "InstanceMarketOptions": {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}},
        "InstanceInitiatedShutdownBehavior": "terminate",
        **changes,
    }
    answer = ec2.run_instances(**{name: value for name, value in wish.items() if value is not None})
    instance: dict[str, Any] = answer["Instances"][0]
    return instance


def refused(call: Callable[[], object]) -> tuple[str, int]:
    """The code and the HTTP status a call is refused with."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"], error.response["ResponseMetadata"]["HTTPStatusCode"]
    raise AssertionError("the call was not refused")


@dataclass
class Bus:
    """An event bus that refuses the first `refusals` calls and keeps what it is sent after that."""

    refusals: int = 0
    entries: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def take(self, region: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Answer PutEvents."""
        if self.refusals:
            self.refusals -= 1
            return 500, {"__type": "InternalException"}
        sent = json.loads(body)["Entries"]
        self.entries += [(region, entry) for entry in sent]
        return 200, {"FailedEntryCount": 0, "Entries": [{"EventId": "1"} for _ in sent]}


@contextmanager
def bus_at_loopback(bus: Bus) -> Iterator[str]:
    """Serve the bus; answers its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            region = self.headers["Authorization"].split("/")[2]
            status, answer = bus.take(region, self.rfile.read(int(self.headers["Content-Length"])))
            raw = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
