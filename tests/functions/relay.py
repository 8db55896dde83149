"""The relay as Google Cloud runs it: functions-framework's own server, a metadata server, and a broker that records."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from local import relay
from local.gce_metadata import GceMetadata
from tests.unit.local.gce_world import a_market, sold
from tests.unit.local.relay_double import Relay, relay_at_loopback

ACCOUNT = "relay@local.iam.gserviceaccount.com"
READY_SECONDS = 60.0


@dataclass
class Running:
    """The relay's address, and the broker that it forwards to."""

    url: str
    broker: Relay
    log: Path

    def deliver(self, headers: Mapping[str, str], body: bytes) -> int:
        """Deliver an event as Eventarc does; the status of the answer."""
        request = urllib.request.Request(self.url, body, dict(headers), method="POST")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code


@contextmanager
def running_relay(folder: Path) -> Iterator[Running]:
    """A relay that is ended when the block is left."""
    metadata = GceMetadata(sold(a_market(), serviceAccounts=[{"email": ACCOUNT}]))
    broker = Relay()
    try:
        with relay_at_loopback(broker) as broker_url, socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
            free.close()
            host = f"127.0.0.1:{metadata.port}"
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                **relay.environment(broker_url, "https://broker.example", host),
            }
            command = relay.command(port)
            log = folder / "relay.log"
            with log.open("wb") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process:
                try:
                    _wait_for(port, process, log)
                    yield Running(f"http://127.0.0.1:{port}/", broker, log)
                finally:
                    process.terminate()
    finally:
        metadata.close()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(log.read_text())
