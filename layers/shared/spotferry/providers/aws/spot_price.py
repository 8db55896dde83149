"""What EC2 asked for a spot machine when it was launched: the price that its bill begins with."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from spotferry.providers.aws.api import Calls
from spotferry.providers.aws.describe import answers
from spotferry.types.instance import Attempt

_PRODUCT = "Linux/UNIX"

# Any: one reading as the SDK gives it, a tree of plain values.
Reading = Mapping[str, Any]


def price_at_launch(calls: Calls, attempt: Attempt) -> Decimal | None:
    """The spot price in force in the machine's zone at its launch, US dollars an hour; None where EC2 names none.

    Raises:
        ProviderError: the question failed.
    """
    if attempt.launched_at is None or attempt.market != "spot":
        return None
    readings = sorted(_in_force(calls, attempt, attempt.launched_at), key=lambda reading: reading[0])
    return readings[-1][1] if readings else None


def _in_force(calls: Calls, attempt: Attempt, at: datetime) -> Iterator[tuple[datetime, Decimal]]:
    zone = attempt.availability_zone
    place = {"AvailabilityZoneId" if "-az" in zone else "AvailabilityZone": zone}
    window = {"StartTime": at, "EndTime": at}
    types, products = [attempt.instance_type], [_PRODUCT]
    for answer in answers(
        calls, "describe_spot_price_history", InstanceTypes=types, ProductDescriptions=products, **place, **window
    ):
        for reading in answer.get("SpotPriceHistory", []):
            price = _price(reading)
            if price is not None and reading["Timestamp"] <= at:
                yield reading["Timestamp"], price


def _price(reading: Reading) -> Decimal | None:
    """The reading's price; None for one that no machine is sold at."""
    try:
        price = Decimal(str(reading.get("SpotPrice", "")))
    except InvalidOperation:
        return None
    return price if price.is_finite() and price > 0 else None
