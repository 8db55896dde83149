"""How requests to Azure's resource manager come in, and what its answers look like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from local.arm_model import SUBSCRIPTION
from local.azure_pricing import PREFIX
from local.json_face import Json, RestError, own_url, parameters_of
from local.market_faults import Faults

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_ROOT = f"{PREFIX}arm"
_COMPUTE = r"/subscriptions/[^/]+/providers/Microsoft.Compute"
_GROUP = r"/subscriptions/[^/]+/resourceGroups/(?P<group>[^/]+)/providers/Microsoft."
_VM = rf"{_GROUP}Compute/virtualMachines"
_ROUTES = (
    (rf"PUT {_VM}/(?P<name>[^/]+)", "put"),
    (rf"GET {_VM}/(?P<name>[^/]+)", "get"),
    (rf"GET {_VM}/(?P<name>[^/]+)/instanceView", "view"),
    (rf"DELETE {_VM}/(?P<name>[^/]+)", "delete"),
    (rf"POST {_VM}/(?P<name>[^/]+)/deallocate", "deallocate"),
    (rf"GET {_VM}", "list"),
    (rf"GET {_COMPUTE}/virtualMachines", "list"),
    (rf"GET {_COMPUTE}/locations/[^/]+/operations/(?P<id>[^/]+)", "operation"),
    (rf"GET {_COMPUTE}/locations/(?P<region>[^/]+)/publishers/(?P<image>.+/versions(?:/[^/]+)?)", "image"),
    (rf"GET {_GROUP}(?:Network|Compute)/(?P<kind>networkInterfaces|publicIPAddresses|disks)", "parts"),
    (rf"GET {_GROUP}(?:Network|Compute)/(?P<kind>networkInterfaces|publicIPAddresses|disks)/(?P<name>[^/]+)", "part"),
    (
        rf"DELETE {_GROUP}(?:Network|Compute)/(?P<kind>networkInterfaces|publicIPAddresses|disks)/(?P<name>[^/]+)",
        "delete_part",
    ),
    (r"GET /subscriptions/[^/]+/providers/Microsoft.Insights/eventtypes/management/values", "activity"),
)
_PATTERNS = tuple((re.compile(line, re.IGNORECASE), name) for line, name in _ROUTES)
_THROTTLED = "RequestLimitExceeded"
"""The levers' code for too many requests, which is EC2's."""
_TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, body and headers of an answer; the operation and region whose answers may be ordered to be lost."""

    status: int
    body: Json | list[Json] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    lost: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its route, the parts of its path, its query, and what else an answer needs."""

    route: str
    parts: Mapping[str, str]
    asked: Mapping[str, str]
    if_none_match: str
    body: bytes
    url: str
    path: str


def is_meant(environ: WSGIEnvironment) -> bool:
    """Tell whether a request is one for this face; price sources have one of their own under the same address."""
    return _route(environ) is not None


def request_of(environ: WSGIEnvironment) -> Request:
    """The request, which must be meant for this face."""
    route = _route(environ)
    assert route is not None, "the front asks is_meant"
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    if_none_match = str(environ.get("HTTP_IF_NONE_MATCH", ""))
    asked, path = parameters_of(environ), str(environ["PATH_INFO"])
    return Request(route[0], route[1], asked, if_none_match, body, own_url(environ), path)


def _route(environ: WSGIEnvironment) -> tuple[str, Mapping[str, str]] | None:
    path = str(environ.get("PATH_INFO", ""))
    if not path.startswith(f"{_ROOT}/"):
        return None
    line = f"{environ['REQUEST_METHOD']} {path.removeprefix(_ROOT)}"
    for pattern, name in _PATTERNS:
        if found := pattern.fullmatch(line):
            return name, found.groupdict()
    return None


def suffer(faults: Faults, operation: str, region: str) -> None:
    """Give the call the trouble that was ordered for it.

    Raises:
        RestError: an error was ordered for the operation; throttling is a 429.
    """
    if (fault := faults.take_error(operation, region)) is not None:
        if fault.code == _THROTTLED:
            raise RestError(_TOO_MANY, "TooManyRequests", "The request is being throttled.")
        raise RestError(fault.status, fault.code, fault.message)


def refused(error: RestError, lost: tuple[str, str] = ("", "")) -> Answer:
    """An error as the resource manager writes it."""
    headers = {"Retry-After": "1"} if error.status == _TOO_MANY else {}
    return Answer(error.status, {"error": {"code": error.code, "message": error.message}}, headers, lost)


def not_found(what: str, group: str) -> RestError:
    """There is no such resource."""
    words = f"The Resource 'Microsoft.Compute/{what}' under resource group '{group}' was not found."
    return RestError(404, "ResourceNotFound", words)


def operation_at(request: Request, region: str, operation: str) -> Mapping[str, str]:
    """The headers that lead to an operation."""
    path = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/{region}/operations/{operation}"
    return {"Azure-AsyncOperation": f"{request.url}{_ROOT}{path}?api-version=2026-04-01", "Retry-After": "2"}


def next_link(request: Request, following: int) -> str:
    """The address of a list's next page."""
    kept = {**request.asked, "$skiptoken": str(following)}
    return f"{request.url}{request.path}?{'&'.join(f'{key}={value}' for key, value in kept.items())}"
