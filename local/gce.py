"""The Compute Engine face of the market: what the official client calls for machines, their operations and images.

Serves below /_gcp/compute/v1/ beside the listings of `gcp_pricing`. Ordered faults are those of the operations
gcp.instances.insert, .get, .delete, .list, .aggregatedList, gcp.operations.get, .list, .wait and gcp.images.get,
.getFromFamily, in the region of their zone ("" without one). A fault of gcp.instances.insert.operation lets a launch be
accepted, and its operation fail with the code. A throttled call is refused in Google's words. `regions/deny` is an
organisation's policy: it refuses launches in the region, and nothing else. `fail_boots` lets accepted launches fail
later, with ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS or the code that was ordered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from local import gce_images
from local.gce_call import BASE, Call, read_call
from local.gce_filter import parse
from local.gce_instances import Instances
from local.gce_operations import Operations
from local.gcp_pricing import ACCOUNT, TOKEN
from local.json_face import Json, RestError, admit, send
from local.market import Market
from local.market_faults import Faults

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_KINDS = frozenset({"instances", "operations", "images"})
_THROTTLED = "RequestLimitExceeded"
"""The code that the throttle lever orders, whatever the cloud."""
_LONGEST_WAIT_SECONDS = 120.0
_LOOK_SECONDS = 0.02


def is_meant(environ: WSGIEnvironment) -> bool:
    """Tell whether a request is one for this face."""
    parts = str(environ.get("PATH_INFO", "")).removeprefix(f"{BASE}/").split("/")
    return parts[0] == "projects" and bool(_KINDS.intersection(parts[2:5]))


class GceFace:
    """One Compute Engine for all zones."""

    def __init__(self, market: Market, faults: Faults) -> None:
        self._faults = faults
        self._operations = Operations(market)
        instances = Instances(market, faults, self._operations)
        self._answers: Mapping[str, Callable[[Call], Json]] = {
            "instances.insert": instances.insert,
            "instances.delete": instances.delete,
            "instances.get": instances.get,
            "instances.list": instances.in_zone,
            "instances.aggregatedList": instances.everywhere,
            "operations.list": self._list,
            "operations.get": self._get,
            "operations.wait": self._wait,
            "images.get": lambda call: gce_images.view(gce_images.by_name(call.project, call.name)),
            "images.getFromFamily": lambda call: gce_images.view(gce_images.by_family(call.project, call.name)),
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        try:
            admit(environ, self._faults, ACCOUNT, TOKEN)
            return send(start_response, 200, self._carried_out(read_call(environ, raw)))
        except RestError as error:
            detail = {"reason": error.code, "message": error.message, "domain": "global"}
            body = {"code": error.status, "message": error.message, "errors": [detail]}
            return send(start_response, error.status, {"error": body})

    def _carried_out(self, call: Call) -> Json:
        """The answer, unless trouble was ordered for the call."""
        name = f"gcp.{call.operation}"
        fault = self._faults.take_error(name, call.region)
        if fault is not None and fault.code == _THROTTLED:
            words = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute'."
            raise RestError(403, "rateLimitExceeded", words)
        if fault is not None:
            raise RestError(fault.status, fault.code, fault.message)
        answer = self._answers[call.operation](call)
        if self._faults.take_lost(name, call.region):
            # The server drops the connection on this one: the work is done and nobody hears of it.
            raise ConnectionAbortedError(f"the answer to {name} was ordered to be lost")
        return answer

    def _list(self, call: Call) -> Json:
        first, is_wanted = int(call.asked.get("pageToken") or 0), parse(call.asked.get("filter", ""))
        views = (self._operations.view(o, call.project, call.base) for o in self._operations.in_zone(call.zone))
        rows = [row for row in views if is_wanted(row)]
        after = first + call.size
        token = str(after) if after < len(rows) else ""
        return {"kind": "compute#operationList", "items": rows[first:after], "nextPageToken": token}

    def _get(self, call: Call) -> Json:
        operation = self._operations.get(call.zone, call.name)
        if operation is None:
            path = f"projects/{call.project}/zones/{call.zone}/operations/{call.name}"
            raise RestError(404, "notFound", f"The resource '{path}' was not found")
        return self._operations.view(operation, call.project, call.base)

    def _wait(self, call: Call) -> Json:
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        shown = self._get(call)
        while shown["status"] != "DONE" and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
            shown = self._get(call)
        return shown
