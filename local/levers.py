"""The levers of the market over HTTP: JSON in, JSON out, under /_market/.

GET machines lists every machine ever sold; POST the name of a lever with its body (see `local.levers_model`) pulls it.
A wrong body is 400, an unknown machine or lever 404, what makes no sense for the machine 409.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from pydantic import TypeAdapter, ValidationError

from local import azure_facts, gcp_facts, paperspace_facts
from local import levers_model as body_of
from local.aws_facts import shape_of, teach_shape
from local.ec2_call import PROVIDER
from local.ec2_moto import Moto
from local.ec2_wire import Ec2Error
from local.market import Market
from local.market_faults import Fault, Faults
from local.market_model import (
    Machine,
    NotPossibleError,
    PoolKey,
    Purchase,
    Shape,
    StateReason,
    UnknownMachineError,
)
from local.market_prices import PriceRow
from local.market_stock import CapacityRule

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Json: TypeAlias = "str | int | float | bool | Sequence[Json] | Mapping[str, Json] | None"
PREFIX = "/_market/"
_STATUSES: dict[type[Exception], int] = {
    ValidationError: 400,
    Ec2Error: 400,
    UnknownMachineError: 404,
    NotPossibleError: 409,
}
_OTHER_CLOUDS: Mapping[tuple[str, str], Shape] = {
    **{(gcp_facts.PROVIDER, name): kind.shape for name, kind in gcp_facts.KINDS.items()},
    **{(azure_facts.PROVIDER, name): kind.shape for name, kind in azure_facts.KINDS.items()},
    **{(paperspace_facts.PROVIDER, name): kind.shape for name, kind in paperspace_facts.KINDS.items()},
}
_PRICES = TypeAdapter(list[body_of.Price])


def machine_json(machine: Machine, now: datetime) -> Json:
    """One machine with its bill."""
    return {
        "allocated_id": machine.allocated_id,
        "provider": machine.pool.provider,
        "region": machine.pool.region,
        "zone": machine.pool.zone,
        "type": machine.pool.instance_type,
        "market": str(machine.pool.purchase),
        "price_usd_hour": str(machine.price_usd_hour),
        "state": str(machine.state),
        "reason": machine.reason.code if machine.reason else None,
        "tags": dict(machine.request.tags),
        "client_token": machine.request.client_token,
        "launched_at": machine.launched_at.isoformat(),
        "billing_ended_at": _iso(machine.billing_ended_at),
        "terminated_at": _iso(machine.ended_at),
        "interrupted_at": _iso(machine.noticed_at),
        "interruption_due_at": _iso(machine.notice.due_at if machine.notice else None),
        "cost_usd": str(machine.cost_usd(now).quantize(Decimal("0.000000001"))),
    }


class Levers:
    """The WSGI app of the levers."""

    def __init__(self, market: Market, faults: Faults, moto: Moto) -> None:
        self._market = market
        self._faults = faults
        self._moto = moto
        self._levers: dict[str, Callable[[bytes], Json]] = {
            "interrupt": self._interrupt,
            "rebalance": self._rebalance,
            "kill": self._kill,
            "switch_off": self._switch_off,
            "exhaust": self._exhaust,
            "restore": self._restore,
            "capacity": self._capacity,
            "prices": self._prices,
            "quota": self._quota,
            "throttle": self._throttle,
            "fail": self._fail,
            "lose_answers": self._lose_answers,
            "visibility": self._visibility,
            "fail_boots": self._fail_boots,
            "interruption_rate": self._interruption_rate,
            "credentials/revoke": self._revoke,
            "credentials/restore": self._accept,
            "regions/deny": self._deny,
            "regions/allow": self._allow,
            "clear_faults": self._clear_faults,
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        name = str(environ.get("PATH_INFO", "")).removeprefix(PREFIX)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, answer = self._answer(str(environ["REQUEST_METHOD"]), name, body)
        raw = json.dumps(answer).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(raw)))]
        start_response(f"{status} {HTTPStatus(status).phrase}", headers)
        return [raw]

    def _answer(self, method: str, name: str, body: bytes) -> tuple[int, Json]:
        if method == "GET" and name == "machines":
            now = self._market.now()
            return 200, [machine_json(machine, now) for machine in self._market.everything()]
        if method != "POST" or name not in self._levers:
            return 404, {"error": f"no lever {method} {name}; levers: {', '.join(sorted(self._levers))}"}
        try:
            return 200, self._levers[name](body or b"{}")
        except tuple(_STATUSES) as error:
            return _STATUSES[type(error)], {"error": f"{name}: {error}"}

    def _interrupt(self, body: bytes) -> Json:
        wish = body_of.Interrupt.model_validate_json(body)
        notice = None if wish.notice_seconds is None else timedelta(seconds=wish.notice_seconds)
        given = self._market.interrupt(wish.allocated_id, notice=notice, false_notice=wish.false_notice)
        return {"action": given.action, "due_at": given.due_at.isoformat(), "false_notice": given.false_notice}

    def _rebalance(self, body: bytes) -> Json:
        self._market.rebalance(body_of.OneMachine.model_validate_json(body).allocated_id)
        return {}

    def _kill(self, body: bytes) -> Json:
        wish = body_of.Kill.model_validate_json(body)
        reason = None if wish.code is None else StateReason(wish.code, wish.message or f"{wish.code}: ordered")
        self._market.kill(wish.allocated_id, reason)
        return {}

    def _switch_off(self, body: bytes) -> Json:
        self._market.os_shutdown(body_of.OneMachine.model_validate_json(body).allocated_id)
        return {}

    def _exhaust(self, body: bytes) -> Json:
        self._market.order_capacity(CapacityRule(body_of.Pools.model_validate_json(body).pattern(), 0))
        return {}

    def _restore(self, body: bytes) -> Json:
        self._market.order_capacity(CapacityRule(body_of.Pools.model_validate_json(body).pattern(), None))
        return {}

    def _capacity(self, body: bytes) -> Json:
        wish = body_of.Capacity.model_validate_json(body)
        self._market.order_capacity(CapacityRule(wish.pattern(), wish.machines))
        return {}

    def _prices(self, body: bytes) -> Json:
        rows, unknown = [], set()
        now = self._market.now()
        for wish in _PRICES.validate_json(body):
            priced = self._priced(wish, now)
            if priced is None:
                unknown.add(wish.type)
            else:
                rows.append(priced)
        self._market.set_prices(rows)
        return {"set": len(rows), "unknown_types": sorted(unknown)}

    def _priced(self, wish: body_of.Price, now: datetime) -> tuple[PoolKey, PriceRow] | None:
        shape = _shape(wish)
        if shape is None:
            return None
        key = PoolKey(wish.provider, wish.region, self._zone(wish), wish.type, Purchase.SPOT)
        if wish.on_demand is not None and "spot" in wish.model_fields_set:
            return key, PriceRow(now, wish.spot, wish.on_demand, wish.fixed)
        ruled = self._market.prices.ruled(key, shape)
        spot = wish.spot if "spot" in wish.model_fields_set else ruled.spot
        return key, PriceRow(now, spot, wish.on_demand or ruled.on_demand, wish.fixed)

    def _zone(self, wish: body_of.Price) -> str:
        if wish.provider != PROVIDER:
            return wish.zone
        zones = self._moto.zones(wish.region)
        if wish.zone in zones:
            return wish.zone
        names = {zone_id: name for name, zone_id in zones.items()}
        if wish.zone not in names:
            raise Ec2Error("InvalidParameterValue", f"{wish.region} has no zone {wish.zone}, by name or by id")
        return names[wish.zone]

    def _quota(self, body: bytes) -> Json:
        wish = body_of.Quota.model_validate_json(body)
        self._market.set_quota((wish.provider, wish.region, wish.purchase, wish.family), wish.vcpus)
        return {}

    def _throttle(self, body: bytes) -> Json:
        wish = body_of.Throttle.model_validate_json(body)
        message = "Request limit exceeded."
        self._faults.inject(Fault(wish.operation, wish.region, wish.times, "RequestLimitExceeded", message, 503))
        return {}

    def _fail(self, body: bytes) -> Json:
        wish = body_of.Fail.model_validate_json(body)
        self._faults.inject(Fault(wish.operation, wish.region, wish.times, wish.code, wish.message, wish.status))
        return {}

    def _lose_answers(self, body: bytes) -> Json:
        wish = body_of.LoseAnswers.model_validate_json(body)
        self._faults.lose_answers(wish.operation, wish.times)
        return {}

    def _visibility(self, body: bytes) -> Json:
        self._market.delay_visibility(timedelta(seconds=body_of.Visibility.model_validate_json(body).seconds))
        return {}

    def _fail_boots(self, body: bytes) -> Json:
        wish = body_of.FailBoots.model_validate_json(body)
        self._market.fail_boots(wish.times, StateReason(wish.code, wish.message or f"{wish.code}: ordered"))
        return {}

    def _interruption_rate(self, body: bytes) -> Json:
        wish = body_of.InterruptionRate.model_validate_json(body)
        self._market.order_interruptions(wish.pattern(), wish.per_hour)
        return {}

    def _revoke(self, body: bytes) -> Json:
        self._faults.revoke(body_of.Credentials.model_validate_json(body).access_key)
        return {}

    def _accept(self, body: bytes) -> Json:
        self._faults.restore(body_of.Credentials.model_validate_json(body).access_key)
        return {}

    def _deny(self, body: bytes) -> Json:
        wish = body_of.Region.model_validate_json(body)
        self._faults.deny_region(wish.region, wish.code)
        return {}

    def _allow(self, body: bytes) -> Json:
        self._faults.allow_region(body_of.Region.model_validate_json(body).region)
        return {}

    def _clear_faults(self, body: bytes) -> Json:
        body_of.Nothing.model_validate_json(body)
        self._faults.clear()
        return {}


def _shape(wish: body_of.Price) -> Shape | None:
    if wish.provider != PROVIDER:
        return _OTHER_CLOUDS.get((wish.provider, wish.type))
    if shape_of(wish.type) is None and wish.vcpus is not None and wish.memory_gib is not None:
        teach_shape(wish.type, wish.vcpus, int(wish.memory_gib * 1024), wish.gpus)
    return shape_of(wish.type)


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
