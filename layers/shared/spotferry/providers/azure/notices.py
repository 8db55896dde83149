"""Azure's announcements from Event Grid (health of resources), parsed; needs no SDK.

An event comes in Event Grid's own schema or as a CloudEvent: what tells them apart is where kind and time are. An
unknown kind is none of ours; a known one with other content than it promises is `InvalidInput`, so that it is counted
and set aside. These events come after the fact: the warning before it is the machine's own metadata service's.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType

from spotferry.providers.announcements import mapping_in, text_in
from spotferry.providers.azure.names import vm_id
from spotferry.types.errors import wrong
from spotferry.types.events import Notice, NoticeKind, ProviderEvent
from spotferry.types.words import shown

PROVIDER = "azure"
_KINDS = "Microsoft.ResourceNotifications.HealthResources."
# Near either end of the calendar reckoning with times overflows.
_FIRST_YEAR, _LAST_YEAR = 2000, 9000

ANNOTATIONS: Mapping[str, NoticeKind | str] = MappingProxyType(
    {
        # Evicted, and gone or about to be: machines are made to be deleted then.
        "VirtualMachinePreempted": NoticeKind.TAKE_BACK,
        # From inside, or by somebody's order: it does not come back by itself.
        "VirtualMachineStoppedInternally": "stopping",
        "VirtualMachineStopInitiatedByControlPlane": "stopping",
        "VirtualMachineDeallocationInitiated": "stopping",
        "VirtualMachineDeallocated": "stopping",
    }
)
"""Name of an annotation to a kind of notice, or to the state it tells of; every other is about a machine that stays."""


def parse(envelope: Mapping[str, object]) -> tuple[Notice, ...] | None:
    """The notices in an event of Event Grid, possibly none; None when the kind of the event is not one of these.

    Raises:
        InvalidInput: a field that its kind promises is missing or is not what it should be.
    """
    kind = envelope.get("type") if "specversion" in envelope else envelope.get("eventType")
    parser = _PARSERS.get(str(kind or "").removeprefix(_KINDS)) if str(kind or "").startswith(_KINDS) else None
    return None if parser is None else parser(_properties(envelope), _at(envelope))


def _annotated(properties: Mapping[str, object], at: datetime | None) -> tuple[Notice, ...]:
    name = _text(properties, "annotationName")
    told = ANNOTATIONS.get(name)
    machine = _machine(properties)
    if told is None or not machine:
        return ()
    state = "" if isinstance(told, NoticeKind) else told
    kind = told if isinstance(told, NoticeKind) else NoticeKind.STATE_CHANGE
    marked = kind is NoticeKind.TAKE_BACK
    event = ProviderEvent(instance_id=machine, fault_code=name, marked_for_termination=marked)
    # The region is not told: the machine's name is ours alone, and is found without it.
    return (Notice(kind=kind, provider=PROVIDER, region="", event=event, state=state, at=at),)


def _availability(properties: Mapping[str, object], _at: datetime | None) -> tuple[Notice, ...]:
    """A machine that is not available may be so for a while, or for good: the poll finds out."""
    _text(properties, "availabilityState")
    _machine(properties)
    return ()


def _properties(envelope: Mapping[str, object]) -> Mapping[str, object]:
    found = envelope
    path = ""
    for part in ("data", "resourceInfo", "properties"):
        found = mapping_in(found, part, path)
        path = f"{path}{part}."
    return found


def _machine(properties: Mapping[str, object]) -> str:
    """The name of the machine that it is about, in small letters as ours are; "" for one of a scale set, or none."""
    place = vm_id(_text(properties, "targetResourceId"))
    return place.name if place else ""


def _at(envelope: Mapping[str, object]) -> datetime | None:
    key = "time" if "specversion" in envelope else "eventTime"
    text = envelope.get(key)
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise wrong(key, f"{shown(str(text))} is not a time") from error
    if instant.tzinfo is None or not _FIRST_YEAR < instant.year < _LAST_YEAR:
        raise wrong(key, f"{shown(str(text))} is no time of an event")
    return instant


def _text(properties: Mapping[str, object], key: str) -> str:
    return text_in(properties, key, "data.resourceInfo.properties.")


_PARSERS: Mapping[str, Callable[[Mapping[str, object], datetime | None], tuple[Notice, ...]]] = {
    "ResourceAnnotated": _annotated,
    "AvailabilityStatusChanged": _availability,
}
