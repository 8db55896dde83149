"""The relay on Google Cloud, through its own framework's server."""

import base64
import json
from collections.abc import Iterator

import pytest

from local.gcp_audit import headers, log_entry
from spotferry.providers.gcp.notices import parse
from tests.functions.deployment import ROOT
from tests.functions.relay import ACCOUNT, Running, running_relay
from tests.unit.local.gce_world import a_market, sold

EVENTS = ROOT / "events" / "relay_gcp_preemption"
STRUCTURED = {"Content-Type": "application/cloudevents+json"}
PREEMPTED = (EVENTS / "preempted.json").read_bytes()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One relay for all tests."""
    with running_relay(tmp_path_factory.mktemp("relay")) as running:
        yield running


@pytest.fixture
def relay(server: Running) -> Running:
    """The relay, with a broker that has heard nothing yet."""
    server.broker.taken.clear()
    server.broker.refusals = 0
    return server


def test_a_preemption_is_forwarded_as_it_came(relay: Running) -> None:
    """In structured form, under the relay's own identity token for the broker; the broker's parser reads it."""
    assert relay.deliver(STRUCTURED, PREEMPTED) == 200
    [(sent, body)] = relay.broker.taken
    assert sent["content-type"].startswith("application/cloudevents+json")
    token = sent["authorization"].removeprefix("Bearer ")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert (claims["email"], claims["aud"]) == (ACCOUNT, "https://broker.example")
    forwarded = json.loads(body)
    assert forwarded["data"] == json.loads(PREEMPTED)["data"]
    assert parse(forwarded) == parse(json.loads(PREEMPTED))


def test_eventarcs_own_form_is_understood(relay: Running) -> None:
    """The binary form, whose attributes are headers, ends as the same kind of event."""
    market = a_market()
    machine = sold(market)
    entry = log_entry(machine, market.now())
    assert relay.deliver(headers(entry), json.dumps(entry).encode()) == 200
    [(_, body)] = relay.broker.taken
    [notice] = parse(json.loads(body)) or ()
    assert (notice.event.instance_id, notice.region) == ("i-1", "us-central1")


@pytest.mark.parametrize("name", ["host_error.json", "malformed.json"])
def test_what_is_no_preemption_is_dropped(relay: Running, name: str) -> None:
    """It is acknowledged, and the broker hears nothing of it."""
    body = (EVENTS / name).read_bytes()
    assert relay.deliver(STRUCTURED, body) == 200
    assert relay.broker.taken == []


def test_what_is_no_event_is_refused(relay: Running) -> None:
    """A call without the attributes of an event is no delivery."""
    assert relay.deliver({"Content-Type": "application/json"}, b"{}") == 400
    assert relay.broker.taken == []


def test_a_broker_that_fails_for_a_moment_is_asked_again(relay: Running) -> None:
    """The same delivery gets through at the third try."""
    relay.broker.refusals, relay.broker.status = 2, 503
    assert relay.deliver(STRUCTURED, PREEMPTED) == 200
    assert len(relay.broker.taken) == 1


@pytest.mark.parametrize(("status", "answer"), [(503, 500), (404, 500), (422, 200), (413, 200)])
def test_a_broker_that_goes_on_refusing(relay: Running, status: int, answer: int) -> None:
    """What another delivery may mend is left to Eventarc; what the broker set aside is acknowledged."""
    relay.broker.refusals, relay.broker.status = 1000, status
    assert relay.deliver(STRUCTURED, PREEMPTED) == answer
    assert relay.broker.taken == []
