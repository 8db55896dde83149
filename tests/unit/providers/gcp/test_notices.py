"""The audit log as the relay forwards it."""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from local.packaging import ROOT
from spotferry.domain.interruption import Meaning, meaning
from spotferry.providers import registry
from spotferry.providers.gcp.notices import parse
from spotferry.types.errors import InvalidInput
from spotferry.types.events import NoticeKind

EVENTS = ROOT / "events" / "relay_gcp_preemption"
# Any, here and below: JSON as it came.
PREEMPTION: dict[str, Any] = json.loads((EVENTS / "preempted.json").read_text())


def changed(path: str, value: object) -> dict[str, Any]:
    """The preemption with one field changed, or without it."""
    event = copy.deepcopy(PREEMPTION)
    *above, last = path.split(".")
    inside = event
    for key in above:
        inside = inside[key]
    if value is None:
        del inside[last]
    else:
        inside[last] = value
    return event


def test_a_preemption_is_a_take_back() -> None:
    """The machine by its name, in the zone's region, marked, with no time left; found by the registry as well."""
    [notice] = parse(PREEMPTION) or ()
    assert (notice.kind, notice.provider, notice.region) == (NoticeKind.TAKE_BACK, "gcp", "us-central1")
    assert notice.event.instance_id == "i-6f1f6c9c2f0d4e5a8b7c6d5e4f3a2b1c0d9e8f7a"
    assert (notice.event.fault_code, notice.event.marked_for_termination) == ("compute.instances.preempted", True)
    assert notice.at == notice.deadline == datetime(2026, 11, 30, 9, 14, 3, 482127, tzinfo=UTC)
    assert meaning(notice) is Meaning.LOSE
    assert registry.parse_notice(PREEMPTION) == (notice,)


@pytest.mark.parametrize("name", ["host_error.json", "other_service.json"])
def test_what_else_the_log_tells_is_no_notice(name: str) -> None:
    """It is Google's, and asks for nothing."""
    assert parse(json.loads((EVENTS / name).read_text())) == ()


def test_another_clouds_event_is_none_of_googles() -> None:
    """It is left to the others."""
    assert parse({"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning"}) is None
    assert parse({"type": "google.cloud.storage.object.v1.finalized", "data": {}}) is None


def test_times_to_the_nanosecond_are_read() -> None:
    """As the log writes them now and then."""
    [notice] = parse(changed("data.timestamp", "2026-11-30T09:14:03.482127123Z")) or ()
    assert notice.at == datetime(2026, 11, 30, 9, 14, 3, 482127, tzinfo=UTC)


WRONG: list[tuple[str, object]] = [
    ("data", None),
    ("data", "text"),
    ("data.protoPayload", None),
    ("data.protoPayload.resourceName", None),
    ("data.protoPayload.resourceName", "projects/p/regions/r/disks/d"),
    ("data.protoPayload.resourceName", "projects/p/zones/global/instances/x"),
    ("data.protoPayload.resourceName", "projects/p/zones/us-central1-a/instances/../x"),
    ("data.timestamp", None),
    ("data.timestamp", "yesterday"),
    ("data.timestamp", "2026-11-30T09:14:03"),
    ("data.timestamp", 7),
]


@pytest.mark.parametrize(("path", "value"), WRONG)
def test_a_preemption_that_is_not_what_it_promises(path: str, value: object) -> None:
    """It is refused with the field's name, so that it is set aside."""
    with pytest.raises(InvalidInput) as caught:
        parse(changed(path, value))
    assert caught.value.problems[0].field == path
