"""What Google Cloud charges for parts of machines: its billing catalogue's SKUs, read into rates.

A machine has no price of its own. It costs its cores, its memory, its GPUs and the local disks that come with it, each
by its family's rate in the region, on demand or spot. The catalogue names a rate in words only, so the words are
matched whole: what is not known here (commitments, sole tenancy, custom shapes, reservations) gives no rate.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spotferry.providers.pricing import BAD_PRICE, MONTH_HOURS, usd
from spotferry.providers.rest import Json

CORE, RAM, GPU, SSD, MACHINE, DISK = "core", "ram", "gpu", "local ssd", "machine", "disk"
"""Parts: a core and a GPU for an hour, a GiB of memory or of local disk for an hour, a whole machine for an hour, a GiB
of network disk for a month."""
ANY_FAMILY = ""
"""Local disks of the families that have no rate of their own."""
PREMIUM = "m2 premium"
"""What an m2 costs on top of an m1, a core and a GiB."""
BALANCED_DISK, HYPERDISK = "pd-balanced", "hyperdisk-balanced"

_HOUR = {"h": Decimal(1)}
_GIB_HOUR = {"GiBy.h": Decimal(1), "GiBy.mo": 1 / Decimal(MONTH_HOURS)}
_GIB_MONTH = {"GiBy.mo": Decimal(1)}
_UNITS: Mapping[str, Mapping[str, Decimal]] = {
    CORE: _HOUR,
    RAM: _GIB_HOUR,
    GPU: _HOUR,
    SSD: _GIB_HOUR,
    MACHINE: _HOUR,
    DISK: _GIB_MONTH,
}

_SPOT_WORDS = re.compile(r"^(Spot )?Preemptible |attached to (Spot )?Preemptible VM", re.IGNORECASE)
_SPOT_PREFIX = r"(?:(?:Spot )?Preemptible )?"
_PLACE = r"(?: (?:running )?in .+)?"
_NAMED_FAMILY = re.compile(r"([A-Z]\d\w*)(?: (?:Predefined|AMD|Arm|Memory-optimized))?")
_NAMELESS_FAMILIES = {
    "Compute optimized": "c2",
    "Memory-optimized": "m1",
    "Memory Optimized Upgrade Premium for Memory-optimized": PREMIUM,
}
_CORE_OR_RAM = re.compile(_SPOT_PREFIX + r"(.+?)(?: Instance)? (Core|Ram) running in .+")
_GPU_MODEL = re.compile(r"Nvidia (.+?) GPU(?: attached to (?:(?:Spot )?Preemptible )?VMs?)?" + _PLACE)
_OWN_SSD = re.compile(_SPOT_PREFIX + r"([A-Z]\d\w*) Instance Local SSD" + _PLACE)
_COMMON_SSD = re.compile(r"SSD backed Local Storage(?: attached to (?:Spot )?Preemptible VMs?)?" + _PLACE)
_WHOLE = {
    re.compile(_SPOT_PREFIX + r"Micro Instance with burstable CPU running in .+"): "f1-micro",
    re.compile(_SPOT_PREFIX + r"Small Instance with 1 VCPU running in .+"): "g1-small",
}
_DISKS = {
    re.compile(r"Balanced PD Capacity" + _PLACE): BALANCED_DISK,
    re.compile(r"Hyperdisk Balanced Capacity" + _PLACE): HYPERDISK,
}
_NANOS = Decimal(1_000_000_000)


class Part(NamedTuple):
    """What a rate is for: the kind of part, and whose (a family, a GPU's name in the catalogue, a disk type)."""

    kind: str
    of: str


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Money(_Answer):
    currency_code: str = Field(default="USD", alias="currencyCode")
    units: int = 0
    nanos: int = 0


class _Tier(_Answer):
    unit_price: _Money = Field(alias="unitPrice")


class _Expression(_Answer):
    usage_unit: str = Field(alias="usageUnit")
    tiered_rates: tuple[_Tier, ...] = Field(default=(), alias="tieredRates")


class _Pricing(_Answer):
    pricing_expression: _Expression = Field(alias="pricingExpression")


class _Category(_Answer):
    usage_type: str = Field(default="", alias="usageType")


class Sku(_Answer):
    """One line of the catalogue, as far as prices need it."""

    description: str
    category: _Category
    service_regions: tuple[str, ...] = Field(default=(), alias="serviceRegions")
    pricing_info: tuple[_Pricing, ...] = Field(default=(), alias="pricingInfo")

    @property
    def is_spot(self) -> bool:
        """The words decide beside the category: some spot SKUs are filed under OnDemand."""
        return self.category.usage_type == "Preemptible" or _SPOT_WORDS.search(self.description) is not None

    def usd(self, kind: str) -> Decimal | None:
        """The price in our unit of the kind; None when it is missing, zero, or in another currency or unit.

        The last tier is what a machine that runs on and on costs; a free first tier is soon used up.
        """
        if not self.pricing_info or not self.pricing_info[-1].pricing_expression.tiered_rates:
            return None
        expression = self.pricing_info[-1].pricing_expression
        money, factor = expression.tiered_rates[-1].unit_price, _UNITS[kind].get(expression.usage_unit)
        if money.currency_code != "USD" or factor is None:
            return None
        return usd((money.units + money.nanos / _NANOS) * factor)


def part_of(description: str) -> Part | None:
    """What a SKU's words say it prices; None for what machines of ours are not made of."""
    if found := _CORE_OR_RAM.fullmatch(description):
        family = _family(found[1])
        return None if family is None else Part(found[2].lower(), family)
    if found := _GPU_MODEL.fullmatch(description):
        return Part(GPU, found[1])
    if found := _OWN_SSD.fullmatch(description):
        return Part(SSD, found[1].lower())
    if _COMMON_SSD.fullmatch(description):
        return Part(SSD, ANY_FAMILY)
    for kind, patterns in ((MACHINE, _WHOLE), (DISK, _DISKS)):
        for pattern, name in patterns.items():
            if pattern.fullmatch(description):
                return Part(kind, name)
    return None


def _family(words: str) -> str | None:
    if words in _NAMELESS_FAMILIES:
        return _NAMELESS_FAMILIES[words]
    named = _NAMED_FAMILY.fullmatch(words)
    return named[1].lower() if named else None


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something in the catalogue that gave no rate: in which region, what, about which SKU."""

    region: str
    what: str
    subject: str


@dataclass(slots=True)
class Rates:
    """The rates of all regions; only what is read of SKUs is kept, so the size does not grow with their number.

    Attributes:
        read_at: when reading began.
    """

    read_at: datetime
    _usd: dict[tuple[str, Part, bool], Decimal] = field(default_factory=dict)

    def add(self, row: Json) -> Iterator[Oddity]:
        """Take one SKU as the API gives it; what is odd about it comes back. Run the iterator to its end."""
        try:
            sku = Sku.model_validate(row)
        except ValidationError:
            yield Oddity("", BAD_PRICE, f"SKU {row.get('skuId', row.get('description', '?'))}")
            return
        part = part_of(sku.description) if sku.category.usage_type in ("OnDemand", "Preemptible") else None
        if part is None:
            return
        price = sku.usd(part.kind)
        for region in sku.service_regions:
            if price is None:
                yield Oddity(region, BAD_PRICE, sku.description)
            else:
                self._keep((region, part, sku.is_spot), price)

    def get(self, region: str, part: Part, *, spot: bool) -> Decimal | None:
        """The rate; None when the catalogue has none."""
        return self._usd.get((region, part, spot))

    def regions(self) -> set[str]:
        """Where cores have a rate in some market."""
        return {region for region, part, _ in self._usd if part.kind == CORE}

    def _keep(self, key: tuple[str, Part, bool], price: Decimal) -> None:
        """Where two SKUs say the same, the dearer counts: a machine must not look cheaper than it may be."""
        self._usd[key] = max(price, self._usd.get(key, price))
