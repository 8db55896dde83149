"""Prices of Google Cloud and Azure, read from their faces in the local cloud as a deployment reads them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import httpx
import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from local import azure_facts, azure_pricing, gcp_facts, gcp_pricing
from local.ec2_moto import Moto
from local.json_face import Json
from local.levers import PREFIX, Levers
from local.market import Market
from local.market_faults import Faults
from spotferry.providers import registry
from spotferry.providers.context import PricingContext
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Offer
from spotferry.types.provider import PricingModel, TellsInterruptionRates

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

NOW = datetime(2026, 12, 1, 8, tzinfo=UTC)
REGION = {"gcp": "us-central1", "azure": "eastus"}
BOTH = pytest.mark.parametrize("name", ["gcp", "azure"])


class _Quiet(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""


@dataclass(slots=True)
class Cloud:
    """The faces of both clouds over one market, served on the loopback interface."""

    url: str
    noted: list[tuple[str, str, str]] = field(default_factory=list)

    def model(self, name: str) -> PricingModel:
        """A cloud's pricing model, as a function makes it."""
        return registry.load_pricing(name)(PricingContext(lambda: NOW, lambda *words: self.noted.append(words)))

    def offers(self, name: str) -> Mapping[tuple[str, str, int], Offer]:
        """The offers of the cloud's first region by zone, type and GPUs."""
        found = self.model(name).offers(REGION[name])
        return {(offer.zone, offer.instance_type, offer.gpu_count): offer for offer in found}

    def pull(self, lever: str, body: Json | list[Json]) -> Json:
        """Pull a lever of the market."""
        answer = httpx.post(f"{self.url}{PREFIX}{lever}", json=body)
        answer.raise_for_status()
        told: Json = answer.json()
        return told


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Serve it, and point the libraries there as the local cloud does."""
    market, faults = Market(lambda: NOW), Faults()
    gcp, azure = gcp_pricing.GcpPricingFace(market, faults), azure_pricing.AzurePricingFace(market, faults)
    levers = Levers(market, faults, Moto())

    def front(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        face = gcp if gcp_pricing.is_meant(environ) else azure if azure_pricing.is_meant(environ) else levers
        return face(environ, start_response)

    server = make_server("127.0.0.1", 0, front, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.port}"
    account = {"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
    for key, value in {**gcp_pricing.environment(url), **azure_pricing.environment(url), **account}.items():
        monkeypatch.setenv(key, value)
    try:
        yield Cloud(url)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_google_offers_are_what_the_market_asks(cloud: Cloud) -> None:
    """Every machine type in every zone is offered at the market's prices, and N1 hosts with T4 beside."""
    offers = cloud.offers("gcp")
    for zone in gcp_facts.ZONES["us-central1"]:
        for name, kind in gcp_facts.KINDS.items():
            offer = offers[zone, name, kind.gpus]
            asked = [gcp_facts.machine_usd("us-central1", name, spot=spot) for spot in (True, False)]
            assert [offer.spot_usd_hour, offer.on_demand_usd_hour] == pytest.approx(asked, rel=Decimal("1e-6"))
            assert (offer.arch, offer.vcpus) == (kind.shape.arch, kind.vcpus)
    assert offers["us-central1-a", "n1-standard-4", 1].gpu_name == "T4"
    assert cloud.model("gcp").regions() == sorted(gcp_facts.ZONES)
    assert not cloud.noted


def test_azure_offers_are_what_the_market_asks(cloud: Cloud) -> None:
    """Every machine type in every zone is offered at the market's prices; Windows and prices to come win nothing."""
    offers = cloud.offers("azure")
    assert len(offers) == len(azure_facts.KINDS) * 3
    for (_, name, _), offer in offers.items():
        assert offer.on_demand_usd_hour == azure_facts.machine_usd("eastus", name, spot=False)
        assert offer.spot_usd_hour == azure_facts.machine_usd("eastus", name, spot=True)
        assert offer.disk_usd_gib_month == Decimal("0.075")
    assert {zone for zone, _, _ in offers} == {"1", "2", "3"}
    assert cloud.model("azure").regions() == sorted(azure_facts.ZONES)
    assert not cloud.noted


@pytest.mark.parametrize(
    ("name", "zones", "machine_type"),
    [("gcp", gcp_facts.ZONES["us-central1"], "t2a-standard-4"), ("azure", ("1", "2", "3"), "Standard_D4s_v5")],
)
def test_offers_follow_the_market(cloud: Cloud, name: str, zones: tuple[str, ...], machine_type: str) -> None:
    """A price that the market is told is the price of the next offers."""
    price = {"provider": name, "region": REGION[name], "type": machine_type, "spot": "0.0123", "on_demand": "0.5"}
    told = cloud.pull("prices", [{**price, "zone": zone, "fixed": True} for zone in zones])
    assert told == {"set": 3, "unknown_types": []}
    for zone in zones:
        offer = cloud.offers(name)[zone, machine_type, 0]
        found = [offer.spot_usd_hour, offer.on_demand_usd_hour]
        assert found == pytest.approx([Decimal("0.0123"), Decimal("0.5")], rel=Decimal("1e-6"))


@BOTH
def test_a_region_that_is_denied(cloud: Cloud, name: str) -> None:
    """A region's 403 is an error of that region, in the cloud's words; the others have their offers."""
    cloud.pull("regions/deny", {"region": REGION[name], "code": "AuthorizationFailed"})
    with pytest.raises(ProviderError) as caught:
        cloud.offers(name)
    assert (caught.value.code, caught.value.region) == ("AuthorizationFailed", REGION[name])
    other = next(region for region in cloud.model(name).regions() if region != REGION[name])
    assert list(cloud.model(name).offers(other))


@BOTH
def test_credentials_that_are_revoked(cloud: Cloud, name: str) -> None:
    """Without credentials the cloud says no at its first question."""
    cloud.pull("credentials/revoke", {"access_key": name})
    with pytest.raises(ProviderError):
        cloud.model(name).regions()


def test_azure_tells_eviction_rates_page_by_page(cloud: Cloud) -> None:
    """Every type that may be spot has one, told in Azure's own spelling; GPUs are evicted more often."""
    model = cloud.model("azure")
    assert isinstance(model, TellsInterruptionRates)
    cloud.pull("throttle", {"operation": "azure.evictions", "times": 1})
    rates = {rate.instance_type: rate.per_hour for rate in model.interruption_rates("eastus")}
    assert rates.keys() == {name.casefold() for name, kind in azure_facts.KINDS.items() if kind.spot}
    assert rates["standard_nc4as_t4_v3"] > rates["standard_d2s_v5"] > 0
    assert not isinstance(cloud.model("gcp"), TellsInterruptionRates)
    cloud.pull("regions/deny", {"region": "eastus", "code": "AuthorizationFailed"})
    with pytest.raises(ProviderError, match="AuthorizationFailed"):
        list(model.interruption_rates("eastus"))


@pytest.mark.parametrize("operation", ["gcp.machineTypes", "azure.prices", "azure.skus"])
def test_a_busy_moment_costs_nothing(cloud: Cloud, operation: str) -> None:
    """One throttled call is asked again, and the region is whole."""
    name = operation.partition(".")[0]
    whole = len(cloud.offers(name))
    cloud.pull("throttle", {"operation": operation, "times": 1})
    assert len(cloud.offers(name)) == whole
