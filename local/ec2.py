"""The EC2 face of the market: a WSGI app that speaks EC2's query protocol for any region, as boto3 expects it.

What concerns the market is answered here; every other EC2 operation goes to moto.
"""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

from local.aws_facts import public_image_id
from local.ec2_call import Call, Cloud
from local.ec2_instances import (
    describe_instance_status,
    describe_instances,
    describe_public_images,
    terminate_instances,
)
from local.ec2_launch import run_instances
from local.ec2_moto import Moto
from local.ec2_spot import describe_spot_instance_requests, describe_spot_price_history, get_spot_placement_scores
from local.ec2_wire import Ec2Error, Params, Value, credential_scope, render, render_error
from local.market import Market
from local.market_faults import Faults

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["Ec2Face", "public_image_id"]

_OPERATIONS: Mapping[str, Callable[[Cloud, Call], Mapping[str, Value]]] = {
    "RunInstances": run_instances,
    "DescribeInstances": describe_instances,
    "DescribeInstanceStatus": describe_instance_status,
    "TerminateInstances": terminate_instances,
    "DescribeSpotInstanceRequests": describe_spot_instance_requests,
    "DescribeSpotPriceHistory": describe_spot_price_history,
    "GetSpotPlacementScores": get_spot_placement_scores,
}
_DENIALS = {
    "UnauthorizedOperation": (403, "You are not authorized to perform this operation in this region."),
    "OptInRequired": (401, "You are not subscribed to this service. Opt in to the region first."),
    "PendingVerification": (400, "Your request for accessing resources in this region is being validated."),
}


class Ec2Face:
    """One EC2 for all regions; the region of a call is the one it was signed for."""

    def __init__(self, market: Market, faults: Faults, moto: Moto | None = None) -> None:
        self._cloud = Cloud(market, moto or Moto())
        self._faults = faults

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        request_id = str(uuid.uuid4())
        try:
            call = self._admit(environ, body, request_id)
            result = self._result(call)
        except Ec2Error as error:
            return _send(start_response, error.status, render_error(error, request_id))
        if result is None:
            return _as_it_came(self._cloud.moto, environ, body)(environ, start_response)
        if self._faults.take_lost(call.action, call.region):
            # The server drops the connection on this one: the work is done and nobody hears of it.
            raise ConnectionAbortedError(f"the answer to {call.action} was ordered to be lost")
        return _send(start_response, 200, render(call.action, request_id, result))

    def _admit(self, environ: WSGIEnvironment, body: bytes, request_id: str) -> Call:
        scope = credential_scope(environ.get("HTTP_AUTHORIZATION", ""))
        if scope is None:
            raise Ec2Error("MissingAuthenticationToken", "The request must carry a valid signature.", 403)
        access_key, region = scope
        if self._faults.revoked(access_key):
            raise Ec2Error("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
        denial = self._faults.denial(region)
        if denial is not None:
            status, message = _DENIALS.get(denial, (403, f"Calls in {region} are denied."))
            raise Ec2Error(denial, message, status)
        params = Params.from_form(body)
        call = Call(params.required("Action"), region, params, request_id)
        fault = self._faults.take_error(call.action, region)
        if fault is not None:
            raise Ec2Error(fault.code, fault.message, fault.status)
        return call

    def _result(self, call: Call) -> Mapping[str, Value] | None:
        if call.action == "DescribeImages":
            return describe_public_images(call)
        operation = _OPERATIONS.get(call.action)
        return operation(self._cloud, call) if operation else None


def _as_it_came(moto: Moto, environ: WSGIEnvironment, body: bytes) -> WSGIApplication:
    environ["wsgi.input"] = io.BytesIO(body)
    return moto


def _send(start_response: StartResponse, status: int, body: bytes) -> list[bytes]:
    reason = HTTPStatus(status).phrase
    start_response(
        f"{status} {reason}", [("Content-Type", "text/xml;charset=UTF-8"), ("Content-Length", str(len(body)))]
    )
    return [body]
