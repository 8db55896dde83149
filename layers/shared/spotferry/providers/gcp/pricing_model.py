"""Google Cloud's offers: the machine types of each zone at the sum of their parts' rates."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from pydantic import ValidationError

from spotferry.providers.context import PricingContext
from spotferry.providers.gcp.pricing_api import GcpPriceApi
from spotferry.providers.gcp.pricing_gpus import GPU_MAKER, GPU_MODELS, counts_for_host
from spotferry.providers.gcp.pricing_machines import MachineType, Till
from spotferry.providers.gcp.pricing_rates import Rates
from spotferry.providers.pricing import NO_DISK_PRICE, UNKNOWN_TYPE, PricesByRegion, checked
from spotferry.providers.rest import Json
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Offer

RATES_LAST = timedelta(minutes=30)
"""How long the rates that were read for one region serve the others."""
FAILURE_LASTS = timedelta(minutes=1)
"""How long regions that wait for the rates share one failure, so that none waits for a failure of its own."""
_NAME = "gcp"


@dataclass(frozen=True, slots=True)
class _Catalogue:
    rates: Rates
    zones: Mapping[str, tuple[str, ...]]


class GcpPricing(PricesByRegion):
    """Google Cloud's pricing model. The catalogue covers all regions, so it is read once for all of them.

    `regions` always reads it anew; `offers` uses what was read last while it is younger than `RATES_LAST`.
    """

    def __init__(self, context: PricingContext, api: GcpPriceApi) -> None:
        self._context = context
        self._api = api
        self._lock = threading.Lock()
        self._catalogue: _Catalogue | None = None
        self._failed: tuple[datetime, ProviderError] | None = None

    def regions(self) -> Sequence[str]:
        """The regions with rates and with a zone that is up."""
        with self._lock:
            self._catalogue = self._read()
            return sorted(self._catalogue.rates.regions() & self._catalogue.zones.keys())

    def offers(self, region: str) -> Iterator[Offer]:
        """One region's machine types by zone, each N1 host with every number of GPUs that it may have, too."""
        catalogue = self._current()
        if region not in catalogue.zones:
            raise ProviderError("NoSuchRegion", "no zone of this region is up", region)
        till = Till(catalogue.rates, region)
        for disk in till.disks_without_rate():
            self._context.note(region, NO_DISK_PRICE, disk)
        listed = 0
        for zone in catalogue.zones[region]:
            accelerators = self._api.accelerators(zone, region)
            for row in self._api.machine_types(zone, region):
                listed += 1
                machine = self._machine(row, zone, region)
                if machine is not None:
                    yield from self._made_of(machine, zone, accelerators, till)
        if not listed:
            raise ProviderError("EmptyListing", "no zone of this region lists a machine type", region)

    def _current(self) -> _Catalogue:
        with self._lock:
            known, now = self._catalogue, self._context.clock()
            if known is not None and now - known.rates.read_at <= RATES_LAST:
                return known
            if self._failed is not None and now - self._failed[0] <= FAILURE_LASTS:
                error = self._failed[1]
                raise type(error)(error.code, error.message)
            self._catalogue = known = self._read()
            return known

    def _read(self) -> _Catalogue:
        try:
            return self._read_now()
        except ProviderError as error:
            self._failed = self._context.clock(), error
            raise

    def _read_now(self) -> _Catalogue:
        rates = Rates(self._context.clock())
        for sku in self._api.skus():
            for oddity in rates.add(sku):
                self._context.note(oddity.region, oddity.what, oddity.subject)
        if not rates.regions():
            raise ProviderError("EmptyListing", "the billing catalogue has no rate of any machine")
        return _Catalogue(rates, self._api.zones())

    def _machine(self, row: Json, zone: str, region: str) -> MachineType | None:
        try:
            machine = MachineType.model_validate(row)
        except ValidationError:
            self._context.note(region, UNKNOWN_TYPE, f"{row.get('name', '?')} in {zone}")
            return None
        if not machine.is_for_sale:
            return None
        if machine.gpu[0] and machine.gpu[0] not in GPU_MODELS:
            self._context.note(region, UNKNOWN_TYPE, f"{machine.name} in {zone} (accelerator {machine.gpu[0]})")
            return None
        return machine

    def _made_of(self, machine: MachineType, zone: str, accelerators: Mapping[str, int], till: Till) -> Iterator[Offer]:
        for gpu, count in _furnishings(machine, zone, accelerators):
            disk = till.disk_usd_gib_month(machine) or self._context.disk_usd_gib_month(_NAME, till.region)
            offer = checked(_offer(machine, zone, (gpu, count), till, disk), self._context)
            if offer is not None:
                yield offer


def _furnishings(machine: MachineType, zone: str, accelerators: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The machine as it comes; an N1 host also with the zone's GPUs."""
    yield machine.gpu
    if machine.takes_gpus:
        for gpu, most in accelerators.items():
            for count in counts_for_host(gpu, zone, machine.guest_cpus, machine.memory_gib, most):
                yield gpu, count


def _offer(machine: MachineType, zone: str, gpus: tuple[str, int], till: Till, disk_usd_gib_month: Decimal) -> Offer:
    gpu, gpu_count = gpus
    model = GPU_MODELS.get(gpu)
    return Offer(
        provider=_NAME,
        region=till.region,
        zone=zone,
        instance_type=machine.name,
        arch=machine.arch,
        vcpus=machine.guest_cpus,
        memory_gib=machine.memory_gib,
        gpu_name=model.name if model else "",
        gpu_maker=GPU_MAKER if model else "",
        gpu_count=gpu_count,
        vram_mib=gpu_count * model.vram_mib if model else 0,
        spot_usd_hour=till.machine_usd_hour(machine, gpu, gpu_count, spot=True),
        on_demand_usd_hour=till.machine_usd_hour(machine, gpu, gpu_count, spot=False),
        disk_usd_gib_month=disk_usd_gib_month,
        read_at=till.rates.read_at,
    )
