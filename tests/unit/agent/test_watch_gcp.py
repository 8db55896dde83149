"""Compute Engine's notice, from the metadata server of the local cloud."""

import threading
import time
import urllib.error
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from local.gce_metadata import GceMetadata
from local.market import Market
from local.market_model import Machine
from spotferry.agent import gce_metadata
from spotferry.agent.watch import GcpWatcher, Notice, watcher_of
from tests.unit.agent.clocks import ManualClock
from tests.unit.local.gce_world import a_market, sold

TAKEN = [Notice("take_back", "preempted", None)]


@pytest.fixture
def market() -> Market:
    """A market whose time is real."""
    return a_market()


@pytest.fixture
def machine(market: Market) -> Machine:
    """A machine of Google's."""
    return sold(market)


@pytest.fixture
def watcher(machine: Machine) -> Iterator[GcpWatcher]:
    """What watches it."""
    service = GceMetadata(machine)
    yield GcpWatcher(service.environment, ManualClock())
    service.close()


def test_the_flag_is_the_notice(
    market: Market, machine: Machine, watcher: GcpWatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is said of a machine that stays; one that is taken back is told, and told again."""
    monkeypatch.setattr(gce_metadata, "WAIT_SECONDS", 0)
    assert watcher() == []
    market.interrupt(machine.allocated_id)
    assert [watcher(), watcher()] == [TAKEN, TAKEN]


def test_a_notice_ends_the_wait(
    market: Market, machine: Machine, watcher: GcpWatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that the server holds back comes with the notice, long before its time is over."""
    monkeypatch.setattr(gce_metadata, "WAIT_SECONDS", 30)
    assert watcher() == []
    began, said = time.monotonic(), []
    waiting = threading.Thread(target=lambda: said.append(watcher()))
    waiting.start()
    market.interrupt(machine.allocated_id)
    waiting.join(20)
    assert said == [TAKEN]
    assert time.monotonic() - began < 10


def test_a_quiet_wait_is_bounded(watcher: GcpWatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a notice the server answers when the time is over, and nothing is said."""
    monkeypatch.setattr(gce_metadata, "WAIT_SECONDS", 1)
    assert watcher() == []
    began = time.monotonic()
    assert watcher() == []
    assert 0.9 <= time.monotonic() - began < 10


def test_a_server_that_was_away_is_asked_at_once(market: Market, machine: Machine) -> None:
    """After a silence the first look does not wait for a change that it may have missed."""
    service = GceMetadata(machine)
    watcher = GcpWatcher(service.environment, ManualClock())
    assert watcher() == []
    service.close()
    with pytest.raises(OSError, match="refused"):
        watcher()
    assert watcher._metadata._etags == {}
    again = GceMetadata(machine)
    try:
        market.interrupt(machine.allocated_id)
        watcher._metadata._base = f"http://127.0.0.1:{again.port}/computeMetadata/v1/"
        assert watcher() == TAKEN
    finally:
        again.close()


class _Stranger(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = 404 if "gone" in self.path else 200
        self.send_response(status)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"TRUE")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
        """Say nothing."""


@pytest.fixture
def stranger() -> Iterator[gce_metadata.GceMetadata]:
    """A client that reached something else than Google's server."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield gce_metadata.GceMetadata({"GCE_METADATA_HOST": f"127.0.0.1:{server.server_address[1]}"})
        server.shutdown()
        thread.join()


def test_what_is_not_googles_server_is_not_believed(stranger: gce_metadata.GceMetadata) -> None:
    """An answer without Google's mark is no notice, and neither is an error."""
    with pytest.raises(ValueError, match="not Google's"):
        stranger.changed("instance/preempted")
    with pytest.raises(urllib.error.HTTPError):
        stranger.changed("gone")


def test_the_watcher_of_gcp() -> None:
    """It is found by the cloud's name, and asks the cloud's own host unless the variable says otherwise."""
    watcher = watcher_of("gcp", ManualClock())
    assert isinstance(watcher, GcpWatcher)
    assert gce_metadata.GceMetadata({})._base == "http://169.254.169.254/computeMetadata/v1/"
