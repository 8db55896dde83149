"""What is on offer in the simulated clouds: two clouds, two regions each, two zones each, two types."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from local.market_model import PoolKey, Purchase, Shape
from local.market_prices import PriceRow
from spotferry.domain.placement import OfferIndex
from spotferry.types.instance import Offer

BEGIN = datetime(2026, 5, 4, 12, 0, 0, tzinfo=UTC)
"""When every run begins."""

AWS, GCP = "aws", "gcp"
REGIONS = ((AWS, "us-east-1"), (AWS, "eu-west-1"), (GCP, "us-central1"), (GCP, "europe-west4"))
SHAPE = Shape(vcpus=2, memory_mib=8192, gpus=0, quota_family="Standard")
_TYPES = {AWS: ("m5.large", "c5.large"), GCP: ("n2-standard-2", "e2-standard-2")}
_ZONES = {AWS: ("{}a", "{}b"), GCP: ("{}-a", "{}-b")}

ZONES = tuple(zone.format(region) for provider, region in REGIONS for zone in _ZONES[provider])
"""All zones."""


@lru_cache(maxsize=1)
def offers() -> OfferIndex:
    """All of them, indexed; prices differ from pool to pool."""
    return OfferIndex(tuple(_offers()))


def _offers() -> Iterator[Offer]:
    step = 0
    for provider, region in REGIONS:
        for zone in _ZONES[provider]:
            for instance_type in _TYPES[provider]:
                step += 7
                yield Offer(
                    provider=provider,
                    region=region,
                    zone=zone.format(region),
                    instance_type=instance_type,
                    vcpus=SHAPE.vcpus,
                    memory_gib=SHAPE.memory_mib / 1024,
                    spot_usd_hour=Decimal(30 + step % 17) / 1000,
                    on_demand_usd_hour=Decimal(96 + step % 13) / 1000,
                    disk_usd_gib_month=Decimal("0.08"),
                    read_at=BEGIN,
                )


@lru_cache(maxsize=1)
def price_rows() -> tuple[tuple[PoolKey, PriceRow], ...]:
    """The same prices as the market has them: from there they move."""
    return tuple(
        (
            pool_key(offer.provider, offer.region, offer.zone, offer.instance_type, "spot"),
            PriceRow(BEGIN, offer.spot_usd_hour, offer.on_demand_usd_hour or Decimal(1), fixed=False),
        )
        for offer in _offers()
    )


def pool_key(provider: str, region: str, zone: str, instance_type: str, market: str) -> PoolKey:
    """A pool as the market names it."""
    return PoolKey(provider, region, zone, instance_type, Purchase(market))


class Catalogue:
    """The catalogue in force: it never changes."""

    def offers(self) -> OfferIndex:
        """All of them."""
        return offers()
