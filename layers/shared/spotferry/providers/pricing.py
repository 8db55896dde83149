"""What every cloud's pricing model needs: what counts as a price, and `get_prices` over regions and their offers."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Protocol

from spotferry.providers.context import PricingContext
from spotferry.types.errors import ProviderError
from spotferry.types.gpu import GPU, GpuInfo, MemoryInfo
from spotferry.types.instance import Instance, Offer

NO_PRICE = "no price"
"""Oddity: the cloud lists it without a price above zero in any market; no offer is made."""
BAD_PRICE = "bad price"
"""Oddity: a price that is zero, negative, not a number or in no currency of ours; that market counts as closed."""
ABOVE_ON_DEMAND = "spot above on-demand"
"""Oddity: spot costs more than on-demand; the offer says so as it was read."""
BAD_RATE = "bad interruption rate"
"""Oddity: a rate of interruptions that is none we know; what was known before it stands."""
UNKNOWN_TYPE = "unknown type"
"""Oddity: a price of a machine whose size or zone the cloud does not tell; no offer is made."""
NO_DISK_PRICE = "no disk price"
"""Oddity: the cloud does not tell what a disk costs in the region; offers have the usual price of it."""

MONTH_HOURS = 730
"""Hours in the month that disk prices are for."""
REGIONS_AT_ONCE = 4


class PriceSource(Protocol):
    """The part of a pricing model that each cloud writes; `offers` is called for several regions at once."""

    def regions(self) -> Sequence[str]:
        """The regions that have prices; see `PricingModel`."""
        ...

    def offers(self, region: str) -> Iterator[Offer]:
        """One region's offers; see `PricingModel`."""
        ...


def usd(value: object) -> Decimal | None:
    """The price in a value as the cloud gives it (text or number); None unless it is finite and above zero.

    A binary number becomes the decimal that a person reads in it; zeros at the end are dropped.
    """
    try:
        price = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return Decimal(f"{price.normalize():f}") if price.is_finite() and price > 0 else None


def checked(offer: Offer, context: PricingContext) -> Offer | None:
    """The offer when it has a price in some market, else None; what is odd about its prices is noted."""
    subject = f"{offer.instance_type} in {offer.zone or offer.region}"
    if offer.spot_usd_hour is None and offer.on_demand_usd_hour is None:
        context.note(offer.region, NO_PRICE, subject)
        return None
    if offer.spot_usd_hour and offer.on_demand_usd_hour and offer.spot_usd_hour > offer.on_demand_usd_hour:
        context.note(offer.region, ABOVE_ON_DEMAND, subject)
    return offer


def priced_instances(offer: Offer) -> Iterator[Instance]:
    """The offer as the seed has it: an Instance with the price and, as `tag`, the name of each market that is open."""
    for market, price in (("spot", offer.spot_usd_hour), ("on_demand", offer.on_demand_usd_hour)):
        if price is not None:
            yield Instance(
                provider=offer.provider,
                instance_type=offer.instance_type,
                accelerator_name=offer.gpu_name,
                accelerator_count=offer.gpu_count,
                vcpus=offer.vcpus,
                memory_gib=offer.memory_gib,
                gpus=_gpu_text(offer),
                region=offer.region,
                availability_zone=offer.zone,
                price=price,
                tag=market,
            )


def _gpu_text(offer: Offer) -> str:
    if not offer.gpu_count:
        return ""
    memory = MemoryInfo(size_in_mib=offer.vram_mib // offer.gpu_count)
    gpu = GPU(name=offer.gpu_name, manufacturer=offer.gpu_maker, count=offer.gpu_count, memory_info=memory)
    return GpuInfo(gpus=(gpu,), total_gpu_memory_in_mib=offer.vram_mib).model_dump_json(by_alias=True)


class PricesByRegion:
    """Gives a price source the seed's `get_prices`; a pricing model inherits it and writes `regions` and `offers`."""

    def get_prices(self: PriceSource) -> Iterable[Instance]:
        """Every offer in each market, region after region, four regions read at once and held in memory.

        Raises:
            ProviderError: regions failed, the first one's reason; raised after all others have been given whole.
        """
        failures: list[ProviderError] = []
        for offers in _read_ahead(self):
            try:
                read = offers.result()
            except ProviderError as error:
                failures.append(error)
                continue
            for offer in read:
                yield from priced_instances(offer)
        if failures:
            raise failures[0]


def _read_ahead(source: PriceSource) -> Iterator["Future[list[Offer]]"]:
    """The regions' offers in the order of the regions; at most `REGIONS_AT_ONCE` regions are held."""

    def read(region: str) -> list[Offer]:
        return list(source.offers(region))

    regions = iter(source.regions())
    with ThreadPoolExecutor(REGIONS_AT_ONCE, thread_name_prefix="prices") as readers:
        reading = deque(readers.submit(read, region) for region in islice(regions, REGIONS_AT_ONCE))
        try:
            while reading:
                yield reading.popleft()
                reading.extend(readers.submit(read, region) for region in islice(regions, 1))
        finally:
            for future in reading:
                future.cancel()
