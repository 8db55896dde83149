"""Gives the local cloud one list of prices: in the bucket, where functions look, and in the market, which charges."""

import json
import urllib.request
from collections.abc import Collection, Sequence

from local.deploy import client
from local.other_offers import offers_of
from spotferry.catalog.source import publish
from spotferry.catalog.starter import READ_AT, starter_offers
from spotferry.runtime.bucket import Bucket
from spotferry.types.instance import Offer

SECONDS = 20


def load_catalogue(
    endpoint: str, bucket: str, regions: Collection[str], clouds: Sequence[str] = ("aws",)
) -> Sequence[Offer]:
    """Publish these clouds' offers as the deployment's catalogue, AWS's of these regions only, and return AWS's.

    The market asks the others' prices by itself: their faces open it with them.
    """
    offers = [offer for offer in starter_offers() if offer.region in regions] if "aws" in clouds else []
    others = [offer for cloud in clouds if cloud != "aws" for offer in offers_of(cloud)]
    publish(Bucket(bucket, lambda: client("s3", endpoint)), [*offers, *others], READ_AT)
    return offers


def load_market(cloud_url: str, offers: Sequence[Offer]) -> None:
    """Have the market ask the offers' prices.

    Raises:
        urllib.error.HTTPError: the market refused them.
    """
    prices = [
        {
            "provider": offer.provider,
            "region": offer.region,
            "zone": offer.zone,
            "type": offer.instance_type,
            "spot": _text(offer.spot_usd_hour),
            "on_demand": _text(offer.on_demand_usd_hour),
        }
        for offer in offers
    ]
    request = urllib.request.Request(  # noqa: S310 - our own http address
        f"{cloud_url}/_market/prices",
        data=json.dumps(prices).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as response:  # noqa: S310
        response.read()


def _text(price: object) -> str | None:
    return None if price is None else str(price)
