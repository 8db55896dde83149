"""The offers that are measured over: price lists, or the starter offers multiplied to the size of real ones."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from spotferry.catalog.importer import import_price_list
from spotferry.catalog.starter import starter_offers
from spotferry.types import Offer

REAL_SIZE = 29_000
"""Offers in the public lists of AWS, GCP and Paperspace together."""


def from_price_lists(lists: Sequence[tuple[str, Path]]) -> list[Offer]:
    """The offers of CSV lists, given as (provider, file).

    Raises:
        InvalidInput: one of them is no price list.
    """
    now = datetime.now(UTC)
    return [
        offer for provider, path in lists for offer in import_price_list(path.read_bytes(), provider, now, str(path))[0]
    ]


def made_up(count: int = REAL_SIZE) -> list[Offer]:
    """At least `count` offers with 567 types in 17 regions: the starter offers, seven generations of each."""
    generations = [_generation(offer, number) for offer in starter_offers() for number in range(7)]
    regions = -(-count // len(generations))
    return [moved for number in range(regions) for moved in _elsewhere(generations, number, "")]


def times(offers: Sequence[Offer], factor: int) -> list[Offer]:
    """A list `factor` times as long: the same types in other regions, at other prices."""
    return [moved for number in range(factor) for moved in _elsewhere(offers, number, "longer-")]


def _elsewhere(offers: Sequence[Offer], number: int, mark: str) -> Iterator[Offer]:
    suffix = f"-{mark}{number}"
    for offer in offers:
        place = {"region": offer.region + suffix, "zone": offer.zone + suffix} if number else {}
        yield _dearer(offer, Decimal(100 + number) / 100, place)


def _generation(offer: Offer, number: int) -> Offer:
    family, dot, size = offer.instance_type.partition(".")
    name = {"instance_type": f"{family}v{number}{dot}{size}"} if number else {}
    return _dearer(offer, Decimal(100 + 7 * number) / 100, name)


def _dearer(offer: Offer, factor: Decimal, changes: dict[str, str]) -> Offer:
    spot, listed = offer.spot_usd_hour, offer.on_demand_usd_hour
    prices = {"spot_usd_hour": spot and spot * factor, "on_demand_usd_hour": listed and listed * factor}
    return offer.model_copy(update={**changes, **prices})
