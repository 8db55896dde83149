"""The faces of Google Cloud's price sources: its billing catalogue, the listings of the compute API, and its tokens.

Google prices parts, the market prices machines. What the market asks at the start is what the parts add up to. When
somebody sets other prices, the rates of the family follow: those types of it that were given another price in the
region say by how much, together. To keep machines and rates in step, set all types of a family alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from local import gcp_facts as facts
from local.json_face import Json, RestError, admit, page_of, parameters_of, send, suffer
from local.market import Market
from local.market_faults import Faults
from local.market_model import PoolKey, Purchase
from local.market_prices import PriceRow

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PREFIX = "/_gcp/"
ACCOUNT = "gcp"
"""The name of the credentials for the levers."""
TOKEN = "local-google-token"  # noqa: S105 - opens nothing but this process's own faces
_SERVICE = "services/6F81-5844-456A"
_MOST_SKUS, _MOST_RESOURCES = 40, 10
_NANOS = 1_000_000_000


def environment(cloud_url: str) -> Mapping[str, str]:
    """What points Google's libraries, and ours, at these faces."""
    federation = {
        "type": "external_account",
        "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/local/providers/aws",
        "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
        "token_url": f"{cloud_url}{PREFIX}sts/v1/token",
        "credential_source": {
            "environment_id": "aws1",
            "regional_cred_verification_url": "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
        },
    }
    return {
        "GCP_FEDERATION": json.dumps(federation),
        "GOOGLE_CLOUD_PROJECT": "local",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{cloud_url}{PREFIX}compute/v1/",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING": f"{cloud_url}{PREFIX}billing/v1/",
    }


def is_meant(environ: WSGIEnvironment) -> bool:
    """Tell whether a request is one for these faces."""
    return str(environ.get("PATH_INFO", "")).startswith(PREFIX)


class GcpPricingFace:
    """The price sources of the regions in `gcp_facts`.

    Ordered faults are those of the operations gcp.skus, gcp.zones (no region), gcp.machineTypes and
    gcp.acceleratorTypes (in the zone's region). Pages are small, so that every reader has to turn them.
    """

    def __init__(self, market: Market, faults: Faults) -> None:
        self._market = market
        self._faults = faults
        _open_market(market)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        try:
            return send(start_response, 200, self._answer(environ))
        except RestError as error:
            detail = {"reason": error.code, "message": error.message, "domain": "global"}
            body = {"code": error.status, "message": error.message, "errors": [detail]}
            return send(start_response, error.status, {"error": body})

    def _answer(self, environ: WSGIEnvironment) -> Json:
        path = str(environ["PATH_INFO"]).removeprefix(PREFIX).split("/")
        asked = parameters_of(environ)
        if path == ["sts", "v1", "token"]:
            return self._exchange()
        admit(environ, self._faults, ACCOUNT, TOKEN)
        match path:
            case ["billing", "v1", "services", service, "skus"] if f"services/{service}" == _SERVICE:
                suffer(self._faults, "gcp.skus", "")
                return _page(list(self._skus()), asked, "skus", "pageSize", _MOST_SKUS)
            case ["compute", "v1", "projects", _, "zones"]:
                suffer(self._faults, "gcp.zones", "")
                return _page(list(_zones()), asked, "items", "maxResults", _MOST_RESOURCES)
            case ["compute", "v1", "projects", _, "zones", zone, ("machineTypes" | "acceleratorTypes") as listing]:
                suffer(self._faults, f"gcp.{listing}", _region(zone))
                rows = _machine_types(zone) if listing == "machineTypes" else _accelerators()
                return _page(list(rows), asked, "items", "maxResults", _MOST_RESOURCES)
        raise RestError(404, "notFound", f"This cloud has no {'/'.join(path)}.")

    def _exchange(self) -> Json:
        if self._faults.revoked(ACCOUNT):
            raise RestError(403, "unauthorized_client", "The identity pool does not know this caller.")
        return {
            "access_token": TOKEN,
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "token_type": "Bearer",
            "expires_in": 3600,
        }

    def _skus(self) -> Iterator[Json]:
        for region in facts.ZONES:
            for spot in (False, True):
                yield from self._rates(region, spot=spot)
            for disk, usd in facts.DISKS.items():
                yield _sku(f"{disk} Capacity in {facts.PLACES[region]}", region, "GiBy.mo", usd)
            yield _sku(f"N2 Custom Instance Core running in {facts.PLACES[region]}", region, "h", Decimal("0.033174"))

    def _rates(self, region: str, *, spot: bool) -> Iterator[Json]:
        place, usage = facts.PLACES[region], "Preemptible" if spot else "OnDemand"
        before, attached = ("Spot Preemptible ", " attached to Spot Preemptible VMs") if spot else ("", "")
        for name, family in facts.FAMILIES.items():
            factor = self._moved(region, name, spot=spot)
            core, ram = facts.core_and_ram_usd(region, name, spot=spot)
            yield _sku(f"{before}{family.words} Core running in {place}", region, "h", core * factor, usage)
            yield _sku(f"{before}{family.words} Ram running in {place}", region, "GiBy.h", ram * factor, usage)
        for name, gpu in facts.GPUS.items():
            host = next((kind for kind, size in facts.KINDS.items() if size.gpu == name), "")
            factor = self._moved(region, host.partition("-")[0], spot=spot) if host else Decimal(1)
            usd = facts.gpu_usd(region, name, spot=spot) * factor
            yield _sku(f"{gpu.words}{attached} running in {place}", region, "h", usd, usage)

    def _moved(self, region: str, family: str, *, spot: bool) -> Decimal:
        """By what factor the market's prices for the family differ from its rates; unchanged types say nothing."""
        now, factors = self._market.now(), []
        for zone, name in ((zone, name) for zone in facts.ZONES[region] for name in facts.KINDS):
            if name.partition("-")[0] != family:
                continue
            row = self._market.prices.row(_pool(region, zone, name), facts.KINDS[name].shape, now)
            asked, usual = row.spot if spot else row.on_demand, facts.machine_usd(region, name, spot=spot)
            if asked is not None and asked != usual:
                factors.append(asked / usual)
        return sum(factors, Decimal(0)) / len(factors) if factors else Decimal(1)


def _open_market(market: Market) -> None:
    """Have the market ask what the parts add up to; spot prices do not move by themselves, as Google's do not."""
    now = market.now()
    market.set_prices(
        (
            _pool(region, zone, name),
            PriceRow(
                now, facts.machine_usd(region, name, spot=True), facts.machine_usd(region, name, spot=False), fixed=True
            ),
        )
        for region, zones in facts.ZONES.items()
        for zone in zones
        for name in facts.KINDS
    )


def _pool(region: str, zone: str, name: str) -> PoolKey:
    return PoolKey(facts.PROVIDER, region, zone, name, Purchase.SPOT)


def _region(zone: str) -> str:
    for region, zones in facts.ZONES.items():
        if zone in zones:
            return region
    raise RestError(404, "notFound", f"This cloud has no zone {zone}.")


def _zones() -> Iterator[Json]:
    for region, zones in facts.ZONES.items():
        for zone in zones:
            yield {"name": zone, "region": f"https://compute/v1/projects/local/regions/{region}", "status": "UP"}


def _machine_types(zone: str) -> Iterator[Json]:
    for name, kind in facts.KINDS.items():
        row: Json = {
            "kind": "compute#machineType",
            "name": name,
            "zone": zone,
            "guestCpus": kind.vcpus,
            "memoryMb": kind.shape.memory_mib,
            "isSharedCpu": kind.shared,
            "architecture": kind.arch,
        }
        if kind.gpus:
            row["accelerators"] = [{"guestAcceleratorType": kind.gpu, "guestAcceleratorCount": kind.gpus}]
        yield row


def _accelerators() -> Iterator[Json]:
    for name, gpu in facts.GPUS.items():
        yield {"kind": "compute#acceleratorType", "name": name, "maximumCardsPerInstance": gpu.most}


def _sku(description: str, region: str, unit: str, usd: Decimal, usage: str = "OnDemand") -> Json:
    nanos = int((usd * _NANOS).to_integral_value())
    price = {"currencyCode": "USD", "units": str(nanos // _NANOS), "nanos": nanos % _NANOS}
    expression = {"usageUnit": unit, "tieredRates": [{"startUsageAmount": 0, "unitPrice": price}]}
    return {
        "name": f"{_SERVICE}/skus/{hashlib.sha256(f'{description}|{region}'.encode()).hexdigest()[:12].upper()}",
        "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "usageType": usage},
        "serviceRegions": [region],
        "pricingInfo": [{"pricingExpression": expression}],
    }


def _page(rows: list[Json], asked: Mapping[str, str], name: str, size_name: str, most: int) -> Json:
    size = asked.get(size_name, str(most))
    if not size.isdecimal() or int(size) < 1:
        raise RestError(400, "invalid", f"{size_name} must be a positive number.")
    shown, following = page_of(rows, asked.get("pageToken", ""), min(int(size), most))
    return {name: list(shown), "nextPageToken": "" if following is None else str(following)}
