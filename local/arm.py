"""The face of Azure's resource manager: machines with what belongs to them, as the official client speaks to it.

Ordered faults are those of the operations azure.vm.put, azure.vm.get, azure.vm.delete, azure.vm.deallocate,
azure.vm.list, azure.operations, azure.images, azure.network and azure.activity in the region that is meant ("" for the
list of a subscription), and of two that no call has: azure.operation fails a launch after it was accepted, azure.parts
has what belongs to the next deleted machine stay behind. A region that is denied is closed by a policy.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from local import azure_facts as facts
from local.arm_activity import Activity
from local.arm_images import image_answer
from local.arm_launch import refusal, wish_of
from local.arm_model import Failed, Vm, instance_view, model_view, status_view
from local.arm_parts import Parts
from local.arm_wire import Answer, Request, is_meant, next_link, not_found, operation_at, refused, request_of, suffer
from local.azure_pricing import ACCOUNT, TOKEN
from local.json_face import Json, RestError
from local.market import Market
from local.market_faults import Faults
from local.market_model import USER_SHUTDOWN, MarketError, MarketEvent, UnknownMachineError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

__all__ = ["PAGE", "ArmFace", "is_meant"]

PAGE = 250
"""Machines on one page of a list."""


class ArmFace:
    """Machines by resource group and name. Safe to use from many threads."""

    def __init__(self, market: Market, faults: Faults) -> None:
        self._market = market
        self._faults = faults
        self._lock = threading.RLock()
        self._vms: dict[tuple[str, str], Vm] = {}
        self._operations: dict[str, Vm] = {}
        self._parts = Parts(lambda: list(self._vms.values()))
        self._activity = Activity()
        self._routes: Mapping[str, Callable[[Request], Answer]] = {
            "put": self._put,
            "get": self._get,
            "view": self._view,
            "delete": self._delete,
            "deallocate": self._deallocate,
            "list": self._list,
            "operation": self._operation,
            "image": self._image,
            "parts": self._part,
            "part": self._part,
            "delete_part": self._part,
            "activity": self._ends,
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        answer = self._answer(environ)
        if answer.lost[0] and self._faults.take_lost(*answer.lost):
            # The server drops the connection on this one: the work is done and nobody hears of it.
            raise ConnectionAbortedError(f"the answer to {answer.lost[0]} was ordered to be lost")
        raw = b"" if answer.body is None else json.dumps(answer.body).encode()
        headers = {"Content-Type": "application/json; charset=utf-8", "Content-Length": str(len(raw)), **answer.headers}
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(headers.items()))
        return [raw]

    def hear(self, event: MarketEvent) -> None:
        """Note who ended a machine; for `Market.subscribe`."""
        if event.provider == facts.PROVIDER:
            self._activity.hear(event, self._market)

    def _answer(self, environ: WSGIEnvironment) -> Answer:
        request = request_of(environ)
        if environ.get("HTTP_AUTHORIZATION") != f"Bearer {TOKEN}" or self._faults.revoked(ACCOUNT):
            return refused(RestError(401, "InvalidAuthenticationToken", "The access token is invalid."))
        try:
            return self._routes[request.route](request)
        except RestError as error:
            return refused(error)

    def _put(self, request: Request) -> Answer:
        try:
            body: Json = json.loads(request.body)
            region = str(body["location"])
        except (ValueError, KeyError, TypeError) as error:
            raise RestError(400, "InvalidRequestContent", "The request content was invalid.") from error
        suffer(self._faults, "azure.vm.put", region)
        lost = ("azure.vm.put", region)
        if self._faults.denial(region) is not None:
            raise RestError(403, "RequestDisallowedByPolicy", _policy(request.parts["name"], region))
        with self._lock:
            known = self._find(request.parts)
            if known is not None:
                if request.if_none_match != "*":
                    raise RestError(409, "PropertyChangeNotAllowed", "This cloud changes no machine that is there.")
                words = f"The resource {known.name} is there already, and If-None-Match was *."
                return refused(RestError(412, "PreconditionFailed", words), lost)
            vm = self._made(request.parts["group"], request.parts["name"], body)
            headers = self._begun(request, vm)
        return Answer(201, model_view(vm), headers, lost)

    def _made(self, group: str, name: str, body: Json) -> Vm:
        wish = wish_of(group, name, body)
        vm = Vm(group, name, body, self._market.now(), len(self._operations) + 1)
        ordered = self._faults.take_error("azure.operation", vm.region)
        if ordered is not None:
            vm.refused = Failed(ordered.code, ordered.message)
        else:
            try:
                vm.machine = self._market.launch(wish.request, wish.siblings)
            except MarketError as error:
                told = refusal(error)
                if isinstance(told, RestError):
                    raise told from error
                vm.refused = told
        self._vms[group.lower(), name.lower()] = vm
        return vm

    def _begun(self, request: Request, vm: Vm) -> Mapping[str, str]:
        operation = str(uuid.uuid4())
        self._operations[operation] = vm
        return operation_at(request, vm.region, operation)

    def _get(self, request: Request) -> Answer:
        vm = self._known(request, "azure.vm.get")
        view = model_view(vm)
        if request.asked.get("$expand") == "instanceView":
            view["properties"]["instanceView"] = instance_view(vm)
        return Answer(200, view)

    def _view(self, request: Request) -> Answer:
        return Answer(200, instance_view(self._known(request, "azure.vm.get")))

    def _delete(self, request: Request) -> Answer:
        with self._lock:
            vm = self._find(request.parts)
            region = vm.region if vm else ""
            suffer(self._faults, "azure.vm.delete", region)
            if vm is None:
                return Answer(204)
            if self._faults.take_error("azure.parts", region) is not None:
                self._parts.leave(vm)
            if vm.failed is not None or vm.machine is None:
                vm.deleted = True
            else:
                self._end(vm)
            return Answer(202, None, self._begun(request, vm), ("azure.vm.delete", region))

    def _end(self, vm: Vm) -> None:
        try:
            self._market.terminate(facts.PROVIDER, vm.region, [vm.name])
        except UnknownMachineError:
            # The market hides machines that were just made; an order ends them all the same.
            self._market.kill(vm.name, USER_SHUTDOWN)

    def _deallocate(self, request: Request) -> Answer:
        vm = self._known(request, "azure.vm.deallocate")
        vm.deallocated = True
        if vm.machine is not None and vm.machine.live:
            self._market.os_shutdown(vm.name)
        return Answer(202, None, self._begun(request, vm))

    def _list(self, request: Request) -> Answer:
        suffer(self._faults, "azure.vm.list", "")
        now, group = self._market.now(), request.parts.get("group", "").lower()
        with self._lock:
            vms = [vm for vm in self._vms.values() if vm.shown(now) and group in {"", vm.group.lower()}]
        first = int(request.asked.get("$skiptoken") or 0)
        view = status_view if request.asked.get("statusOnly", "").lower() == "true" else model_view
        page: Json = {"value": [view(vm) for vm in vms[first : first + PAGE]]}
        if first + PAGE < len(vms):
            page["nextLink"] = next_link(request, first + PAGE)
        return Answer(200, page)

    def _operation(self, request: Request) -> Answer:
        vm = self._operations.get(request.parts["id"])
        if vm is None:
            raise RestError(404, "NotFound", f"There is no operation {request.parts['id']}.")
        suffer(self._faults, "azure.operations", vm.region)
        told: Json = {"name": request.parts["id"], "status": "Succeeded"}
        if vm.failed is not None and not vm.deleted:
            told |= {"status": "Failed", "error": {"code": vm.failed.code, "message": vm.failed.message}}
        elif vm.there and vm.state()[0] in {"Creating", "Deleting"}:
            told["status"] = "InProgress"
        return Answer(200, told)

    def _image(self, request: Request) -> Answer:
        suffer(self._faults, "azure.images", request.parts["region"])
        return Answer(200, image_answer(request.parts["region"], request.parts["image"]))

    def _part(self, request: Request) -> Answer:
        suffer(self._faults, "azure.network", "")
        action = {"parts": self._parts.listed, "part": self._parts.shown, "delete_part": self._parts.delete}
        with self._lock:
            return action[request.route](request)

    def _ends(self, request: Request) -> Answer:
        suffer(self._faults, "azure.activity", "")
        return Answer(200, {"value": self._activity.rows(request.asked.get("$filter", ""))})

    def _find(self, parts: Mapping[str, str]) -> Vm | None:
        vm = self._vms.get((parts["group"].lower(), parts["name"].lower()))
        return vm if vm is not None and vm.there else None

    def _known(self, request: Request, operation: str) -> Vm:
        vm = self._find(request.parts)
        suffer(self._faults, operation, vm.region if vm else "")
        if vm is None or not vm.shown(self._market.now()):
            raise not_found(f"virtualMachines/{request.parts['name']}", request.parts["group"])
        return vm


def _policy(name: str, region: str) -> str:
    return (
        f"Resource '{name}' was disallowed by policy. Policy identifiers: "
        f'\'[{{"policyAssignment":{{"name":"Allowed locations"}},"location":"{region}"}}]\'.'
    )
