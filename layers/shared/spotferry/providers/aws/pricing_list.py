"""What AWS asks for machines on demand and for disks: the products of its price list."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from spotferry.providers.aws.api import AwsApi
from spotferry.providers.pricing import usd
from spotferry.types.errors import ProviderError

# Any: a product is a tree of JSON whose leaves differ from one kind of product to the next.
Product = Mapping[str, Any]

PAGE = 100
"""Products in one answer; more are refused."""
_MACHINES = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
}
_DISKS = {"productFamily": "Storage", "volumeApiName": "gp3"}
_PLAIN = "RunInstances"
"""The operation of a machine that runs Linux and nothing that has a price of its own."""
_ENDPOINTS = (("cn-", "cn-northwest-1"), ("ap-", "ap-south-1"), ("eu-", "eu-central-1"), ("me-", "eu-central-1"))
_DEFAULT_ENDPOINT = "us-east-1"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RegionPrices:
    """What the price list says about one region, US dollars.

    Attributes:
        machines: an hour of each type; a type that is listed without a price has None.
        disk_gib_month: a GiB of gp3 for a month; None when the list does not say.
    """

    machines: Mapping[str, Decimal | None]
    disk_gib_month: Decimal | None


def endpoint_of(region: str) -> str:
    """The region whose endpoint tells the prices of this region: the few that have one share the work."""
    return next((endpoint for beginning, endpoint in _ENDPOINTS if region.startswith(beginning)), _DEFAULT_ENDPOINT)


def read_prices(api: AwsApi, region: str, now: datetime) -> RegionPrices:
    """The prices in force in one region.

    Raises:
        ProviderError: the list could not be read, or it has no machine of this region, which no region lacks.
    """
    machines: dict[str, Decimal | None] = {}
    for product in _products(api, region, _MACHINES):
        attributes = product["product"].get("attributes", {})
        instance_type = str(attributes.get("instanceType", ""))
        if "." in instance_type and attributes.get("operation", _PLAIN) == _PLAIN:
            # Two prices of the same thing: the dearer one, so that a doubt never makes a machine look cheap.
            prices = machines.get(instance_type), price_of(product, "Hrs", now)
            machines[instance_type] = max(filter(None, prices), default=None)
    if not machines:
        raise ProviderError("NoPriceList", f"the price list has no machines of {region}", region)
    disks = (price_of(product, "GB-Mo", now) for product in _products(api, region, _DISKS))
    return RegionPrices(machines, max(filter(None, disks), default=None))


def price_of(product: Product, unit: str, now: datetime) -> Decimal | None:
    """The on-demand price of one unit that is in force; None when there is none above zero in US dollars."""
    terms = product.get("terms", {}).get("OnDemand", {}).values()
    begun = [term for term in terms if _begins(term) <= now]
    if not begun:
        return None
    dimensions = max(begun, key=_begins).get("priceDimensions", {}).values()
    prices = (usd(d.get("pricePerUnit", {}).get("USD", "")) for d in dimensions if d.get("unit") == unit)
    return max(filter(None, prices), default=None)


def _begins(term: Mapping[str, Any]) -> datetime:
    try:
        begins = datetime.fromisoformat(str(term.get("effectiveDate", "")))
    except ValueError:
        return _LONG_AGO
    return begins if begins.tzinfo else begins.replace(tzinfo=UTC)


def _products(api: AwsApi, region: str, wanted: Mapping[str, str]) -> Iterator[Product]:
    """All products of the region with these attributes, page after page; empty pages are not the last."""
    endpoint = endpoint_of(region)
    filters = [{"Type": "TERM_MATCH", "Field": f, "Value": v} for f, v in {"regionCode": region, **wanted}.items()]
    request: dict[str, object] = {"ServiceCode": "AmazonEC2", "Filters": filters, "MaxResults": PAGE}
    token = ""
    while True:
        page = api.begin(endpoint, "pricing").pricing(
            "get_products", **request, **({"NextToken": token} if token else {})
        )
        for text in page.get("PriceList", []):
            yield _parsed(text, region)
        last, token = token, page.get("NextToken") or ""
        if not token:
            return
        if token == last:
            raise ProviderError("RepeatedPage", f"the price list of {region} does not end", region)


def _parsed(text: str, region: str) -> Product:
    """One product; the list holds each as a JSON text of its own."""
    try:
        product = json.loads(text)
    except ValueError as error:
        raise ProviderError("MalformedAnswer", f"a product of the price list is not JSON: {error}", region) from error
    if not isinstance(product, dict) or not isinstance(product.get("product"), dict):
        raise ProviderError("MalformedAnswer", "an entry of the price list is not a product", region)
    return product
