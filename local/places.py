"""What Google Cloud and Azure tell of a region beside its machines: networks and quotas, as `region check` reads them.

Google Cloud's project has the network `default` in automatic mode, with a subnetwork of that name in each region.
Azure's subscription has, in any resource group, a network `spotferry-REGION` with a subnet `machines` in each region,
and one called `machines` that is nowhere in particular. Quotas are the market's. A region that is denied answers with
its denial.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from local import azure_facts, azure_pricing, gcp_facts, gcp_pricing
from local.json_face import Json, RestError, send, suffer
from local.market import Market
from local.market_faults import Faults
from local.market_model import Purchase

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_GCP = r"/_gcp/compute/v1/projects/[^/]+"
_SUBSCRIPTION = r"/_azure/arm/subscriptions/[^/]+"
_VNET = rf"{_SUBSCRIPTION}/resourceGroups/[^/]+/providers/Microsoft\.Network/virtualNetworks/(?P<vnet>[^/]+)"


class PlacesFace:
    """The reads of both clouds."""

    def __init__(self, market: Market, faults: Faults) -> None:
        self._market = market
        self._faults = faults
        self._answers: Mapping[re.Pattern[str], Callable[[Mapping[str, str]], Json]] = {
            re.compile(pattern, re.IGNORECASE): answer
            for pattern, answer in (
                (rf"{_GCP}/regions/(?P<region>[^/]+)", self._region),
                (rf"{_GCP}/global/networks/(?P<name>[^/]+)", _network),
                (rf"{_GCP}/regions/(?P<region>[^/]+)/subnetworks/(?P<name>[^/]+)", _subnetwork),
                (rf"{_SUBSCRIPTION}/providers/Microsoft\.Compute/locations/(?P<region>[^/]+)/usages", self._usages),
                (rf"{_SUBSCRIPTION}/providers/(?P<name>Microsoft\.\w+)", _provider),
                (rf"{_SUBSCRIPTION}/resourcegroups/(?P<name>[^/]+)", _group),
                (_VNET, _vnet),
                (rf"{_VNET}/subnets/(?P<name>[^/]+)", _subnet),
            )
        }

    def is_meant(self, environ: WSGIEnvironment) -> bool:
        """Tell whether a request is one for this face."""
        return environ.get("REQUEST_METHOD") == "GET" and self._found(environ) is not None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        found = self._found(environ)
        assert found is not None
        answer, named = found
        account = (gcp_pricing if "/_gcp/" in str(environ["PATH_INFO"]) else azure_pricing).ACCOUNT
        try:
            self._admit(environ, account)
            suffer(self._faults, f"{account}.places", named.get("region", ""))
            return send(start_response, 200, answer(named))
        except RestError as error:
            body = {"code": error.code, "status": error.code, "message": error.message}
            return send(start_response, error.status, {"error": body})

    def _admit(self, environ: WSGIEnvironment, account: str) -> None:
        if not str(environ.get("HTTP_AUTHORIZATION", "")).startswith("Bearer ") or self._faults.revoked(account):
            raise RestError(401, "UNAUTHENTICATED", "The request has no valid access token.")

    def _found(self, environ: WSGIEnvironment) -> tuple[Callable[[Mapping[str, str]], Json], Mapping[str, str]] | None:
        path = str(environ.get("PATH_INFO", ""))
        for pattern, answer in self._answers.items():
            if named := pattern.fullmatch(path):
                return answer, named.groupdict()
        return None

    def _region(self, named: Mapping[str, str]) -> Json:
        region = named["region"]
        if region not in gcp_facts.ZONES:
            raise _missing("region", region)
        quotas = {"CPUS": Purchase.ON_DEMAND, "PREEMPTIBLE_CPUS": Purchase.SPOT}
        listed = [
            {"metric": metric, **self._quota(gcp_facts.PROVIDER, region, purchase, "usage")}
            for metric, purchase in quotas.items()
        ]
        return {"name": region, "status": "UP", "quotas": listed}

    def _usages(self, named: Mapping[str, str]) -> Json:
        region = named["region"]
        if region not in azure_facts.ZONES:
            raise _missing("location", region)
        quotas = {"cores": Purchase.ON_DEMAND, "lowPriorityCores": Purchase.SPOT}
        listed = [
            {"name": {"value": name}, **self._quota(azure_facts.PROVIDER, region, purchase, "currentValue")}
            for name, purchase in quotas.items()
        ]
        return {"value": listed}

    def _quota(self, provider: str, region: str, purchase: Purchase, used: str) -> Json:
        """Both numbers of a quota; each cloud's types are of one family, which has the cloud's name."""
        key, stock = (provider, region, purchase, provider), self._market.stock
        return {"limit": stock.quota(key), used: stock.used(key)}


def _network(named: Mapping[str, str]) -> Json:
    if named["name"] != "default":
        raise _missing("network", named["name"])
    return {"name": "default", "autoCreateSubnetworks": True}


def _subnetwork(named: Mapping[str, str]) -> Json:
    if named["region"] not in gcp_facts.ZONES or named["name"] != "default":
        raise _missing("subnetwork", named["name"])
    return {"name": "default", "region": named["region"]}


def _provider(named: Mapping[str, str]) -> Json:
    return {"namespace": named["name"], "registrationState": "Registered"}


def _group(named: Mapping[str, str]) -> Json:
    return {"name": named["name"], "properties": {"provisioningState": "Succeeded"}}


def _vnet(named: Mapping[str, str]) -> Json:
    if named["vnet"] == "machines":
        return {"name": "machines"}
    prefix, _, region = named["vnet"].partition("-")
    if prefix != "spotferry" or region not in azure_facts.ZONES:
        raise _missing("network", named["vnet"])
    return {"name": named["vnet"], "location": region}


def _subnet(named: Mapping[str, str]) -> Json:
    _vnet(named)
    if named["name"] != "machines":
        raise _missing("subnet", named["name"])
    return {"name": "machines", "properties": {"provisioningState": "Succeeded"}}


def _missing(kind: str, name: str) -> RestError:
    return RestError(404, "notFound", f"There is no {kind} {name} here.")
