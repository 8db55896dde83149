"""Answers of Azure's APIs, made up in their shape, for one subscription."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from spotferry.providers.azure.pricing_api import AzurePriceApi
from spotferry.providers.azure.pricing_model import AzurePricing
from spotferry.providers.context import PricingContext
from spotferry.types.instance import Offer
from tests.unit.providers.replay import Answer, ReplayedPool, replayed

Json = dict[str, Any]  # Any: JSON as the APIs have it
NOW = datetime(2026, 12, 1, 8, tzinfo=UTC)
MACHINE_METERS, DISK_METERS = r"prices\?.*'Virtual Machines'", r"prices\?.*'Storage'"
SKUS, LOCATIONS = "/Microsoft.Compute/skus", "/locations"
D4 = "Standard_D4s_v5"


def meter(machine_type: str = D4, price: object = 0.192, spot: str = "", **more: object) -> Json:
    """A row for a machine; spot "Spot" is the spot market's."""
    short = machine_type.removeprefix("Standard_").replace("_", " ")
    name = f"{short} {spot}".strip()
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": price,
        "unitPrice": price,
        "armRegionName": "eastus",
        "location": "US East",
        "effectiveStartDate": "2023-04-01T00:00:00Z",
        "meterName": name,
        "productName": "Virtual Machines Dsv5 Series",
        "skuName": name,
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": machine_type,
        **more,
    }


def disk(price: object = 9.6, **more: object) -> Json:
    """A row for the disk."""
    named = {
        "productName": "Standard SSD Managed Disks",
        "skuName": "E10 LRS",
        "meterName": "E10 LRS Disk",
        "unitOfMeasure": "1/Month",
        "armSkuName": "",
    }
    return {**meter("", price), **named, **more}


def sku(name: str = D4, zones: Sequence[str] = ("1", "2"), **more: object) -> Json:
    """A machine's SKU: 4 vCPUs and 16 GiB, unless `more` names other capabilities."""
    usual = {
        "vCPUs": "4",
        "vCPUsAvailable": "4",
        "MemoryGB": "16",
        "CpuArchitectureType": "x64",
        "LowPriorityCapable": "True",
    }
    capabilities = {**usual, **more}
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "tier": "Standard",
        "locations": ["eastus"],
        "locationInfo": [{"location": "eastus", "zones": list(zones), "zoneDetails": []}],
        "capabilities": [{"name": key, "value": value} for key, value in capabilities.items()],
        "restrictions": [],
    }


def page(rows: Iterable[Json], link: str | None = None) -> Answer:
    """A page of the price list."""
    found = list(rows)
    return Answer({"BillingCurrency": "USD", "Items": found, "NextPageLink": link, "Count": len(found)})


@dataclass(slots=True)
class Azure:
    """The pricing model over replayed answers, and what it noted."""

    pool: ReplayedPool = field(default_factory=ReplayedPool)
    noted: list[tuple[str, str, str]] = field(default_factory=list)
    model: AzurePricing = field(init=False)

    def __post_init__(self) -> None:
        """Build the model."""
        api = AzurePriceApi(
            retail=replayed(self.pool, "https://prices.example"),
            manager=replayed(self.pool, "https://manager.example", "secret"),
            subscription="s1",
        )
        self.model = AzurePricing(PricingContext(lambda: NOW, lambda *words: self.noted.append(words)), api)

    def prices(self, *rows: Json) -> None:
        """Answer with these rows for machines, and with the usual disk."""
        self.pool.answer(MACHINE_METERS, page(rows))
        self.pool.answer(DISK_METERS, page([disk()]))

    def has(self, *skus: Json) -> None:
        """Answer with these SKUs."""
        self.pool.answer(SKUS, Answer({"value": list(skus)}))

    def offers(self, region: str = "eastus") -> list[Offer]:
        """All offers of a region."""
        return list(self.model.offers(region))

    def oddities(self) -> Counter[str]:
        """How often each oddity was noted."""
        return Counter(what for _, what, _ in self.noted)


def cloud(*skus: Json, rows: Iterable[Json]) -> Azure:
    """A cloud with these SKUs and machine prices."""
    azure = Azure()
    azure.prices(*rows)
    azure.has(*skus)
    return azure
