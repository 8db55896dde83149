"""The face of AWS's price list: a WSGI app that speaks its JSON protocol, with the market's on-demand prices.

It has what a client must choose from as the real one does: other operating systems and capacity that is reserved stand
beside the price of a plain Linux machine, which only the right filters find. Answers come in pages of at most 100.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any

from local.aws_facts import offered_types, shape_of
from local.ec2_call import PROVIDER
from local.ec2_wire import credential_scope
from local.market import Market
from local.market_faults import Faults
from local.market_model import PoolKey, Purchase, Shape
from spotferry.catalog.disk_prices import disk_usd_gib_month

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

TARGET = "AWSPriceListService."
"""How the header `X-Amz-Target` of its requests begins."""
_MOST_A_PAGE = 100
_WINDOWS_FACTOR = Decimal("1.9")
_EFFECTIVE = "2020-01-01T00:00:00Z"
# Any: JSON as the protocol has it.
Json = dict[str, Any]


class PricingError(Exception):
    """A refusal in the service's own words."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


def is_meant(environ: WSGIEnvironment) -> bool:
    """Tell whether a request is one for the price list."""
    return str(environ.get("HTTP_X_AMZ_TARGET", "")).startswith(TARGET)


class AwsPricingFace:
    """The price list of every region the market sells EC2 machines in.

    Ordered faults are those of the operation GetProducts, in the region whose prices are asked for.
    """

    def __init__(self, market: Market, faults: Faults) -> None:
        self._market = market
        self._faults = faults

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, answer = 200, {}
        try:
            answer = self._answer(environ, body)
        except PricingError as error:
            status, answer = error.status, {"__type": error.code, "message": error.message}
        raw = json.dumps(answer).encode()
        headers = [
            ("Content-Type", "application/x-amz-json-1.1"),
            ("Content-Length", str(len(raw))),
            ("x-amzn-RequestId", str(uuid.uuid4())),
        ]
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [raw]

    def _answer(self, environ: WSGIEnvironment, body: bytes) -> Json:
        scope = credential_scope(environ.get("HTTP_AUTHORIZATION", ""))
        if scope is None:
            raise PricingError("MissingAuthenticationTokenException", "Missing Authentication Token", 403)
        if self._faults.revoked(scope[0]):
            raise PricingError("UnrecognizedClientException", "The security token is invalid.")
        operation = str(environ.get("HTTP_X_AMZ_TARGET", "")).removeprefix(TARGET)
        if operation != "GetProducts":
            raise PricingError("UnknownOperationException", f"This cloud's price list has no {operation}.")
        request = _request(body)
        wanted = _wanted(request)
        fault = self._faults.take_error(operation, wanted.get("regionCode", ""))
        if fault is not None:
            raise PricingError(fault.code, fault.message, fault.status)
        return self._page(request, wanted)

    def _page(self, request: Json, wanted: Mapping[str, str]) -> Json:
        size = int(request.get("MaxResults", _MOST_A_PAGE))
        token = str(request.get("NextToken") or "0")
        if not 1 <= size <= _MOST_A_PAGE or not token.isdecimal():
            raise PricingError(
                "InvalidParameterException", "MaxResults must be 1 to 100, NextToken one that was given."
            )
        found = (product for product in self._products(wanted["regionCode"]) if _fits(product, wanted))
        shown = list(islice(found, int(token), int(token) + size + 1))
        page: Json = {"FormatVersion": "aws_v1", "PriceList": [json.dumps(product) for product in shown[:size]]}
        return page | ({"NextToken": str(int(token) + size)} if len(shown) > size else {})

    def _products(self, region: str) -> Iterator[Json]:
        zones = offered_types(region)
        for instance_type in sorted(frozenset[str]().union(*zones.values())):
            shape = shape_of(instance_type)
            if shape is not None:
                sellers = [zone for zone, types in zones.items() if instance_type in types]
                yield from _machines(
                    region, instance_type, shape, self._on_demand(region, instance_type, sellers, shape)
                )
        if zones:
            yield _disk(region)

    def _on_demand(self, region: str, instance_type: str, zones: list[str], shape: Shape) -> Decimal:
        """The region's one price: that of a zone that somebody priced, if there is one."""
        pools = [PoolKey(PROVIDER, region, zone, instance_type, Purchase.ON_DEMAND) for zone in zones]
        prices = self._market.prices
        pool = next((pool for pool in pools if prices.is_set(pool)), pools[0])
        return prices.row(pool, shape, self._market.now()).on_demand


def _request(body: bytes) -> Json:
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise PricingError("SerializationException", "The body is not a JSON object.")
    if request.get("ServiceCode") != "AmazonEC2":
        raise PricingError("NotFoundException", f"This cloud has no service {request.get('ServiceCode')}.")
    return request


def _wanted(request: Json) -> dict[str, str]:
    wanted: dict[str, str] = {}
    for given in request.get("Filters", []):
        if given.get("Type") not in {"TERM_MATCH", "EQUALS"}:
            raise PricingError("InvalidParameterException", f"This cloud has no filters {given.get('Type')}.")
        wanted[str(given.get("Field"))] = str(given.get("Value"))
    if "regionCode" not in wanted:
        raise PricingError("InvalidParameterException", "This cloud tells its prices by regionCode: add that filter.")
    return wanted


def _fits(product: Json, wanted: Mapping[str, str]) -> bool:
    has = product["product"]["attributes"] | {"productFamily": product["product"]["productFamily"]}
    return all(str(has.get(name, "")).casefold() == value.casefold() for name, value in wanted.items())


def _machines(region: str, instance_type: str, shape: Shape, price: Decimal) -> Iterator[Json]:
    """The type as it is sold: plain, with Windows, and as capacity whose reservation is already paid for."""
    kinds = (
        ("Linux", "RunInstances", "Used", price),
        ("Windows", "RunInstances:0002", "Used", price * _WINDOWS_FACTOR),
        ("Linux", "RunInstances", "AllocatedCapacityReservation", Decimal(0)),
    )
    for system, operation, capacity, usd in kinds:
        attributes = {
            "regionCode": region,
            "instanceType": instance_type,
            "operatingSystem": system,
            "operation": operation,
            "capacitystatus": capacity,
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "vcpu": str(shape.vcpus),
            "memory": f"{shape.memory_mib / 1024:g} GiB",
        }
        yield _product("Compute Instance", attributes, "Hrs", usd)


def _disk(region: str) -> Json:
    attributes = {"regionCode": region, "volumeApiName": "gp3", "storageMedia": "SSD-backed"}
    return _product("Storage", attributes, "GB-Mo", disk_usd_gib_month(PROVIDER, region))


def _product(family: str, attributes: Mapping[str, str], unit: str, usd: Decimal) -> Json:
    sku = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(attributes)).hex[:16].upper()
    term, rate = f"{sku}.JRTCKXETXF", f"{sku}.JRTCKXETXF.6YS6EN2CT7"
    dimension = {"rateCode": rate, "unit": unit, "beginRange": "0", "endRange": "Inf", "appliesTo": []}
    return {
        "serviceCode": "AmazonEC2",
        "publicationDate": _EFFECTIVE,
        "product": {"sku": sku, "productFamily": family, "attributes": dict(attributes)},
        "terms": {
            "OnDemand": {
                term: {
                    "sku": sku,
                    "offerTermCode": "JRTCKXETXF",
                    "effectiveDate": _EFFECTIVE,
                    "termAttributes": {},
                    "priceDimensions": {rate: dimension | {"pricePerUnit": {"USD": f"{usd:.10f}"}}},
                }
            }
        },
    }
