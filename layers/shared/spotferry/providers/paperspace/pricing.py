"""Prices of Paperspace: a list in this folder, for its API tells none, and its age, which every offer carries.

`prices.csv` was put together from https://www.paperspace.com/pricing and, for the regions, the page on availability
below https://docs.digitalocean.com/products/paperspace/machines/. Prices under a commitment of years are none of ours:
the A100s have theirs without one, and the H100 is left out, because the page does not say what its price is tied to.
Whoever reads the pages again changes `prices.csv` and `LISTED_AT` together.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from spotferry.providers.context import PricingContext
from spotferry.providers.pricing import BAD_PRICE, PricesByRegion, checked, usd
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Offer
from spotferry.types.provider import PricingModel

LISTED_AT = datetime(2026, 9, 20, tzinfo=UTC)
"""When the pages were read."""
_LIST = Path(__file__).with_name("prices.csv")
_NAME = "paperspace"
_MIB_A_GIB = 1024

Row = Mapping[str, str]


class PaperspacePricing(PricesByRegion):
    """The list, region by region; nothing is asked of the network."""

    def __init__(self, context: PricingContext, rows: Sequence[Row]) -> None:
        self._context = context
        self._rows = rows

    def regions(self) -> Sequence[str]:
        """The regions that the list names."""
        return sorted({region for row in self._rows for region in row["regions"].split()})

    def offers(self, region: str) -> Iterator[Offer]:
        """One region's offers, in the order of the list; all on demand, none in a zone.

        Raises:
            ProviderError: the list has no such region.
        """
        here = [row for row in self._rows if region in row["regions"].split()]
        if not here:
            raise ProviderError("UnknownRegion", f"Paperspace's list has no region {region}", region)
        for row in here:
            offer = self._offer(region, row)
            if offer.on_demand_usd_hour is None:
                self._context.note(region, BAD_PRICE, f"{offer.instance_type}, on-demand")
            if checked(offer, self._context):
                yield offer

    def _offer(self, region: str, row: Row) -> Offer:
        return Offer(
            provider=_NAME,
            region=region,
            zone="",
            instance_type=row["type"],
            vcpus=float(row["vcpus"]),
            memory_gib=float(row["memory_gib"]),
            gpu_name=row["gpu"],
            gpu_maker="NVIDIA" if row["gpu"] else "",
            gpu_count=1 if row["gpu"] else 0,
            vram_mib=int(row["vram_gib"] or 0) * _MIB_A_GIB,
            on_demand_usd_hour=usd(row["usd_hour"]),
            disk_usd_gib_month=self._context.disk_usd_gib_month(_NAME, region),
            read_at=LISTED_AT,
        )


@lru_cache(maxsize=1)
def listed() -> tuple[Row, ...]:
    """The rows of the list."""
    with _LIST.open(newline="", encoding="utf-8") as lines:
        return tuple(csv.DictReader(lines))


def build_pricing(context: PricingContext) -> PricingModel:
    """The pricing model over the list of this release."""
    return PaperspacePricing(context, listed())
