"""What EC2 says about the end of a machine: from its state reason, and from its spot request."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from spotferry.providers.asked import batches
from spotferry.providers.aws.api import Calls
from spotferry.providers.aws.describe import FILTER_VALUES, PAGE, answers, turns
from spotferry.providers.aws.states import ANNOUNCED, NOTICE, SPOT_STATUS, STATE_REASONS
from spotferry.providers.ends import Cause, ended_by, is_the_clouds_doing, reason_code
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Instance

# Any: a spot request as the SDK gives it, a tree of plain values.
Request = Mapping[str, Any]


def ended(instance: Instance) -> ProviderEvent | None:
    """Why the machine ends or has ended, from the reason that came with its state; None while it lives."""
    if instance.state in {"", "pending", "running"} or not instance.allocated_id:
        return None
    code = _code(instance)
    return ProviderEvent(
        instance_id=instance.allocated_id,
        fault_code=code or instance.state,
        marked_for_termination=is_the_clouds_doing(STATE_REASONS.get(code)),
    )


def is_vague(instance: Instance) -> bool:
    """The machine's spot request may tell more of its end: the exact cause of a take-back, or a time where none is."""
    cause = STATE_REASONS.get(_code(instance))
    if not isinstance(instance, Attempt) or cause is Cause.TAKEN_BACK:
        return cause is Cause.TAKEN_BACK
    return ended_by(cause) == "us" and instance.market == "spot" and instance.billed_until is None


def may_be_announced(instance: Instance) -> bool:
    """A machine that runs on the spot market, so that its request may hold an announcement."""
    return bool(instance.allocated_id) and (not isinstance(instance, Attempt) or instance.market == "spot")


def _code(instance: Instance) -> str:
    return reason_code(instance.cloud_reason) if isinstance(instance, Attempt) else ""


def spot_requests(calls: Calls, ids: Sequence[str]) -> dict[str, Request]:
    """The spot requests of these machines, by the machine's id.

    Raises:
        ProviderError: the question failed.
    """
    found: dict[str, Request] = {}
    for batch, turn in zip(batches(ids, FILTER_VALUES), turns(calls), strict=False):
        filters = [{"Name": "instance-id", "Values": batch}]
        for answer in answers(turn, "describe_spot_instance_requests", Filters=filters, MaxResults=PAGE):
            found |= {r["InstanceId"]: r for r in answer.get("SpotInstanceRequests", []) if r.get("InstanceId")}
    return found


def announced(instance: Instance, request: Request | None) -> ProviderEvent | None:
    """What the status of the machine's spot request announces; None when it says nothing about an end."""
    status = (request or {}).get("Status") or {}
    code = str(status.get("Code", ""))
    if code not in SPOT_STATUS:
        return None
    since = status.get("UpdateTime")
    ends = since + (NOTICE if code in ANNOUNCED else timedelta()) if since else None
    return ProviderEvent(
        instance_id=instance.allocated_id,
        fault_code=code,
        marked_for_termination=is_the_clouds_doing(SPOT_STATUS[code]),
        termination_time=int(ends.timestamp()) if ends else 0,
    )
