"""Calls to the broker, over real sockets."""

import urllib.request
from collections.abc import Iterator

import pytest

from spotferry.agent.broker import Broker, NoRedirect
from spotferry.agent.errors import BrokerGone, BrokerRefused, BrokerUnreachable
from spotferry.agent.settings import Settings
from tests.unit.agent.fake_broker import FakeBroker

KEY = "k" * 64


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
