"""One request to the Compute Engine face, read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.gcp_facts import ZONES
from local.gcp_pricing import PREFIX
from local.json_face import Json, RestError, own_url, parameters_of

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

BASE = f"{PREFIX}compute/v1"
_MOST_ROWS = 500
_ROUTES: Mapping[tuple[str, str], str] = {
    ("POST", "zones/*/instances"): "instances.insert",
    ("GET", "zones/*/instances"): "instances.list",
    ("GET", "zones/*/instances/*"): "instances.get",
    ("DELETE", "zones/*/instances/*"): "instances.delete",
    ("GET", "aggregated/instances"): "instances.aggregatedList",
    ("GET", "zones/*/operations"): "operations.list",
    ("GET", "zones/*/operations/*"): "operations.get",
    ("POST", "zones/*/operations/*/wait"): "operations.wait",
    ("GET", "global/images/family/*"): "images.getFromFamily",
    ("GET", "global/images/*"): "images.get",
}
"""Method and path below the project to the API's own name of the operation."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the operation, the project, zone and name in its path, and what it asks."""

    operation: str
    project: str
    zone: str
    name: str
    base: str
    asked: Mapping[str, str]
    body: Json

    @property
    def region(self) -> str:
        """The zone's region; "" for a call without a zone.

        Raises:
            RestError: there is no such zone.
        """
        if not self.zone:
            return ""
        found = next((region for region, zones in ZONES.items() if self.zone in zones), None)
        if found is None:
            path = f"projects/{self.project}/zones/{self.zone}"
            raise RestError(404, "notFound", f"The resource '{path}' was not found")
        return found

    @property
    def size(self) -> int:
        """How many rows a page has at most.

        Raises:
            RestError: more than the API gives, or no number.
        """
        size = self.asked.get("maxResults", str(_MOST_ROWS))
        if not size.isdecimal() or not 0 < int(size) <= _MOST_ROWS:
            words = f"Invalid value for field 'maxResults': '{size}'. Must be from 1 to {_MOST_ROWS}."
            raise RestError(400, "invalid", words)
        return int(size)


def read_call(environ: WSGIEnvironment, raw: bytes) -> Call:
    """The request.

    Raises:
        RestError: it is none that this face answers, or its body is no JSON.
    """
    parts = str(environ["PATH_INFO"]).removeprefix(f"{BASE}/").split("/")
    path, method = parts[2:], str(environ["REQUEST_METHOD"])
    operation, names = _route(method, path)
    try:
        body = json.loads(raw) if raw else {}
    except ValueError as error:
        raise RestError(400, "parseError", f"The request's body is no JSON: {error}") from error
    zone = names.pop(0) if path[0] == "zones" else ""
    base = f"{own_url(environ)}{BASE}"
    return Call(operation, parts[1], zone, names[0] if names else "", base, parameters_of(environ), body)


def _route(method: str, path: list[str]) -> tuple[str, list[str]]:
    """The operation, and what stands where its path is open."""
    for (wanted_method, pattern), operation in _ROUTES.items():
        wanted = pattern.split("/")
        fits = len(wanted) == len(path) and all(w in ("*", part) for w, part in zip(wanted, path, strict=True))
        if method == wanted_method and fits:
            return operation, [part for w, part in zip(wanted, path, strict=True) if w == "*"]
    raise RestError(404, "notFound", f"This cloud has no {method} {'/'.join(path)}.")
