"""How often Azure takes spot machines back, as its Resource Graph tells it.

The table SpotResources has one row for each machine type and region, with a step such as "5-10": the chance in per cent
that a machine is evicted within the next hour, from the last 28 days. Steps are told, not rates: the middle of a step
counts.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

from spotferry.providers.rest import Json, RestApi
from spotferry.types.errors import ProviderError
from spotferry.types.provider import PoolRate

SOURCE = "azure_eviction_rate"
STEPS: Mapping[str, Decimal] = MappingProxyType(
    {
        "0-5": Decimal("0.025"),
        "5-10": Decimal("0.075"),
        "10-15": Decimal("0.125"),
        "15-20": Decimal("0.175"),
        "20+": Decimal("0.225"),
    }
)
"""Evictions an hour; the last step has no end, and counts as if it were as wide as the others."""

PATH = "/providers/Microsoft.ResourceGraph/resources?api-version=2021-03-01"
_PAGE = 1000
"""The most rows that one answer has."""
_MOST_PAGES = 20
"""No region has so many types; a listing that goes on longer repeats itself."""
_REGION = re.compile(r"[a-z0-9]+")


def eviction_rates(
    manager: RestApi, region: str, read_at: datetime, unknown_step: Callable[[str], None]
) -> Iterator[PoolRate]:
    """The rate of each machine type in a region, page after page; the same in all its zones.

    Args:
        manager: the resource manager. The question names no subscription: the table belongs to none.
        region: as Azure names it.
        read_at: the time of the reading.
        unknown_step: told of each row whose step is none of `STEPS`, which makes no rate.

    Raises:
        ProviderError: the listing failed; a part of it is worth nothing.
    """
    for row in _rows(manager, region):
        name, step = str(row.get("skuName") or ""), str(row.get("evictionRate") or "").strip()
        if name and step in STEPS:
            yield PoolRate(
                provider="azure",
                region=region,
                instance_type=name,
                per_hour=STEPS[step],
                source=SOURCE,
                read_at=read_at,
            )
        else:
            unknown_step(f"{name or '?'} in {region}: {step or 'nothing'}")


def _rows(manager: RestApi, region: str) -> Iterator[Json]:
    if not _REGION.fullmatch(region):
        raise ProviderError("InvalidRegion", f"{region!r} is no name of a region", region)
    question = _question(region)
    options: dict[str, object] = {"resultFormat": "objectArray", "$top": _PAGE}
    for _ in range(_MOST_PAGES):
        page = manager.query(PATH, {"query": question, "options": options}, region)
        rows = page.get("data")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ProviderError("InvalidAnswer", "data is no list of objects", region)
        yield from rows
        token = page.get("$skipToken")
        if not token:
            return
        options["$skipToken"] = token
    raise ProviderError("EndlessPages", f"the eviction rates do not end after {_MOST_PAGES} pages", region)


def _question(region: str) -> str:
    # Sorted, since pages of rows without an order may overlap.
    return (
        "SpotResources"
        " | where type =~ 'microsoft.compute/skuspotevictionrate/location'"
        f" | where location =~ '{region}'"
        " | project skuName = tostring(sku.name), evictionRate = tostring(properties.evictionRate)"
        " | order by skuName asc"
    )
