"""Azure's retail prices: which rows are a Linux machine's, in which market, and which one counts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from spotferry.providers.pricing import usd
from spotferry.providers.rest import Json

DISK_PRODUCT, DISK_METER, DISK_GIB = "Standard SSD Managed Disks", "E10 LRS Disk", 128
"""The disk by which a GiB is priced: the tiers of this product cost the same for each GiB."""

_MACHINE_HOUR, _DISK_MONTH = "1 Hour", "1/Month"
_OTHER_PRODUCTS = ("Windows", "Cloud Services", "CloudServices", "Dedicated Host")
_OTHER_METERS = ("Low Priority", "Expired")
_SPOT = "Spot"


class Meter(BaseModel):
    """One row of the list, as far as prices need it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    # Any number the list has; what counts as a price is decided by `usd`.
    retail_price: Decimal | None = Field(default=None, alias="retailPrice", allow_inf_nan=True)
    currency: str = Field(default="", alias="currencyCode")
    unit: str = Field(default="", alias="unitOfMeasure")
    kind: str = Field(default="", alias="type")
    machine_type: str = Field(default="", alias="armSkuName")
    product: str = Field(default="", alias="productName")
    sku: str = Field(default="", alias="skuName")
    meter: str = Field(default="", alias="meterName")
    least_units: Decimal = Field(default=Decimal(0), alias="tierMinimumUnits")
    is_primary: bool = Field(default=True, alias="isPrimaryMeterRegion")
    since: AwareDatetime | None = Field(default=None, alias="effectiveStartDate")

    @property
    def is_for_a_machine(self) -> bool:
        """It prices an hour of a Linux machine that anybody may rent, from the first hour on."""
        return (
            bool(self.machine_type)
            and self.unit == _MACHINE_HOUR
            and self._is_plain
            and not any(words in self.product for words in _OTHER_PRODUCTS)
            and not any(words in self.meter or words in self.sku for words in _OTHER_METERS)
        )

    @property
    def is_for_the_disk(self) -> bool:
        """It prices a month of the disk by which a GiB is priced; its accessory meters share the product."""
        return self.product == DISK_PRODUCT and self.meter == DISK_METER and self.unit == _DISK_MONTH and self._is_plain

    @property
    def is_spot(self) -> bool:
        """It is the spot market's."""
        return _SPOT in self.meter.split() or _SPOT in self.sku.split()

    @property
    def _is_plain(self) -> bool:
        return self.kind == "Consumption" and not self.least_units


class _Ranked(NamedTuple):
    """A price and its claim to count: the region's primary meter first, then the newest."""

    is_primary: bool
    since: datetime
    price: Decimal


class Quotes(NamedTuple):
    """What a machine type costs an hour in each market; None where it has no price."""

    spot: Decimal | None
    on_demand: Decimal | None


@dataclass(slots=True)
class PriceSheet:
    """One region's machine prices.

    Attributes:
        read_at: a row that takes effect later does not count.
    """

    read_at: datetime
    _best: dict[tuple[str, bool], _Ranked] = field(default_factory=dict)

    def add(self, row: Json) -> Iterator[str]:
        """Take a row as the API gives it; if its price is no price, the name of what it prices comes back."""
        meter = parse_meter(row)
        if meter is None:
            yield str(row.get("meterName", "?"))
            return
        since = meter.since or datetime.min.replace(tzinfo=self.read_at.tzinfo)
        if not meter.is_for_a_machine or since > self.read_at:
            return
        price = usd(meter.retail_price) if meter.currency == "USD" else None
        if price is None:
            yield f"{meter.machine_type} ({meter.meter})"
            return
        key = meter.machine_type.casefold(), meter.is_spot
        ranked = _Ranked(meter.is_primary, since, price)
        self._best[key] = max(ranked, self._best.get(key, ranked))

    def quotes(self, machine_type: str) -> Quotes:
        """The prices of a type; case does not count."""
        name = machine_type.casefold()
        spot, on_demand = self._best.get((name, True)), self._best.get((name, False))
        return Quotes(spot.price if spot else None, on_demand.price if on_demand else None)

    def machine_types(self) -> set[str]:
        """The types that have a price, in small letters."""
        return {name for name, _ in self._best}


def parse_meter(row: Json) -> Meter | None:
    """The row; None when it is not what the API promises."""
    try:
        return Meter.model_validate(row)
    except ValidationError:
        return None


def disk_usd_gib_month(rows: Iterator[Json], now: datetime) -> Decimal | None:
    """A GiB of the disk that machines boot from, for a month; None when no row says it."""
    known = [
        _Ranked(meter.is_primary, meter.since or datetime.min.replace(tzinfo=now.tzinfo), price / DISK_GIB)
        for row in rows
        if (meter := parse_meter(row)) is not None
        and meter.is_for_the_disk
        and meter.currency == "USD"
        and (meter.since is None or meter.since <= now)
        and (price := usd(meter.retail_price)) is not None
    ]
    return max(known).price if known else None
