"""What the clouds put on the bus, and how it is read."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from local.market_model import EventKind, MarketEvent
from spotferry.providers.aws import notices
from spotferry.providers.aws.states import STATES
from spotferry.types.events import Notice, NoticeKind, ProviderEvent
from tests.simulation.offers import AWS

Json = dict[str, Any]  # Any: JSON as clouds have it

_EC2 = {
    EventKind.STATE: "EC2 Instance State-change Notification",
    EventKind.INTERRUPTION: "EC2 Spot Instance Interruption Warning",
    EventKind.REBALANCE: "EC2 Instance Rebalance Recommendation",
}


def envelope(event: MarketEvent, deadline: datetime | None) -> Json:
    """What a cloud puts on the bus about a machine."""
    at = event.at.isoformat()
    if event.provider != AWS:
        told = {"machine": event.allocated_id, "kind": event.kind.value, "value": event.value}
        return {"source": event.provider, "region": event.region, "time": at, **told}
    detail = {"instance-id": event.allocated_id}
    detail |= {"state": event.value} if event.kind is EventKind.STATE else {}
    if event.kind is EventKind.INTERRUPTION and deadline is not None:
        detail |= {"instance-action": "terminate", "instance-termination-time": deadline.isoformat()}
    return {
        "source": "aws.ec2",
        "detail-type": _EC2[event.kind],
        "region": event.region,
        "time": at,
        "detail": detail,
    }


def parse(told: Mapping[str, object]) -> Sequence[Notice] | None:
    """The notices in it; the other cloud's events are as plain as they can be."""
    if told.get("source") == "aws.ec2":
        return notices.parse(told)
    is_state = told["kind"] == EventKind.STATE.value
    event = ProviderEvent(
        instance_id=str(told["machine"]), fault_code=str(told["value"]), marked_for_termination=not is_state
    )
    notice = Notice(
        kind=NoticeKind.STATE_CHANGE if is_state else NoticeKind.TAKE_BACK,
        provider=str(told["source"]),
        region=str(told["region"]),
        event=event,
        state=STATES[str(told["value"])] if is_state else "",
        at=datetime.fromisoformat(str(told["time"])),
    )
    return (notice,)
