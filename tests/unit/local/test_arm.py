"""Azure's face of the market, where no official client looks: what it refuses, and what it tells others."""

import base64
import json
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from azure.identity import ManagedIdentityCredential

from local.arm import ArmFace, is_meant
from local.azure_events import EventGrid
from local.azure_facts import KINDS
from local.azure_metadata import MetadataService
from local.azure_pricing import TOKEN
from local.market_faults import Fault, Faults
from local.market_model import MachineState
from spotferry.providers.azure.notices import parse
from tests.contract.waiting import wait_until
from tests.unit.local.market_world import World

ROOT = "/_azure/arm/subscriptions/s"
GROUP = f"{ROOT}/resourceGroups/g/providers"
VM = f"{GROUP}/Microsoft.Compute/virtualMachines"
Json = dict[str, Any]  # Any: JSON


class Azure:
    """The face over a market on a clock of its own, asked without a network."""

    def __init__(self) -> None:
        self.world = World()
        self.faults = Faults()
        self.face = ArmFace(self.world.market, self.faults)
        self.world.market.subscribe(self.face.hear)

    def ask(self, method: str, path: str, body: object = None, query: str = "", token: str = TOKEN) -> tuple[int, Any]:
        """Status and JSON."""
        raw = json.dumps(body).encode() if body is not None else b""
        told: list[str] = []
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_LENGTH": str(len(raw)),
            "wsgi.input": _Body(raw),
            "wsgi.url_scheme": "http",
            "HTTP_HOST": "localhost",
            "HTTP_AUTHORIZATION": f"Bearer {token}",
        }
        assert is_meant(environ)
        answer = b"".join(self.face(environ, lambda status, _headers, *_more: told.append(status)))  # type: ignore[arg-type]  # what WSGI calls write is not used
        return int(told[0].split()[0]), json.loads(answer) if answer else None

    def make(self, name: str = "i-1", **changes: object) -> tuple[int, Any]:
        """PUT a machine."""
        return self.ask("PUT", f"{VM}/{name}", a_body(**changes))


class _Body:
    """What WSGI reads a body from."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def read(self, _size: int) -> bytes:
        """All of it."""
        return self._raw


def a_body(**changes: object) -> Json:
    """A spot machine; changes are of its properties."""
    place = {"name": "p", "properties": {"subnet": {"id": "/x/subnets/s"}}}
    properties: Json = {
        "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
        "priority": "Spot",
        "storageProfile": {
            "imageReference": {
                "publisher": "Canonical",
                "offer": "ubuntu-24_04-lts",
                "sku": "server",
                "version": "latest",
            },
            "osDisk": {"diskSizeGB": 30},
        },
        "osProfile": {"adminUsername": "a", "computerName": "c", "customData": base64.b64encode(b"hi").decode()},
        "networkProfile": {
            "networkApiVersion": "2022-11-01",
            "networkInterfaceConfigurations": [{"name": "n", "properties": {"ipConfigurations": [place]}}],
        },
    }
    return {"location": "eastus", "zones": ["1"], "tags": {"a": "b"}, "properties": {**properties, **changes}}


@pytest.fixture
def azure() -> Azure:
    """A face."""
    return Azure()


def test_a_machine_lives_and_is_deleted(azure: Azure) -> None:
    """Creating, running, deleting, gone; its user data boots it, and is told to nobody."""
    status, made = azure.make()
    assert (status, made["properties"]["provisioningState"]) == (201, "Creating")
    assert "customData" not in json.dumps(made)
    assert azure.world.market.get("i-1").request.user_data == b"hi"
    azure.world.wait(2)
    _, view = azure.ask("GET", f"{VM}/i-1/instanceView")
    assert [status["code"] for status in view["statuses"]] == ["ProvisioningState/succeeded", "PowerState/running"]
    assert azure.ask("DELETE", f"{VM}/i-1")[0] == 202
    assert azure.ask("GET", f"{VM}/i-1")[1]["properties"]["provisioningState"] == "Deleting"
    azure.world.wait(2)
    assert azure.ask("GET", f"{VM}/i-1")[0] == 404
    assert azure.ask("DELETE", f"{VM}/i-1")[0] == 204


def test_a_machine_that_stops_goes_on_costing_until_it_is_deleted(azure: Azure) -> None:
    """Also deallocated: its disk stays. That is what Azure's stopped machines do."""
    azure.make()
    azure.world.wait(2)
    azure.world.market.os_shutdown("i-1")
    azure.world.wait(3600)
    machine = azure.world.market.get("i-1")
    assert machine.state is MachineState.STOPPED
    assert machine.billing_ended_at is None
    view = azure.ask("GET", f"{VM}/i-1", query="$expand=instanceView")[1]["properties"]["instanceView"]
    assert view["statuses"][1]["code"] == "PowerState/stopped"
    azure.ask("POST", f"{VM}/i-1/deallocate")
    assert azure.ask("GET", f"{VM}/i-1/instanceView")[1]["statuses"][1]["code"] == "PowerState/deallocated"
    azure.ask("DELETE", f"{VM}/i-1")
    azure.world.wait(2)
    assert azure.ask("GET", f"{VM}/i-1")[0] == 404
    assert azure.world.market.get("i-1").billing_ended_at is not None


def test_parts_go_with_their_machine(azure: Azure) -> None:
    """Unless they were ordered to stay: then each is deleted by itself, the address after its interface."""
    azure.make()
    kinds = ("Network/networkInterfaces", "Network/publicIPAddresses", "Compute/disks")

    def parts() -> list[str]:
        return [row["name"] for kind in kinds for row in azure.ask("GET", f"{GROUP}/Microsoft.{kind}")[1]["value"]]

    assert parts() == ["i-1-nic", "i-1-ip", "i-1-disk"]
    assert azure.ask("DELETE", f"{GROUP}/Microsoft.Compute/disks/i-1-disk")[0] == 409
    azure.faults.inject(Fault("azure.parts", "*", 1, "Stays", "", 400))
    azure.ask("DELETE", f"{VM}/i-1")
    azure.world.wait(2)
    assert parts() == ["i-1-nic", "i-1-ip", "i-1-disk"]
    assert azure.ask("DELETE", f"{GROUP}/Microsoft.Network/publicIPAddresses/i-1-ip")[0] == 409
    for kind, end in zip(kinds, ("nic", "ip", "disk"), strict=True):
        assert azure.ask("DELETE", f"{GROUP}/Microsoft.{kind}/i-1-{end}")[0] == 200
        assert azure.ask("DELETE", f"{GROUP}/Microsoft.{kind}/i-1-{end}")[0] == 204
    assert parts() == []


def test_a_boot_that_fails_leaves_a_failed_machine(azure: Azure) -> None:
    """It is there, in Azure's words, until it is deleted."""
    from_levers = Fault("azure.operation", "*", 1, "OSProvisioningTimedOut", "It never reported.", 400)
    azure.faults.inject(from_levers)
    _, made = azure.make()
    assert made["properties"]["provisioningState"] == "Failed"
    view = azure.ask("GET", f"{VM}/i-1/instanceView")[1]
    assert view["statuses"][0]["code"] == "ProvisioningState/failed/OSProvisioningTimedOut"
    assert azure.ask("DELETE", f"{VM}/i-1")[0] == 202
    assert azure.ask("GET", f"{VM}/i-1")[0] == 404


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"hardwareProfile": {"vmSize": "Standard_X"}}, "InvalidParameter"),
        ({"hardwareProfile": {"vmSize": "Standard_D2ps_v5"}}, "BadRequest"),
        ({"hardwareProfile": {"vmSize": "Standard_B2s"}}, "AzureSpotIsNotSupportedForThisVMSize"),
        ({"billingProfile": {"maxPrice": 0}}, "MaxPriceValueInvalid"),
        ({"billingProfile": {"maxPrice": 0.00001}}, "SpotPriceGreaterThanProvidedMaxPrice"),
        (
            {"priority": "Regular", "billingProfile": {"maxPrice": 1}},
            "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines",
        ),
        ({"storageProfile": {"imageReference": {"publisher": "Canonical"}}}, "PlatformImageNotFound"),
        ({"osProfile": {}}, "InvalidParameter"),
        ({"osProfile": {"adminUsername": "a", "computerName": "c", "customData": "!"}}, "InvalidParameter"),
        ({"networkProfile": {}}, "InvalidParameter"),
        ({"networkProfile": 1}, "InvalidRequestContent"),
    ],
)
def test_what_is_refused(azure: Azure, changes: Json, code: str) -> None:
    """In Azure's codes, and nothing is sold."""
    status, answer = azure.make(**changes)
    assert status >= 400
    assert answer["error"]["code"] == code
    assert azure.world.market.everything() == []


def test_a_smaller_disk_and_wrong_tags(azure: Azure) -> None:
    """They are refused as well."""
    body = a_body()
    body["properties"]["storageProfile"]["osDisk"]["diskSizeGB"] = 8
    assert azure.ask("PUT", f"{VM}/i-1", body)[1]["error"]["code"] == "ResizeDiskError"
    for tags, code in (
        ({"a/b": ""}, "InvalidTagNameCharacters"),
        ({"a": "x" * 257}, "TagValueTooLong"),
        ({str(n): "" for n in range(51)}, "TooManyTags"),
    ):
        assert azure.ask("PUT", f"{VM}/i-1", a_body() | {"tags": tags})[1]["error"]["code"] == code
    assert azure.ask("PUT", f"{VM}/i_1", a_body())[1]["error"]["code"] == "InvalidParameter"
    assert azure.ask("PUT", f"{VM}/i-1", {})[1]["error"]["code"] == "InvalidRequestContent"
    assert azure.ask("PUT", f"{VM}/i-1", a_body() | {"location": "mars"})[0] == 400
    assert azure.ask("PUT", f"{VM}/i-1", a_body() | {"zones": ["9"]})[1]["error"]["code"] == "InvalidParameter"


def test_who_has_no_token_is_refused(azure: Azure) -> None:
    """With Azure's code."""
    status, answer = azure.ask("GET", f"{VM}/i-1", token="other")
    assert (status, answer["error"]["code"]) == (401, "InvalidAuthenticationToken")


def test_machines_know_themselves() -> None:
    """By the instance's document, and by an identity that Azure's own library finds."""
    azure = Azure()
    azure.make()
    service = MetadataService(azure.world.market.get("i-1"))
    try:
        headers = {"Metadata": "true"}
        status, told = service.answer("GET", "/metadata/instance?api-version=2021-02-01", headers, b"")
        assert status == 200
        assert isinstance(told, dict)
        assert (told["compute"]["name"], told["compute"]["location"], told["compute"]["priority"]) == (
            "i-1",
            "eastus",
            "Spot",
        )
        for path, sent in (("/metadata/instance?api-version=1", {}), ("/metadata/instance", headers)):
            assert service.answer("GET", path, sent, b"")[0] == 400
        assert service.answer("GET", "/metadata/x?api-version=1", headers, b"")[0] == 404
        for body in (b"", b"{}", b'{"StartRequests": [{"EventId": "x"}]}'):
            assert service.answer("POST", "/metadata/scheduledevents?api-version=1", headers, body)[0] == 400
        with pytest.MonkeyPatch.context() as patch:
            for name in ("IDENTITY_ENDPOINT", "MSI_ENDPOINT"):
                patch.delenv(name, raising=False)
            for name, value in service.environment.items():
                patch.setenv(name, value)
            assert ManagedIdentityCredential().get_token("https://storage.azure.com/.default").token == TOKEN
    finally:
        service.close()


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[Json]]]:
    """An address that fails once and then keeps what it is sent."""
    events: list[Json] = []
    failures = [503]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = failures.pop() if failures else 200
            if status == 200:
                events.extend(body)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name the base class gave it
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/events/azure?code=c", events
        server.shutdown()
        thread.join()


def test_event_grid_tells_of_ends(azure: Azure, webhook: tuple[str, list[Json]]) -> None:
    """A machine that is taken back and one that switched itself off; one that we delete is no news."""
    url, events = webhook
    grid = EventGrid(url, azure.world.market)
    azure.world.market.subscribe(grid.hear)
    for name in ("i-1", "i-2", "i-3"):
        azure.make(name)
    azure.world.wait(2)
    azure.world.market.interrupt("i-1", notice=timedelta(0))
    azure.world.wait(1)
    azure.world.market.os_shutdown("i-2")
    azure.ask("DELETE", f"{VM}/i-3")
    wait_until(lambda: len(events) == 2)
    grid.close()
    notices = [notice for event in events for notice in parse(event) or ()]
    told = [(notice.event.instance_id, notice.event.fault_code) for notice in notices]
    assert told == [("i-1", "VirtualMachinePreempted"), ("i-2", "VirtualMachineStoppedInternally")]


def test_facts_and_face_agree() -> None:
    """Every type that is sold can be asked for in its architecture."""
    assert {kind.arch.lower() for kind in KINDS.values()} <= {"x64", "arm64"}
