"""What Event Grid says about machines."""

from datetime import UTC, datetime
from typing import Any

import pytest

from spotferry.domain.interruption import Meaning, meaning
from spotferry.providers import registry
from spotferry.providers.azure.notices import ANNOTATIONS, parse
from spotferry.types.errors import InvalidInput
from spotferry.types.events import NoticeKind

VM = "/subscriptions/s/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/i-0a1B"
KIND = "Microsoft.ResourceNotifications.HealthResources."
AT = "2026-05-04T12:00:00.1234567Z"
Event = dict[str, Any]  # Any: an event as it came


def annotated(name: str = "VirtualMachinePreempted", target: str = VM, *, cloud_event: bool = False) -> Event:
    """An annotation in either schema."""
    properties = {
        "targetResourceId": target,
        "targetResourceType": "Microsoft.Compute/virtualMachines",
        "occurredTime": AT,
        "annotationName": name,
        "reason": "Preempted",
        "context": "Platform Initiated",
        "category": "Unplanned",
    }
    return an_event("ResourceAnnotated", properties, cloud_event=cloud_event)


def an_event(kind: str, properties: object, *, cloud_event: bool = False) -> Event:
    """An event in either schema."""
    data = {"resourceInfo": {"id": f"{VM}/x", "name": "x", "type": "y", "properties": properties}, "apiVersion": "1"}
    common = {"id": "e-1", "subject": VM, "data": data}
    if cloud_event:
        return {**common, "source": "/subscriptions/s", "type": KIND + kind, "time": AT, "specversion": "1.0"}
    more = {"topic": "/subscriptions/s", "dataVersion": "1", "metadataVersion": "1"}
    return {**common, **more, "eventType": KIND + kind, "eventTime": AT}


@pytest.mark.parametrize("cloud_event", [False, True])
def test_an_eviction(cloud_event: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A take-back of the machine by its name in small letters, which is our own id; no region, no deadline."""
    notices = parse(annotated(cloud_event=cloud_event))
    assert notices is not None
    [notice] = notices
    assert (notice.kind, notice.provider, notice.region) == (NoticeKind.TAKE_BACK, "azure", "")
    assert notice.event.instance_id == "i-0a1b"
    assert (notice.event.fault_code, notice.event.marked_for_termination) == ("VirtualMachinePreempted", True)
    assert notice.at == datetime(2026, 5, 4, 12, 0, 0, 123456, UTC)
    assert notice.deadline is None
    assert meaning(notice) is Meaning.LOSE
    assert registry.parse_notice(annotated(cloud_event=cloud_event)) == notices


@pytest.mark.parametrize("name", sorted(set(ANNOTATIONS) - {"VirtualMachinePreempted"}))
def test_a_machine_that_stops_is_lost(name: str) -> None:
    """Whoever stopped it, it does not come back by itself, and nobody took it back."""
    notices = parse(annotated(name))
    assert notices is not None
    [notice] = notices
    assert (notice.kind, notice.state) == (NoticeKind.STATE_CHANGE, "stopping")
    assert not notice.event.marked_for_termination
    assert meaning(notice) is Meaning.LOSE


def test_the_table_is_whole() -> None:
    """A line more needs a test here."""
    assert set(ANNOTATIONS) == {
        "VirtualMachinePreempted",
        "VirtualMachineStoppedInternally",
        "VirtualMachineStopInitiatedByControlPlane",
        "VirtualMachineDeallocationInitiated",
        "VirtualMachineDeallocated",
    }


@pytest.mark.parametrize(
    "event",
    [
        annotated("VirtualMachineRestarted"),
        annotated("NeverSeenBefore"),
        annotated(target="/subscriptions/s/resourceGroups/G/providers/Microsoft.Compute/virtualMachineScaleSets/v"),
        an_event("AvailabilityStatusChanged", {"targetResourceId": VM, "availabilityState": "Unavailable"}),
    ],
)
def test_what_means_nothing(event: Event) -> None:
    """Machines that stay, things that are no machines of ours, and states that may pass."""
    assert parse(event) == ()


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"eventType": "Microsoft.Resources.ResourceWriteSuccess"},
        {"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"},
        {"specversion": "1.0", "type": "google.cloud.audit.log.v1.written"},
        {"eventType": f"{KIND}NeverSeenBefore"},
        {"eventType": 7},
    ],
)
def test_other_kinds_are_nobodys(event: Event) -> None:
    """An event of another kind is told from one that means nothing."""
    assert parse(event) is None


@pytest.mark.parametrize(
    ("event", "field"),
    [
        ({"eventType": f"{KIND}ResourceAnnotated"}, "data"),
        ({"eventType": f"{KIND}ResourceAnnotated", "data": {}}, "data.resourceInfo"),
        (an_event("ResourceAnnotated", []), "data.resourceInfo.properties"),
        (an_event("ResourceAnnotated", {"targetResourceId": VM}), "annotationName"),
        (an_event("ResourceAnnotated", {"annotationName": "VirtualMachinePreempted"}), "targetResourceId"),
        (an_event("AvailabilityStatusChanged", {"targetResourceId": VM}), "availabilityState"),
        (annotated() | {"eventTime": "yesterday"}, "eventTime"),
        (annotated() | {"eventTime": "2026-05-04T12:00:00"}, "eventTime"),
        (annotated() | {"eventTime": "0001-01-01T00:00:00Z"}, "eventTime"),
        (annotated(cloud_event=True) | {"time": 5}, "time"),
    ],
)
def test_a_known_kind_with_other_content(event: Event, field: str) -> None:
    """It is refused by the field, so that it is counted and set aside."""
    with pytest.raises(InvalidInput, match=field):
        parse(event)
