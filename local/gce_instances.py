"""What the API does with machines: sells, shows, lists and deletes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from local.gce_call import Call
from local.gce_filter import parse
from local.gce_launch import read, sell
from local.gce_operations import Operation, OperationError, Operations
from local.gce_views import instance_view
from local.gcp_facts import PROVIDER, ZONES
from local.json_face import Json, RestError
from local.market import Market
from local.market_faults import Faults
from local.market_model import Machine, MachineState, UnknownMachineError

_DENIED_BY_DEFAULT = "UnauthorizedOperation"


class Instances:
    """The machines of the project."""

    def __init__(self, market: Market, faults: Faults, operations: Operations) -> None:
        self._market = market
        self._faults = faults
        self._operations = operations
        self._one_at_a_time = threading.Lock()

    def insert(self, call: Call) -> Json:
        """Begin a launch; the same request id answers the operation that it began."""
        request_id = call.asked.get("requestId", "")
        with self._one_at_a_time:
            operation = self._operations.of_request(request_id) or self._begin(call, request_id)
        return self._operations.view(operation, call.project, call.base)

    def delete(self, call: Call) -> Json:
        """Begin the end of a machine."""
        machine = self._find(call)
        self._market.terminate(PROVIDER, call.region, [machine.allocated_id])
        operation = self._operations.add("delete", call.zone, machine.allocated_id, self._market.now())
        return self._operations.view(operation, call.project, call.base)

    def get(self, call: Call) -> Json:
        """One machine."""
        return instance_view(self._find(call), call.project, call.base)

    def in_zone(self, call: Call) -> Json:
        """The zone's machines, a page."""
        rows, token = self._page(call, [call.region], lambda machine: machine.pool.zone == call.zone)
        return {"kind": "compute#instanceList", "items": rows, "nextPageToken": token}

    def everywhere(self, call: Call) -> Json:
        """All zones' machines, a page."""
        rows, token = self._page(call, ZONES, lambda _: True)
        items: dict[str, Json] = {}
        for zone in (zone for zones in ZONES.values() for zone in zones):
            here = [row for row in rows if row["zone"].endswith(f"/{zone}")]
            nothing = {"code": "NO_RESULTS_ON_PAGE", "message": f"There are no results for scope 'zones/{zone}'."}
            items[f"zones/{zone}"] = {"instances": here} if here else {"warning": nothing}
        return {"kind": "compute#instanceAggregatedList", "items": items, "nextPageToken": token}

    def _begin(self, call: Call, request_id: str) -> Operation:
        self._refuse_by_policy(call)
        request = read(call.zone, call.body)
        name = request.allocated_id or ""
        if self._is_taken(name):
            raise RestError(409, "alreadyExists", f"The resource '{_path(call, name)}' already exists")
        ordered = self._faults.take_error("gcp.instances.insert.operation", call.region)
        error = OperationError(ordered.code, ordered.message) if ordered else sell(self._market, request)
        return self._operations.add("insert", call.zone, name, self._market.now(), request_id, error)

    def _refuse_by_policy(self, call: Call) -> None:
        code = self._faults.denial(call.region)
        if code is None:
            return
        if code != _DENIED_BY_DEFAULT:
            raise RestError(403, code, f"Access to {call.region} is denied.")
        resource = _path(call, str(call.body.get("name", "")))
        constraint = "constraint constraints/gcp.resourceLocations"
        words = f"Location {call.region} violates {constraint} on the resource {resource}."
        raise RestError(412, "conditionNotMet", words)

    def _is_taken(self, name: str) -> bool:
        """A machine has or had the name; here no name is used twice, so that a second purchase is never hidden."""
        try:
            self._market.get(name)
        except UnknownMachineError:
            return False
        return True

    def _find(self, call: Call) -> Machine:
        try:
            found = self._market.find(PROVIDER, call.region, [call.name])
        except UnknownMachineError:
            found = []
        for machine in found:
            if machine.pool.zone == call.zone and machine.state is not MachineState.TERMINATED:
                return machine
        raise RestError(404, "notFound", f"The resource '{_path(call, call.name)}' was not found")

    def _page(self, call: Call, regions: Iterable[str], is_here: Callable[[Machine], bool]) -> tuple[list[Json], str]:
        """The rows after the token's machine that the filter lets through, and the next token."""
        size, after = call.size, int(call.asked.get("pageToken") or -1)
        is_wanted = parse(call.asked.get("filter", ""))
        machines = [m for region in regions for m in self._market.visible(PROVIDER, region) if is_here(m)]
        living = (m for m in machines if m.state is not MachineState.TERMINATED and m.serial > after)
        rows: list[tuple[int, Json]] = []
        for machine in sorted(living, key=lambda m: m.serial):
            row = instance_view(machine, call.project, call.base)
            if is_wanted(row):
                rows.append((machine.serial, row))
            if len(rows) > size:
                return [shown for _, shown in rows[:size]], str(rows[size - 1][0])
        return [shown for _, shown in rows], ""


def _path(call: Call, name: str) -> str:
    return f"projects/{call.project}/zones/{call.zone}/instances/{name}"
