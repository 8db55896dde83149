"""What of a cloud's answer may enter the catalogue, whatever its pricing model let through."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from spotferry.ports.prices import Note
from spotferry.types.instance import Offer

NO_PRICE = "no price"
NO_MACHINE = "no processors or no memory"
ELSEWHERE = "of another cloud or region"
DUPLICATE = "listed twice"


def sound_offers(offers: Iterable[Offer], provider: str, region: str, read_at: datetime, note: Note) -> list[Offer]:
    """The offers that can be placed on; what is left out is noted.

    A price that is zero, negative or no number closes its market. Of two offers of one machine in one zone the first
    counts.

    Args:
        offers: a region's, as its pricing model gives them.
        provider: the cloud that they should be of.
        region: the region that they should be of.
        read_at: for offers that do not say when their prices were read.
        note: hears what was left out.
    """
    sound: dict[tuple[str, str, str, str, int], Offer] = {}
    for offer in offers:
        spot, on_demand = _price(offer.spot_usd_hour), _price(offer.on_demand_usd_hour)
        identity = (offer.zone, offer.instance_type, offer.arch, offer.gpu_name, offer.gpu_count)
        oddity = _oddity(offer, provider, region, spot or on_demand) or (DUPLICATE if identity in sound else "")
        if oddity:
            note(region, oddity, f"{offer.instance_type} in {offer.zone or offer.region}")
            continue
        changes = {"spot_usd_hour": spot, "on_demand_usd_hour": on_demand, "read_at": offer.read_at or read_at}
        same = all(getattr(offer, name) == value for name, value in changes.items())
        sound[identity] = offer if same else offer.model_copy(update=changes)
    return list(sound.values())


def _price(price: Decimal | None) -> Decimal | None:
    return price if price is not None and price.is_finite() and price > 0 else None


def _oddity(offer: Offer, provider: str, region: str, price: Decimal | None) -> str:
    if (offer.provider, offer.region) != (provider, region):
        return ELSEWHERE
    if not (offer.instance_type and offer.vcpus > 0 and offer.memory_gib > 0):
        return NO_MACHINE
    return "" if price else NO_PRICE
