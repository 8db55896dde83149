"""The Paperspace face of the market: the part of its API, version 1, that a client needs to run machines.

Operations, as the levers know them: paperspace.machines.create (list, get, delete, stop, start),
paperspace.scripts.create (list, delete), paperspace.osTemplates.list, paperspace.customTemplates.list and
paperspace.machineEvents.list. Calls that concern one region suffer what is ordered for that region, all others what is
ordered for the region "".
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from local import paperspace_facts as facts
from local.json_face import Json, RestError, parameters_of, send
from local.market import Market
from local.market_faults import Faults
from local.market_model import (
    LaunchRequest,
    Machine,
    MachineState,
    MarketError,
    NoCapacityError,
    QuotaExceededError,
    UnknownMachineError,
)
from local.market_prices import PriceRow
from local.paperspace_views import OUT_OF_CAPACITY, create_event, deactivate_event, machine_view, template_views

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PREFIX = "/_paperspace/v1/"
ACCOUNT = "paperspace"
"""The name of the credentials for the levers."""
API_KEY = "local-paperspace-key"
KEY_NAME = "paperspace/api-key"
"""The key, and the name under which a deployment keeps it."""
_ALWAYS = datetime(2020, 1, 1, tzinfo=UTC)
_MOST = 120
_REQUIRED = ("name", "machineType", "templateId", "diskSize", "region")
_DISK_SIZES = (50, 100, 250, 500, 1000, 2000)
_OPERATIONS = {"startup-scripts": "scripts", "os-templates": "osTemplates", "custom-templates": "customTemplates"}


def environment(cloud_url: str) -> Mapping[str, str]:
    """What points our adapter at this face; the key is a secret of the deployment, and comes another way."""
    return {"PAPERSPACE_API_URL": f"{cloud_url}{PREFIX.rstrip('/')}"}


def is_meant(environ: WSGIEnvironment) -> bool:
    """Tell whether a request is one for this face."""
    return str(environ.get("PATH_INFO", "")).startswith(PREFIX)


class PaperspaceFace:
    """One team's account. The machine's name means nothing to it: there may be many of one name."""

    def __init__(self, market: Market, faults: Faults) -> None:
        self._market = market
        self._faults = faults
        self._scripts: dict[str, Json] = {}
        self._lock = threading.Lock()
        market.set_prices((pool, PriceRow(_ALWAYS, None, kind.usd, fixed=True)) for pool, kind in facts.pools())

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        path = str(environ["PATH_INFO"]).removeprefix(PREFIX).split("/")
        try:
            operation, region, carry_out = self._route(str(environ["REQUEST_METHOD"]), path, environ, raw)
            self._admit(environ, operation, region)
            answer = carry_out()
        except RestError as error:
            return send(start_response, error.status, {"code": error.code, "message": error.message})
        if self._faults.take_lost(operation, region):
            # The server drops the connection on this one: the work is done and nobody hears of it.
            raise ConnectionAbortedError(f"the answer to {operation} was ordered to be lost")
        return send(start_response, 200, answer)

    def _route(
        self, method: str, path: Sequence[str], environ: WSGIEnvironment, raw: bytes
    ) -> tuple[str, str, Callable[[], Json]]:
        """The operation's name, the region it concerns, and how it is carried out."""
        asked = parameters_of(environ)
        match method, path:
            case "POST", ["machines"]:
                body = _object(raw)
                return "paperspace.machines.create", str(body.get("region", "")).upper(), lambda: self._create(body)
            case "GET", ["machines"]:
                region = asked.get("region", "").upper()
                return "paperspace.machines.list", region, lambda: self._list(asked, region)
            case (("GET" | "DELETE"), ["machines", machine_id]):
                return self._on_machine("get" if method == "GET" else "delete", machine_id)
            case "PATCH", ["machines", machine_id, ("start" | "stop") as action]:
                return self._on_machine(action, machine_id)
            case "GET", ["machine-events"]:
                return "paperspace.machineEvents.list", "", lambda: self._events(asked)
        return self._route_others(method, path, asked, raw)

    def _route_others(
        self, method: str, path: Sequence[str], asked: Mapping[str, str], raw: bytes
    ) -> tuple[str, str, Callable[[], Json]]:
        match method, path:
            case "GET", [("os-templates" | "custom-templates") as listing]:
                rows = list(template_views()) if listing == "os-templates" else []
                return f"paperspace.{_OPERATIONS[listing]}.list", "", lambda: _page(rows, asked)
            case "POST", ["startup-scripts"]:
                return "paperspace.scripts.create", "", lambda: self._create_script(_object(raw))
            case "GET", ["startup-scripts"]:
                return "paperspace.scripts.list", "", lambda: self._list_scripts(asked)
            case "DELETE", ["startup-scripts", script_id]:
                return "paperspace.scripts.delete", "", lambda: self._delete_script(script_id)
        raise RestError(404, "NOT_FOUND", f"No procedure found on path {'/'.join(path)}")

    def _admit(self, environ: WSGIEnvironment, operation: str, region: str) -> None:
        if environ.get("HTTP_AUTHORIZATION") != f"Bearer {API_KEY}" or self._faults.revoked(ACCOUNT):
            raise RestError(401, "UNAUTHORIZED", "The API key is not valid.")
        if self._faults.denial(region) is not None:
            raise RestError(403, "FORBIDDEN", f"Your team is not allowed to use the region {region}.")
        fault = self._faults.take_error(operation, region)
        if fault is None:
            return
        if fault.code == "RequestLimitExceeded":  # the lever's word for every cloud
            raise RestError(429, "TOO_MANY_REQUESTS", "Too many requests")
        raise RestError(fault.status, fault.code, fault.message)

    # ---- machines ----------------------------------------------------------------------------------------------------

    def _create(self, body: Json) -> Json:
        missing = [name for name in _REQUIRED if not body.get(name)]
        if missing:
            raise RestError(400, "BAD_REQUEST", f"Input validation failed: {', '.join(missing)}: Required")
        request = self._request(body)
        try:
            machine = self._market.launch(request)
        except NoCapacityError as error:
            raise RestError(400, "BAD_REQUEST", OUT_OF_CAPACITY) from error
        except QuotaExceededError as error:
            words = f"Your team's limit of {error.limit_vcpus} vCPUs for this machine type has been reached."
            raise RestError(400, "BAD_REQUEST", words) from error
        with self._lock:
            script = self._scripts.get(str(body.get("startupScriptId", "")))
            if script is not None:
                script["assignedMachineIds"].append(machine.allocated_id)
        return {"event": create_event(machine), "data": machine_view(machine)}

    def _request(self, body: Json) -> LaunchRequest:
        instance_type, region = str(body["machineType"]), str(body["region"]).upper()
        kind, template = facts.KINDS.get(instance_type), facts.TEMPLATES.get(str(body["templateId"]))
        if region not in facts.REGIONS:
            raise RestError(400, "BAD_REQUEST", f"Invalid enum value for region: {body['region']}")
        if kind is None or region not in kind.regions:
            raise RestError(400, "BAD_REQUEST", f"Machine type {instance_type} is not available in this region.")
        if template is None or (template.only_with_gpu and not kind.gpu):
            raise RestError(404, "NOT_FOUND", f"Template {body['templateId']} was not found.")
        if body["diskSize"] not in _DISK_SIZES:
            raise RestError(400, "BAD_REQUEST", f"Invalid disk size {body['diskSize']}.")
        name = str(body["name"])
        details = {"name": name, "os": template.system, "disk_gb": str(body["diskSize"])}
        return LaunchRequest(
            pool=facts.pool(region, instance_type),
            shape=kind.shape,
            fingerprint=name,
            stop_on_shutdown=True,
            user_data=self._script_of(str(body.get("startupScriptId", ""))),
            tags={"name": name},
            details={**details, "network_id": str(body.get("networkId") or "nlocal00")},
            allocated_id=f"ps{secrets.token_hex(4)}",
        )

    def _list(self, asked: Mapping[str, str], region: str) -> Json:
        regions = [region] if region else facts.REGIONS
        shown = [machine for one in regions for machine in self._market.visible(facts.PROVIDER, one)]
        name = asked.get("name")
        living = [m for m in shown if not _gone(m) and (not name or name in m.request.details["name"])]
        living.sort(key=lambda machine: machine.serial, reverse=asked.get("order", "desc") == "desc")
        return _page(living, asked, machine_view)

    def _on_machine(self, action: str, machine_id: str) -> tuple[str, str, Callable[[], Json]]:
        region = self._region_of(machine_id)

        def carry_out() -> Json:
            machine = self._machine(machine_id, region)
            if action == "delete":
                self._market.terminate(facts.PROVIDER, region, [machine_id])
            elif action == "stop":
                self._market.os_shutdown(machine_id)
            elif action == "start":
                raise RestError(400, "BAD_REQUEST", "This cloud starts no machine again.")
            view = machine_view(machine)
            return view if action == "get" else {"event": create_event(machine), "data": view}

        return f"paperspace.machines.{action}", region, carry_out

    def _region_of(self, machine_id: str) -> str:
        try:
            return self._market.get(machine_id).pool.region
        except UnknownMachineError:
            return ""

    def _machine(self, machine_id: str, region: str) -> Machine:
        try:
            [machine] = self._market.find(facts.PROVIDER, region, [machine_id])
        except MarketError as error:
            raise RestError(404, "NOT_FOUND", f"Machine {machine_id} not found") from error
        if _gone(machine):
            raise RestError(404, "NOT_FOUND", f"Machine {machine_id} not found")
        return machine

    def _events(self, asked: Mapping[str, str]) -> Json:
        mine = [m for m in self._market.everything() if m.pool.provider == facts.PROVIDER]
        wanted = asked.get("machineId")
        told = [m for m in mine if wanted in {None, m.allocated_id}]
        return _page([e for m in told for e in (deactivate_event(m), create_event(m)) if e], asked)

    # ---- startup scripts ---------------------------------------------------------------------------------------------

    def _create_script(self, body: Json) -> Json:
        if not body.get("name") or not body.get("script"):
            raise RestError(400, "BAD_REQUEST", "Input validation failed: name, script: Required")
        script_id = f"sc{secrets.token_hex(4)}"
        script: Json = {
            "id": script_id,
            "name": str(body["name"]),
            "description": None,
            "isEnabled": True,
            "isRunOnce": bool(body.get("isRunOnce", False)),
            "assignedMachineIds": [],
            "dtCreated": self._market.now().isoformat(),
            "dtDeleted": None,
        }
        with self._lock:
            self._scripts[script_id] = {**script, "script": str(body["script"])}
        return script

    def _list_scripts(self, asked: Mapping[str, str]) -> Json:
        with self._lock:
            named = [s for s in self._scripts.values() if asked.get("name", "") in s["name"]]
        return _page(named, asked, _without_text)

    def _delete_script(self, script_id: str) -> Json:
        with self._lock:
            script = self._scripts.pop(script_id, None)
        if script is None:
            raise RestError(404, "NOT_FOUND", f"Startup script {script_id} not found")
        return _without_text(script)

    def _script_of(self, script_id: str) -> bytes:
        if not script_id:
            return b""
        with self._lock:
            script = self._scripts.get(script_id)
        if script is None:
            raise RestError(404, "NOT_FOUND", f"Startup script {script_id} not found")
        return str(script["script"]).encode()


def _gone(machine: Machine) -> bool:
    return machine.state is MachineState.TERMINATED


def _without_text(script: Json) -> Json:
    return {key: value for key, value in script.items() if key != "script"}


def _object(raw: bytes) -> Json:
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise RestError(400, "PARSE_ERROR", "Failed to parse request body")
    return body


def _page(rows: Sequence[object], asked: Mapping[str, str], view: Callable[..., Json] = dict) -> Json:
    size = asked.get("limit", "20")
    if not size.isdecimal() or not 1 <= int(size) <= _MOST:
        raise RestError(400, "BAD_REQUEST", f"limit must be a number from 1 to {_MOST}")
    start = asked.get("after", "0")
    first = int(start) if start.isdecimal() else 0
    following = first + int(size)
    more = following < len(rows)
    items = [view(row) for row in rows[first:following]]
    return {"items": items, "hasMore": more, "nextPage": str(following) if more else None}
