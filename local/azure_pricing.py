"""The faces of Azure's price sources: its retail price list, the listings of the resource manager, and its tokens.

The list has what a reader must choose from as the real one does: Windows, Low Priority, dedicated hosts and prices to
come stand beside the price of a plain Linux machine. Azure's prices are a region's; where the market was told
different ones for its zones, the list has the dearest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from local import azure_facts as facts
from local.azure_evictions import evictions, question_of
from local.json_face import Json, RestError, admit, own_url, page_of, parameters_of, send, suffer
from local.market import Market
from local.market_faults import Faults
from local.market_model import PoolKey, Purchase
from local.market_prices import PriceRow

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PREFIX = "/_azure/"
ACCOUNT = "azure"
"""The name of the credentials for the levers."""
TOKEN = "local-azure-token"  # noqa: S105 - opens nothing but this process's own face
_TOKEN_SECONDS = 3600
_METERS_A_PAGE, _SKUS_A_PAGE = 100, 8
_TERM = re.compile(r"(\w+) eq '([^']*)'")
_FIELDS = {"priceType": "type"}
_SINCE, _FUTURE = "2023-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
_WINDOWS_FACTOR, _LOW_PRIORITY_FACTOR = Decimal(2), Decimal("0.1")


def environment(cloud_url: str) -> Mapping[str, str]:
    """What points Azure's libraries, and ours, at these faces."""
    return {
        "AZURE_SUBSCRIPTION_ID": "00000000-0000-0000-0000-000000000000",
        "AZURE_RESOURCE_MANAGER_URL": f"{cloud_url}{PREFIX}arm",
        "AZURE_RETAIL_PRICES_URL": f"{cloud_url}{PREFIX}retail",
        "IDENTITY_ENDPOINT": f"{cloud_url}{PREFIX}msi/token",
        "IDENTITY_HEADER": "local",
    }


def is_meant(environ: WSGIEnvironment) -> bool:
    """Tell whether a request is one for these faces."""
    return str(environ.get("PATH_INFO", "")).startswith(PREFIX)


class AzurePricingFace:
    """The price sources of the regions in `azure_facts`.

    Ordered faults are those of the operations azure.prices, azure.skus and azure.evictions (in the region asked for)
    and azure.locations (no region).
    """

    def __init__(self, market: Market, faults: Faults) -> None:
        self._market = market
        self._faults = faults
        _open_market(market)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        try:
            return send(start_response, 200, self._answer(environ))
        except RestError as error:
            return send(start_response, error.status, {"error": {"code": error.code, "message": error.message}})

    def _answer(self, environ: WSGIEnvironment) -> Json:
        path = str(environ["PATH_INFO"]).removeprefix(PREFIX).split("/")
        asked = parameters_of(environ)
        match path:
            case ["msi", "token"]:
                return self._token(environ, asked)
            case ["retail", "api", "retail", "prices"]:
                return self._meter_page(environ, asked)
            case ["arm", "subscriptions", _, "locations"]:
                admit(environ, self._faults, ACCOUNT, TOKEN)
                suffer(self._faults, "azure.locations", "")
                return {"value": [_location(region) for region in facts.ZONES]}
            case ["arm", "subscriptions", _, "providers", "Microsoft.Compute", "skus"]:
                admit(environ, self._faults, ACCOUNT, TOKEN)
                return self._sku_page(environ, asked)
            case ["arm", "providers", "Microsoft.ResourceGraph", "resources"]:
                admit(environ, self._faults, ACCOUNT, TOKEN)
                region, options = question_of(environ)
                suffer(self._faults, "azure.evictions", region)
                return evictions(region, options)
        raise RestError(404, "ResourceNotFound", f"This cloud has no {'/'.join(path)}.")

    def _token(self, environ: WSGIEnvironment, asked: Mapping[str, str]) -> Json:
        if self._faults.revoked(ACCOUNT) or not environ.get("HTTP_X_IDENTITY_HEADER"):
            raise RestError(400, "invalid_request", "The identity is not known.")
        expires = int(time.time()) + _TOKEN_SECONDS
        resource = asked.get("resource", "")
        return {"access_token": TOKEN, "expires_on": str(expires), "resource": resource, "token_type": "Bearer"}

    def _meter_page(self, environ: WSGIEnvironment, asked: Mapping[str, str]) -> Json:
        terms = {_FIELDS.get(name, name): value for name, value in _TERM.findall(asked.get("$filter", ""))}
        suffer(self._faults, "azure.prices", terms.get("armRegionName", ""))
        rows = [row for row in self._meters() if all(row.get(name) == value for name, value in terms.items())]
        shown, following = page_of(rows, asked.get("$skip", ""), _METERS_A_PAGE)
        link = f"{own_url(environ)}{environ['PATH_INFO']}?$filter={asked.get('$filter', '')}&$skip={following}"
        return {
            "BillingCurrency": "USD",
            "CustomerEntityType": "Retail",
            "Items": list(shown),
            "NextPageLink": None if following is None else link,
            "Count": len(shown),
        }

    def _sku_page(self, environ: WSGIEnvironment, asked: Mapping[str, str]) -> Json:
        terms = dict(_TERM.findall(asked.get("$filter", "")))
        region = terms.get("location", "")
        suffer(self._faults, "azure.skus", region)
        shown, following = page_of(list(_skus(region)), asked.get("$skiptoken", ""), _SKUS_A_PAGE)
        page: Json = {"value": list(shown)}
        if following is not None:
            query = f"api-version=2021-07-01&$filter=location%20eq%20'{region}'&$skiptoken={following}"
            page["nextLink"] = f"{own_url(environ)}{environ['PATH_INFO']}?{query}"
        return page

    def _meters(self) -> Iterator[Json]:
        for region in facts.ZONES:
            for name in facts.KINDS:
                yield from self._machine_meters(region, name)
            disk = ("Standard SSD Managed Disks", "E10 LRS", "1/Month", "Storage", "")
            yield _meter(region, disk, "E10 LRS Disk", facts.DISK_USD_MONTH)
            yield _meter(region, disk, "E10 LRS Disk Mount", Decimal("0.96"))

    def _machine_meters(self, region: str, name: str) -> Iterator[Json]:
        series, short = facts.KINDS[name].series, name.removeprefix("Standard_").replace("_", " ")
        linux = f"Virtual Machines {series} Series"
        on_demand, spot = self._asked(region, name)
        for market, usd in (("", on_demand), (" Spot", spot)):
            if usd is not None:
                sku = (f"{short}{market}", "1 Hour", "Virtual Machines", name)
                yield _meter(region, (linux, *sku), f"{short}{market}", usd)
                yield _meter(region, (f"{linux} Windows", *sku), f"{short}{market}", usd * _WINDOWS_FACTOR)
        low = (linux, f"{short} Low Priority", "1 Hour", "Virtual Machines", name)
        yield _meter(region, low, f"{short} Low Priority", on_demand * _LOW_PRIORITY_FACTOR)
        plain = (linux, short, "1 Hour", "Virtual Machines", name)
        yield _meter(region, plain, short, on_demand / 2) | {"effectiveStartDate": _FUTURE}

    def _asked(self, region: str, name: str) -> tuple[Decimal, Decimal | None]:
        """What the market asks, on demand and spot."""
        now, shape = self._market.now(), facts.KINDS[name].shape
        rows = [self._market.prices.row(_pool(region, zone, name), shape, now) for zone in facts.ZONES[region]]
        spot = [row.spot for row in rows if row.spot is not None]
        return max(row.on_demand for row in rows), max(spot) if spot else None


def _open_market(market: Market) -> None:
    """Have the market ask the list's prices; they do not move by themselves."""
    now = market.now()
    rows: list[tuple[PoolKey, PriceRow]] = []
    for region, zones in facts.ZONES.items():
        for name in facts.KINDS:
            on_demand = facts.machine_usd(region, name, spot=False)
            if on_demand is not None:
                row = PriceRow(now, facts.machine_usd(region, name, spot=True), on_demand, fixed=True)
                rows.extend((_pool(region, zone, name), row) for zone in zones)
    market.set_prices(rows)


def _pool(region: str, zone: str, name: str) -> PoolKey:
    return PoolKey(facts.PROVIDER, region, zone, name, Purchase.SPOT)


def _location(region: str) -> Json:
    return {"name": region, "displayName": region, "metadata": {"regionType": "Physical"}}


def _skus(region: str) -> Iterator[Json]:
    if region not in facts.ZONES:
        return
    zones = [zone for zone in facts.ZONES[region] if zone]
    for name, kind in facts.KINDS.items():
        capabilities = {
            "vCPUs": kind.vcpus,
            "vCPUsAvailable": kind.vcpus,
            "MemoryGB": kind.memory_gib,
            "CpuArchitectureType": kind.arch,
            "LowPriorityCapable": kind.spot,
            **({"GPUs": kind.gpus} if kind.gpus else {}),
        }
        yield {
            "resourceType": "virtualMachines",
            "name": name,
            "tier": "Standard",
            "locations": [region],
            "locationInfo": [{"location": region, "zones": zones}],
            "capabilities": [{"name": key, "value": str(value)} for key, value in capabilities.items()],
            "restrictions": [],
        }
    yield {"resourceType": "disks", "name": "StandardSSD_LRS", "locations": [region], "locationInfo": []}


def _meter(region: str, product: tuple[str, str, str, str, str], meter: str, usd: Decimal) -> Json:
    """A row of the list; product: its name, the SKU, the unit, the service, the machine type."""
    product_name, sku, unit, service, machine_type = product
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": float(usd),
        "unitPrice": float(usd),
        "armRegionName": region,
        "effectiveStartDate": _SINCE,
        "meterName": meter,
        "productName": product_name,
        "skuName": sku,
        "serviceName": service,
        "unitOfMeasure": unit,
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": machine_type,
    }
