"""What EC2 asks for spot machines now."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

from spotferry.providers.aws.api import Calls
from spotferry.providers.aws.describe import PAGE, answers
from spotferry.providers.pricing import usd

PRODUCT = "Linux/UNIX"


def read_spot(
    calls: Calls, zones: Mapping[str, str], now: datetime, unknown_zone: Callable[[str], None]
) -> dict[tuple[str, str], Decimal | None]:
    """The spot price in force of each pair of type and zone id, US dollars an hour; None where it is no price.

    Args:
        calls: to the region.
        zones: the region's own zones, names to ids.
        now: the time whose prices are asked for.
        unknown_zone: told of each row of another zone: "type in zone".

    Raises:
        ProviderError: the listing failed; a part of it is worth nothing.
    """
    prices: dict[tuple[str, str], Decimal | None] = {}
    since: dict[tuple[str, str], datetime] = {}
    ids = set(zones.values())
    listing = answers(
        calls, "describe_spot_price_history", StartTime=now, ProductDescriptions=[PRODUCT], MaxResults=PAGE
    )
    for row in (row for answer in listing for row in answer.get("SpotPriceHistory", [])):
        zone = row.get("AvailabilityZoneId") or zones.get(row.get("AvailabilityZone", ""), "")
        pool = str(row.get("InstanceType", "")), str(zone)
        if zone not in ids:
            unknown_zone(f"{pool[0]} in {row.get('AvailabilityZone') or zone}")
        # The price moved while the pages were read: the newer one holds.
        elif pool not in since or row["Timestamp"] > since[pool]:
            since[pool], prices[pool] = row["Timestamp"], usd(row.get("SpotPrice", ""))
    return prices
