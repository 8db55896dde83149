"""Azure's offers: the machine types that the subscription may have, at the retail price of their region."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial

from pydantic import ValidationError

from spotferry.providers.azure.eviction_rates import eviction_rates
from spotferry.providers.azure.pricing_api import AzurePriceApi
from spotferry.providers.azure.pricing_gpus import gpu_model, vram_mib
from spotferry.providers.azure.pricing_meters import DISK_METER, PriceSheet, disk_usd_gib_month
from spotferry.providers.azure.pricing_skus import MACHINES, ResourceSku
from spotferry.providers.context import PricingContext
from spotferry.providers.pricing import BAD_PRICE, BAD_RATE, NO_DISK_PRICE, UNKNOWN_TYPE, PricesByRegion, checked
from spotferry.providers.rest import Json
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate

_NAME = "azure"


@dataclass(frozen=True, slots=True)
class _Market:
    """What is common to the offers of one region."""

    region: str
    sheet: PriceSheet
    disk_usd_gib_month: Decimal
    read_at: datetime


class AzurePricing(PricesByRegion):
    """Azure's pricing model. Prices are the region's; each zone that has the type makes an offer of its own."""

    def __init__(self, context: PricingContext, api: AzurePriceApi) -> None:
        self._context = context
        self._api = api

    def regions(self) -> Sequence[str]:
        """The subscription's physical regions."""
        return self._api.locations()

    def offers(self, region: str) -> Iterator[Offer]:
        """One region's offers: its price list is read first, and kept by type; its SKUs are read page by page."""
        market = self._market(region)
        priced = market.sheet.machine_types()
        unmatched, listed = set(priced), 0
        for row in self._api.skus(region):
            sku = self._sku(row, region)
            if sku is not None:
                listed += 1
                unmatched.discard(sku.name.casefold())
                yield from self._made_of(sku, market)
        for name in sorted(unmatched):
            self._context.note(region, UNKNOWN_TYPE, f"{name} in {region}")
        if bool(listed) != bool(priced):
            missing = "a price" if listed else "a SKU"
            raise ProviderError("EmptyListing", f"no machine type of this region has {missing}", region)

    def interruption_rates(self, region: str) -> Iterator[PoolRate]:
        """One region's eviction rates, by machine type."""
        unknown_step = partial(self._context.note, region, BAD_RATE)
        return eviction_rates(self._api.manager, region, self._context.clock(), unknown_step)

    def _market(self, region: str) -> _Market:
        now = self._context.clock()
        sheet = PriceSheet(now)
        for row in self._api.machine_meters(region):
            for subject in sheet.add(row):
                self._context.note(region, BAD_PRICE, subject)
        disk = disk_usd_gib_month(self._api.disk_meters(region), now)
        if disk is None:
            self._context.note(region, NO_DISK_PRICE, DISK_METER)
            disk = self._context.disk_usd_gib_month(_NAME, region)
        return _Market(region, sheet, disk, now)

    def _sku(self, row: Json, region: str) -> ResourceSku | None:
        if row.get("resourceType") != MACHINES:
            return None
        try:
            return ResourceSku.model_validate(row)
        except ValidationError:
            self._context.note(region, UNKNOWN_TYPE, f"{row.get('name', '?')} in {region}")
            return None

    def _made_of(self, sku: ResourceSku, market: _Market) -> Iterator[Offer]:
        zones = sku.zones_in(market.region)
        if not zones:
            return
        template = self._offer(sku, market)
        if template is None:
            self._context.note(market.region, UNKNOWN_TYPE, f"{sku.name} in {market.region}")
            return
        for zone in zones:
            offer = checked(template.model_copy(update={"zone": zone}), self._context)
            if offer is not None:
                yield offer

    def _offer(self, sku: ResourceSku, market: _Market) -> Offer | None:
        """The offer but for its zone; None when the size or the GPU is not known."""
        try:
            vcpus, memory, gpus = sku.vcpus, sku.memory_gib, sku.gpu_count
        except ValueError:
            return None
        model = gpu_model(sku.name) if gpus else None
        if not vcpus or not memory or (gpus and model is None):
            return None
        quotes = market.sheet.quotes(sku.name)
        return Offer(
            provider=_NAME,
            region=market.region,
            zone="",
            instance_type=sku.name,
            arch=sku.arch,
            vcpus=vcpus,
            memory_gib=memory,
            gpu_name=model.name if model else "",
            gpu_maker=model.maker if model else "",
            gpu_count=gpus,
            vram_mib=vram_mib(sku.name, model, gpus) if model else 0,
            spot_usd_hour=quotes.spot if sku.may_be_spot else None,
            on_demand_usd_hour=quotes.on_demand,
            disk_usd_gib_month=market.disk_usd_gib_month,
            read_at=market.read_at,
        )
