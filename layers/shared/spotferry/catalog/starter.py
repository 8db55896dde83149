"""Offers to begin with, until the first refresh of prices.

`starter.csv` holds common EC2 types in three regions. On-demand prices are those of AWS's public price list; spot
prices are typical levels of each family (a third to a half of the list price, a little different from zone to zone),
not quotes. Everything in it is replaced by the first refresh or import.
"""

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from spotferry.catalog.importer import import_price_list
from spotferry.types.instance import Offer

READ_AT = datetime(2025, 5, 1, tzinfo=UTC)
"""When the list's prices were true."""

_LIST = Path(__file__).with_name("starter.csv")


@lru_cache(maxsize=1)
def starter_offers() -> tuple[Offer, ...]:
    """The offers of the starter list."""
    offers, _ = import_price_list(_LIST.read_bytes(), "aws", READ_AT, source=_LIST.name)
    return tuple(offers)
