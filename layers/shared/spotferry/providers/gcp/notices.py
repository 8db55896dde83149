"""Compute Engine's audit log as the relay forwards it, parsed; needs no SDK.

The relay posts the CloudEvent in its structured form: {"specversion", "type", "source", ..., "data": LogEntry}. An
event of another type is none of Google's; a preemption with other content than it promises is `InvalidInput`, so that
it is counted and set aside. What else the log tells is no notice.
"""

import re
from collections.abc import Mapping
from datetime import datetime

from spotferry.providers.announcements import mapping_in, text_in
from spotferry.providers.gcp.states import PREEMPTED
from spotferry.types.errors import wrong
from spotferry.types.events import Notice, NoticeKind, ProviderEvent
from spotferry.types.words import shown

PROVIDER = "gcp"
AUDIT_LOG = "google.cloud.audit.log.v1.written"
"""The type of the CloudEvent of an entry of the audit log."""
_SERVICE = "compute.googleapis.com"
_RESOURCE = re.compile(r"projects/[^/]{1,100}/zones/([a-z0-9-]{1,60})/instances/([a-z][a-z0-9-]{0,62})")
_ZONE = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)+)-[a-z0-9]+")


def parse(envelope: Mapping[str, object]) -> tuple[Notice, ...] | None:
    """The notice in an event, possibly none; None when the event is not one of Google's audit log.

    Raises:
        InvalidInput: a field that a preemption promises is missing or is not what it should be.
    """
    if envelope.get("type") != AUDIT_LOG:
        return None
    entry = mapping_in(envelope, "data", "")
    payload = mapping_in(entry, "protoPayload", "data.")
    if payload.get("methodName") != PREEMPTED or payload.get("serviceName") != _SERVICE:
        return ()
    region, name = _machine(text_in(payload, "resourceName", "data.protoPayload."))
    at = _time(entry, "timestamp", "data.")
    # The machine is on its way out when the log is written: no time is left.
    event = ProviderEvent(
        instance_id=name,
        fault_code=PREEMPTED,
        marked_for_termination=True,
        termination_time=int(at.timestamp()),
    )
    return (Notice(kind=NoticeKind.TAKE_BACK, provider=PROVIDER, region=region, event=event, deadline=at, at=at),)


def _machine(resource: str) -> tuple[str, str]:
    """The region and the name of the machine that a resource's name is about."""
    found = _RESOURCE.fullmatch(resource)
    zone = _ZONE.fullmatch(found[1]) if found else None
    if found is None or zone is None:
        raise wrong("data.protoPayload.resourceName", f"{shown(resource)} is not the name of a machine")
    return zone[1], found[2]


def _time(source: Mapping[str, object], key: str, prefix: str) -> datetime:
    text = text_in(source, key, prefix)
    try:
        at = datetime.fromisoformat(text)
        at.timestamp()
    except (ValueError, OverflowError) as error:
        raise wrong(prefix + key, f"{shown(text)} is not a time") from error
    if at.tzinfo is None:
        raise wrong(prefix + key, f"{shown(text)} names no time zone")
    return at
