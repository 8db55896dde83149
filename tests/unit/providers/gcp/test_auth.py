"""Who the broker is for Compute Engine; with the real library."""

import json

import pytest

from spotferry.providers.context import ProviderContext
from spotferry.providers.gcp import auth
from spotferry.providers.gcp.api import GcpApi, connect
from spotferry.providers.gcp.provider import GcpProvider, build
from spotferry.types.errors import Misconfigured, SkipProvider
from tests.unit.providers.gcp.rig import NOW, Rig, an_attempt
from tests.unit.providers.gcp.test_pricing_auth import FEDERATION, nothing_is_set

__all__ = ["nothing_is_set"]


def test_federation_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a federation configuration and a project there are clients, at Google's own address, and nobody is asked."""
    monkeypatch.setenv(auth.FEDERATION, json.dumps(FEDERATION))
    monkeypatch.setenv(auth.PROJECT, "p1")
    clients = connect()
    assert clients.project == "p1"
    assert clients.instances.transport.host == "https://compute.googleapis.com"


def test_all_clients_are_led_to_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vendor's own variable moves every one of them, that of operations among them."""
    monkeypatch.setenv(auth.FEDERATION, json.dumps(FEDERATION))
    monkeypatch.setenv(auth.PROJECT, "p1")
    monkeypatch.setenv(auth.COMPUTE_ENDPOINT, "http://127.0.0.1:1/_gcp/compute/v1/")
    clients = connect()
    for client in (clients.instances, clients.operations, clients.images):
        assert client.transport.host == "http://127.0.0.1:1/_gcp"


def test_without_a_project_there_is_nowhere_to_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable; the cloud is skipped, for it can be mended without a new deployment."""
    monkeypatch.setenv(auth.FEDERATION, json.dumps(FEDERATION))
    with pytest.raises(Misconfigured, match=auth.PROJECT):
        connect()
    provider = build(ProviderContext("test", lambda _attempt: "", lambda: NOW))
    with pytest.raises(SkipProvider, match=auth.PROJECT) as caught:
        provider.find_instance(an_attempt())
    assert caught.value.region == "us-central1"


def test_credentials_that_come_later_are_found() -> None:
    """A failure to make the clients is not remembered."""
    rig, failures = Rig(), [Misconfigured("not yet")]

    def make() -> object:
        if failures:
            raise failures.pop()
        return rig.api.clients()

    api = GcpApi(make)  # type: ignore[arg-type]  # it makes what the rig makes
    provider = GcpProvider(ProviderContext("test", lambda _attempt: "", lambda: NOW), api)
    with pytest.raises(SkipProvider, match="not yet"):
        provider.find_instance(an_attempt())
    assert api.begin("r").project == "p1"
