"""EC2's announcements on the event bus, parsed; needs no SDK.

Kinds are told apart by (source, detail-type). An unknown kind is none of ours; a known one with other content than it
promises is `InvalidInput`, so that it is counted and set aside.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from spotferry.providers.announcements import mapping_in, text_in
from spotferry.providers.aws.states import NOTICE, STATES
from spotferry.types.errors import wrong
from spotferry.types.events import Notice, NoticeKind, ProviderEvent
from spotferry.types.words import shown

PROVIDER = "aws"
_ID_LIMIT = 64
# Near either end of the calendar reckoning with times overflows.
_FIRST_YEAR, _LAST_YEAR = 2000, 9000


def parse(envelope: Mapping[str, object]) -> tuple[Notice, ...] | None:
    """The notices in an event of the bus, possibly none; None when the kind of the event is not one of EC2's.

    Raises:
        InvalidInput: a field that its kind promises is missing or is not what it should be.
    """
    parser = _PARSERS.get((str(envelope.get("source", "")), str(envelope.get("detail-type", ""))))
    return None if parser is None else parser(envelope)


def _take_back(envelope: Mapping[str, object]) -> tuple[Notice, ...]:
    detail = mapping_in(envelope, "detail")
    action = text_in(detail, "instance-action", "detail.")
    at = _time(envelope, "time")
    # Hibernation begins with the warning: no time is left.
    notice = timedelta() if action == "hibernate" else NOTICE
    deadline = _time(detail, "instance-termination-time", "detail.") or (at + notice if at else None)
    return (_notice(envelope, NoticeKind.TAKE_BACK, _instance_id(detail), action, deadline=deadline, marked=True),)


def _rebalance(envelope: Mapping[str, object]) -> tuple[Notice, ...]:
    instance_id = _instance_id(mapping_in(envelope, "detail"))
    return (_notice(envelope, NoticeKind.REBALANCE, instance_id, "rebalance-recommendation"),)


def _state_change(envelope: Mapping[str, object]) -> tuple[Notice, ...]:
    detail = mapping_in(envelope, "detail")
    said = text_in(detail, "state", "detail.")
    if said not in STATES:
        raise wrong("detail.state", f"{shown(said)} is not a state of EC2: {', '.join(STATES)}")
    return (_notice(envelope, NoticeKind.STATE_CHANGE, _instance_id(detail), said, state=STATES[said]),)


def _health(envelope: Mapping[str, object]) -> tuple[Notice, ...]:
    """One notice a machine: an event of AWS Health may name several, and things that are no machines."""
    detail = mapping_in(envelope, "detail")
    scheduled = detail.get("service") == "EC2" and detail.get("eventTypeCategory") == "scheduledChange"
    if not scheduled or detail.get("statusCode") == "closed":
        return ()
    code = text_in(detail, "eventTypeCode", "detail.")
    deadline = _time(detail, "startTime", "detail.")
    entities = detail.get("affectedEntities", ())
    if not isinstance(entities, list | tuple):
        raise wrong("detail.affectedEntities", "must be a list")
    ids = [str(entity.get("entityValue", "")) for entity in entities if isinstance(entity, Mapping)]
    return tuple(
        _notice(envelope, NoticeKind.MAINTENANCE, i, code, deadline=deadline) for i in ids if i.startswith("i-")
    )


def _notice(
    envelope: Mapping[str, object],
    kind: NoticeKind,
    instance_id: str,
    code: str,
    *,
    state: str = "",
    deadline: datetime | None = None,
    marked: bool = False,
) -> Notice:
    return Notice(
        kind=kind,
        provider=PROVIDER,
        region=text_in(envelope, "region"),
        event=ProviderEvent(
            instance_id=instance_id,
            fault_code=code,
            marked_for_termination=marked,
            termination_time=int(deadline.timestamp()) if deadline else 0,
        ),
        state=state,
        deadline=deadline,
        at=_time(envelope, "time"),
    )


def _instance_id(detail: Mapping[str, object]) -> str:
    instance_id = text_in(detail, "instance-id", "detail.")
    if not instance_id.startswith("i-") or len(instance_id) > _ID_LIMIT:
        raise wrong("detail.instance-id", f"{shown(instance_id)} is not the id of a machine")
    return instance_id


def _time(source: Mapping[str, object], key: str, prefix: str = "") -> datetime | None:
    """An instant as RFC 3339 (the bus) or as RFC 1123 (AWS Health); None when the key is not there."""
    if key not in source:
        return None
    text = text_in(source, key, prefix)
    try:
        instant = datetime.fromisoformat(text) if text[:1].isdigit() else parsedate_to_datetime(text)
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    except ValueError as error:
        raise wrong(prefix + key, f"{shown(text)} is not a time") from error
    if not _FIRST_YEAR < aware.year < _LAST_YEAR:
        raise wrong(prefix + key, f"{shown(text)} is no time in EC2's life")
    return aware


_PARSERS: Mapping[tuple[str, str], Callable[[Mapping[str, object]], tuple[Notice, ...]]] = {
    ("aws.ec2", "EC2 Spot Instance Interruption Warning"): _take_back,
    ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"): _take_back,
    ("aws.ec2", "EC2 Instance Rebalance Recommendation"): _rebalance,
    ("aws.ec2", "EC2 Instance State-change Notification"): _state_change,
    ("aws.health", "AWS Health Event"): _health,
}
