"""Answers of Google's APIs, made up in their shape, for one project with two regions."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from spotferry.providers.context import PricingContext
from spotferry.providers.gcp.pricing_api import GcpPriceApi
from spotferry.providers.gcp.pricing_model import GcpPricing
from spotferry.types.instance import Offer
from tests.unit.providers.replay import Answer, ReplayedPool, replayed

Json = dict[str, Any]  # Any: JSON as the APIs have it
NOW = datetime(2026, 12, 1, 8, tzinfo=UTC)
SKUS, ZONES = "/billing/services/6F81-5844-456A/skus", r"/projects/p1/zones\?"


def money(usd: str) -> Json:
    """An amount of dollars as the catalogue writes it; a nano that is missing is none."""
    units, _, fraction = usd.partition(".")
    nanos = int(fraction.ljust(9, "0")) if fraction else 0
    return {"currencyCode": "USD", "units": units, "nanos": nanos}


def sku(
    description: str,
    usd: str | None,
    unit: str = "h",
    usage: str = "",
    regions: Iterable[str] = ("us-central1",),
) -> Json:
    """A SKU; usd None leaves the rates out."""
    rates = [] if usd is None else [{"startUsageAmount": 0, "unitPrice": money(usd)}]
    return {
        "skuId": "AAAA-BBBB-CCCC",
        "description": description,
        "category": {
            "resourceFamily": "Compute",
            "usageType": usage or ("Preemptible" if "Preemptible" in description else "OnDemand"),
        },
        "serviceRegions": list(regions),
        "pricingInfo": [{"pricingExpression": {"usageUnit": unit, "tieredRates": rates}}],
    }


def family_skus(words: str, core: str, ram: str, *, spot: bool = False) -> list[Json]:
    """A family's core and memory."""
    before = "Spot Preemptible " if spot else ""
    return [
        sku(f"{before}{words} Core running in Americas", core),
        sku(f"{before}{words} Ram running in Americas", ram, "GiBy.h"),
    ]


USUAL_SKUS = [
    *family_skus("N1 Predefined Instance", "0.03", "0.004"),
    *family_skus("N1 Predefined Instance", "0.006", "0.001", spot=True),
    *family_skus("A2 Instance", "0.03", "0.004"),
    *family_skus("A2 Instance", "0.009", "0.001", spot=True),
    *family_skus("C4A Arm Instance", "0.04", "0.005"),
    sku("Nvidia Tesla T4 GPU running in Americas", "0.35"),
    sku("Nvidia Tesla T4 GPU attached to Spot Preemptible VMs running in Americas", "0.11"),
    sku("Nvidia Tesla A100 GPU running in Americas", "2.9"),
    sku("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", "0.9"),
    sku("Balanced PD Capacity in Iowa", "0.1", "GiBy.mo"),
    sku("Hyperdisk Balanced Capacity in Iowa", "0.08", "GiBy.mo"),
]


def machine(name: str, cpus: int, gib: float, **more: object) -> Json:
    """A machine type."""
    return {"name": name, "guestCpus": cpus, "memoryMb": int(gib * 1024), **more}


def with_gpus(name: str, cpus: int, gib: float, gpu: str, count: int) -> Json:
    """A machine type that comes with GPUs."""
    accelerators = [{"guestAcceleratorType": gpu, "guestAcceleratorCount": count}]
    return machine(name, cpus, gib, accelerators=accelerators)


def zone(name: str, status: str = "UP") -> Json:
    """A zone, with its region as an address."""
    region = name.rpartition("-")[0]
    return {
        "name": name,
        "status": status,
        "region": f"https://www.googleapis.com/compute/v1/projects/p1/regions/{region}",
    }


@dataclass(slots=True)
class Gcp:
    """The pricing model over replayed answers, and what it noted."""

    pool: ReplayedPool = field(default_factory=ReplayedPool)
    now: datetime = NOW
    noted: list[tuple[str, str, str]] = field(default_factory=list)
    model: GcpPricing = field(init=False)

    def __post_init__(self) -> None:
        """Build the model."""
        api = GcpPriceApi(
            compute=replayed(self.pool, "https://google.example/compute"),
            billing=replayed(self.pool, "https://google.example/billing"),
            project="p1",
        )
        context = PricingContext(lambda: self.now, lambda *words: self.noted.append(words))
        self.model = GcpPricing(context, api)

    def pass_time(self, duration: timedelta) -> None:
        """Move the clock on."""
        self.now += duration

    def sells(self, *skus: Json) -> None:
        """Answer with this catalogue."""
        self.pool.answer(SKUS, Answer({"skus": list(skus), "nextPageToken": ""}))

    def has_zones(self, *zones: Json) -> None:
        """Answer with these zones."""
        self.pool.answer(ZONES, Answer({"items": list(zones)}))

    def has_machines(self, zone_name: str, *machines: Json, gpus: Iterable[tuple[str, int]] = ()) -> None:
        """Answer with these machine types and accelerators in a zone."""
        accelerators = [{"name": name, "maximumCardsPerInstance": most} for name, most in gpus]
        self.pool.answer(f"/zones/{zone_name}/machineTypes", Answer({"items": list(machines)}))
        self.pool.answer(f"/zones/{zone_name}/acceleratorTypes", Answer({"items": accelerators}))

    def offers(self, region: str = "us-central1") -> list[Offer]:
        """All offers of a region."""
        return list(self.model.offers(region))

    def oddities(self) -> Counter[str]:
        """How often each oddity was noted."""
        return Counter(what for _, what, _ in self.noted)


def one_zone(*skus: Json, machines: Iterable[Json], gpus: Iterable[tuple[str, int]] = ()) -> Gcp:
    """A cloud with one zone."""
    cloud = Gcp()
    cloud.sells(*skus)
    cloud.has_zones(zone("us-central1-a"))
    cloud.has_machines("us-central1-a", *machines, gpus=gpus)
    return cloud
