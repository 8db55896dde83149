"""Calls to the broker and bytes to the bucket, over real sockets."""

import hashlib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotferry.agent.broker import Broker, NoRedirect
from spotferry.agent.errors import AddressExpired, BrokerGone, BrokerRefused, BrokerUnreachable, TransferFailed
from spotferry.agent.settings import Settings
from spotferry.agent.transfer import TRIES, fetch, send_chunks
from tests.unit.agent.clocks import ManualClock
from tests.unit.agent.fake_broker import FakeBroker

KEY = "k" * 64


def nothing() -> None:
    """No order."""


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    """A broker with a bucket."""
    with FakeBroker({"mode": "fresh"}, instance_id="i-1", token="t") as made:
        yield made


def broker_of(url: str, key: str = KEY) -> Broker:
    """The broker there."""
    return Broker(Settings(url, "i-1", 1, "t", "aws"), key, timeout=2)


def test_call_carries_protocol_epoch_and_credential(fake: FakeBroker) -> None:
    """The fake refuses whatever lacks one of them."""
    answer = broker_of(fake.url).call("heartbeat", {"phase": "running", "log": None})
    assert answer["lease_seconds"] == 30
    assert fake.problems == []
    assert fake.key == KEY


def test_answers_become_errors_by_what_to_do_next(fake: FakeBroker) -> None:
    """401, 410: gone. 4xx: refused, with its words. 5xx, no JSON, no answer: later."""
    good, body = broker_of(fake.url), {"phase": "running", "log": None}
    good.call("heartbeat", body)
    with pytest.raises(BrokerGone, match="wrong key"):
        broker_of(fake.url, "x" * 64).call("heartbeat", body)
    with pytest.raises(BrokerRefused, match="phase dancing"):
        good.call("heartbeat", {"phase": "dancing", "log": None})
    fake.away_until = float("inf")
    with pytest.raises(BrokerUnreachable, match="503"):
        good.call("heartbeat", body)
    fake.away_until, fake.gone = 0, True
    with pytest.raises(BrokerGone, match="over"):
        good.call("heartbeat", body)
    with pytest.raises(BrokerUnreachable):
        broker_of("http://127.0.0.1:1").call("heartbeat", body)


def test_redirect_is_not_followed() -> None:
    """The credential goes to the broker's own address only."""
    request = urllib.request.Request("http://b", data=b"")
    assert NoRedirect().redirect_request(request, None, 302, "", None, "http://other") is None  # type: ignore[arg-type]  # unused


def test_object_is_fetched_and_verified(fake: FakeBroker, tmp_path: Path) -> None:
    """Size and digest must be what was promised."""
    content = b"x" * 3_000_000
    stored, clock = fake.store(content), ManualClock()
    fetch(stored["url"], len(content), stored["sha256"], tmp_path / "o", clock, nothing)
    assert (tmp_path / "o").read_bytes() == content
    with pytest.raises(TransferFailed, match="digest"):
        fetch(stored["url"], len(content), "0" * 64, tmp_path / "o", clock, nothing)
    with pytest.raises(AddressExpired, match="404"):
        fetch(f"{fake.url}/bucket/none", 1, "0" * 64, tmp_path / "o", clock, nothing)
    with pytest.raises(TransferFailed):
        fetch("http://127.0.0.1:1/o", 1, "0" * 64, tmp_path / "o", clock, nothing)


def test_chunks_are_sent_with_retries(fake: FakeBroker, tmp_path: Path) -> None:
    """Every chunk but the last has its full length; each answer's ETag is kept, in order."""
    path = tmp_path / "o"
    path.write_bytes(bytes(range(256)) * 10)
    fake.bucket.uploads["u"] = {}
    fake.refuse_puts = 2
    urls = [f"{fake.url}/upload/u/{n}" for n in range(3)]
    etags = send_chunks(path, urls, 1000, ManualClock(), nothing)
    chunks = fake.bucket.uploads["u"]
    assert [len(chunks[n]) for n in range(3)] == [1000, 1000, 560]
    assert b"".join(chunks[n] for n in range(3)) == path.read_bytes()
    assert etags == [f'"{hashlib.md5(chunks[n], usedforsecurity=False).hexdigest()}"' for n in range(3)]


def test_upload_is_given_up_after_its_tries(fake: FakeBroker, tmp_path: Path) -> None:
    """A bucket that never takes a chunk is an error, not a wait for ever."""
    (tmp_path / "o").write_bytes(b"abc")
    fake.refuse_puts = 1000
    with pytest.raises(TransferFailed, match="503"):
        send_chunks(tmp_path / "o", [f"{fake.url}/upload/u/0"], 1000, ManualClock(), nothing)
    assert fake.puts_begun == TRIES


@pytest.mark.parametrize(("count", "chunk_bytes"), [(2, 1000), (0, 1000), (1, 0), (1, 2)])
def test_addresses_must_fit_the_file(tmp_path: Path, count: int, chunk_bytes: int) -> None:
    """As many addresses as chunks, or nothing is sent."""
    (tmp_path / "o").write_bytes(b"abc")
    with pytest.raises(TransferFailed, match="addresses"):
        send_chunks(tmp_path / "o", ["http://127.0.0.1:1"] * count, chunk_bytes, ManualClock(), nothing)
