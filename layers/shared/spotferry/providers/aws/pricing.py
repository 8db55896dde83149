"""Prices of AWS: spot prices and shapes from EC2 in each region, on-demand and disk prices from the price list.

Zones are given by id (use1-az1), never by name: a name means another zone in another account, public price lists have
ids, and a launch translates them (`zones`), so that offers, bans and imported lists speak of the same pools.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial

from spotferry.domain.interruption_rates import class_rate
from spotferry.providers.aws.api import AwsApi
from spotferry.providers.aws.placement_scores import SOURCE, factors
from spotferry.providers.aws.pricing_list import RegionPrices, read_prices
from spotferry.providers.aws.pricing_shapes import Shape, Shapes, offered, zone_ids
from spotferry.providers.aws.pricing_spot import read_spot
from spotferry.providers.context import PricingContext
from spotferry.providers.pricing import BAD_PRICE, BAD_RATE, NO_DISK_PRICE, UNKNOWN_TYPE, PricesByRegion, checked
from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate, PricingModel

_NAME = "aws"
_DEFAULT_REGION = "us-east-1"
Pool = tuple[str, str]
"""A type and the id of a zone."""


class AwsPricing(PricesByRegion):
    """The prices of all regions that the account has; several regions may be read at once."""

    def __init__(self, context: PricingContext, api: AwsApi) -> None:
        self._context = context
        self._api = api
        self._shapes = Shapes()

    def regions(self) -> Sequence[str]:
        """The regions that are open to the account.

        Raises:
            ProviderError: EC2 does not say.
        """
        home = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or _DEFAULT_REGION
        answer = self._api.begin(home).ec2("describe_regions")
        return sorted(region["RegionName"] for region in answer.get("Regions", []))

    def offers(self, region: str) -> Iterator[Offer]:
        """One region's offers, by type and zone; the first comes when the region has been read whole.

        Raises:
            ProviderError: the region failed; nothing of it was given.
        """
        now = self._context.clock()
        note = partial(self._context.note, region)
        zones = zone_ids(self._api.begin(region))
        pools = {pool for pool in offered(self._api.begin(region)) if pool[1] in zones.values()}
        spot = read_spot(self._api.begin(region), zones, now, partial(note, UNKNOWN_TYPE))
        prices = read_prices(self._api, region, now)
        shapes = self._shapes.of(self._api.begin(region), {name for name, _ in pools})
        for pool in sorted({pool for pool, price in spot.items() if price is None}):
            note(BAD_PRICE, f"{pool[0]} in {pool[1]}, spot")
        for name in sorted(name for name, price in prices.machines.items() if price is None):
            note(BAD_PRICE, f"{name}, on-demand")
        disk = prices.disk_gib_month or self._usual_disk(region)
        for pool in sorted(pools | spot.keys()):
            if pool[0] not in shapes:
                note(UNKNOWN_TYPE, f"{pool[0]} in {pool[1]}")
            elif shape := shapes[pool[0]]:
                whole = _offer(region, pool, shape, spot.get(pool), prices, disk, now)
                if checked(whole, self._context):
                    yield whole

    def interruption_rates(self, region: str) -> Iterator[PoolRate]:
        """One region's rates by type and zone, made of placement scores: an assumption, see `placement_scores`.

        Raises:
            ProviderError: EC2 does not say.
        """
        now = self._context.clock()
        pools = offered(self._api.begin(region))
        found = factors(self._api.begin(region), pools, partial(self._context.note, region, BAD_RATE))
        shapes = self._shapes.of(self._api.begin(region), {name for name, _ in found})
        for (name, zone), factor in sorted(found.items()):
            if shape := shapes.get(name):
                yield PoolRate(
                    provider=_NAME,
                    region=region,
                    zone=zone,
                    instance_type=name,
                    per_hour=class_rate(_NAME, "spot", has_gpu=shape.gpu_count > 0) * factor,
                    source=SOURCE,
                    read_at=now,
                )

    def _usual_disk(self, region: str) -> Decimal:
        self._context.note(region, NO_DISK_PRICE, "gp3")
        return self._context.disk_usd_gib_month(_NAME, region)


def _offer(
    region: str,
    pool: Pool,
    shape: Shape,
    spot: Decimal | None,
    prices: RegionPrices,
    disk_usd_gib_month: Decimal,
    read_at: datetime,
) -> Offer:
    return Offer(
        provider=_NAME,
        region=region,
        zone=pool[1],
        instance_type=pool[0],
        arch=shape.arch,
        vcpus=shape.vcpus,
        memory_gib=shape.memory_gib,
        gpu_name=shape.gpu_name,
        gpu_maker=shape.gpu_maker,
        gpu_count=shape.gpu_count,
        vram_mib=shape.vram_mib,
        spot_usd_hour=spot,
        on_demand_usd_hour=prices.machines.get(pool[0]),
        disk_usd_gib_month=disk_usd_gib_month,
        read_at=read_at,
    )


def build_pricing(context: PricingContext) -> PricingModel:
    """The pricing model over the SDK's own clients and endpoints."""
    return AwsPricing(context, AwsApi())
