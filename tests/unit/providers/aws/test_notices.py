"""EC2's announcements on the bus."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotferry.providers.aws.notices import parse
from spotferry.types.errors import InvalidInput
from spotferry.types.events import Notice, NoticeKind

ID = "i-0123456789abcdef0"
AT = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
WARNING = "EC2 Spot Instance Interruption Warning"
STATE_CHANGE = "EC2 Instance State-change Notification"


def envelope(detail_type: str, detail: object, *, source: str = "aws.ec2", **changes: object) -> dict[str, object]:
    """An event as the bus delivers it."""
    return {
        "version": "0",
        "id": "11111111-2222-3333-4444-555555555555",
        "detail-type": detail_type,
        "source": source,
        "account": "123456789012",
        "time": "2026-05-04T12:00:00Z",
        "region": "us-east-2",
        "resources": [f"arn:aws:ec2:us-east-2:123456789012:instance/{ID}"],
        "detail": detail,
    } | changes


def one(event: Mapping[str, object]) -> Notice:
    """The only notice in it."""
    notices = parse(event)
    assert notices is not None
    [notice] = notices
    return notice


def health(**changes: object) -> dict[str, object]:
    """The detail of a scheduled change."""
    return {
        "service": "EC2",
        "eventTypeCategory": "scheduledChange",
        "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
        "startTime": "Wed, 06 May 2026 09:19:29 GMT",
        "affectedEntities": [{"entityValue": ID}],
    } | changes


@pytest.mark.parametrize(("action", "seconds"), [("terminate", 120), ("stop", 120), ("hibernate", 0)])
def test_the_spot_warning_is_a_take_back_with_a_deadline(action: str, seconds: int) -> None:
    """The warning says which machine, in which region, and leaves two minutes; hibernation leaves none."""
    notice = one(envelope(WARNING, {"instance-id": ID, "instance-action": action}))
    assert (notice.kind, notice.provider, notice.region, notice.at) == (NoticeKind.TAKE_BACK, "aws", "us-east-2", AT)
    assert (notice.event.instance_id, notice.event.fault_code) == (ID, action)
    assert notice.event.marked_for_termination
    assert notice.deadline is not None
    assert (notice.deadline - AT).total_seconds() == seconds
    assert notice.event.termination_time == int(notice.deadline.timestamp())


def test_the_reservation_warning_carries_its_own_time() -> None:
    """The warning of an interruptible reservation is a take-back at the time that it names."""
    kind = "EC2 Capacity Reservation Instance Interruption Warning"
    detail = {"instance-id": ID, "instance-action": "terminate", "instance-termination-time": "2026-05-04T12:01:30Z"}
    notice = one(envelope(kind, detail))
    assert notice.kind is NoticeKind.TAKE_BACK
    assert notice.deadline == datetime(2026, 5, 4, 12, 1, 30, tzinfo=UTC)


def test_a_warning_without_a_time_has_no_deadline() -> None:
    """Without the time of its sending nobody knows when the two minutes are over."""
    event = envelope(WARNING, {"instance-id": ID, "instance-action": "terminate"})
    del event["time"]
    assert one(event).deadline is None


def test_the_rebalance_recommendation() -> None:
    """A rebalance recommendation names the machine and takes nothing back."""
    notice = one(envelope("EC2 Instance Rebalance Recommendation", {"instance-id": ID}))
    assert (notice.kind, notice.deadline) == (NoticeKind.REBALANCE, None)
    assert not notice.event.marked_for_termination


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("pending", "pending"),
        ("running", "running"),
        ("stopping", "stopping"),
        ("stopped", "stopping"),
        ("shutting-down", "shutting-down"),
        ("terminated", "terminated"),
    ],
)
def test_state_changes(said: str, state: str) -> None:
    """Each state of EC2 becomes ours, and EC2's own word is kept."""
    notice = one(envelope(STATE_CHANGE, {"instance-id": ID, "state": said}))
    assert (notice.kind, notice.state, notice.event.fault_code) == (NoticeKind.STATE_CHANGE, state, said)


def test_a_health_event_names_each_machine_once() -> None:
    """A scheduled change makes one notice for each machine in it, with the start as the deadline."""
    entities = [{"entityValue": ID}, {"entityValue": "vol-1"}, {"entityValue": "i-2"}, "junk"]
    notices = parse(envelope("AWS Health Event", health(affectedEntities=entities), source="aws.health"))
    assert notices is not None
    assert [n.event.instance_id for n in notices] == [ID, "i-2"]
    assert {n.kind for n in notices} == {NoticeKind.MAINTENANCE}
    assert notices[0].deadline == datetime(2026, 5, 6, 9, 19, 29, tzinfo=UTC)
    assert notices[0].event.fault_code == "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"


@pytest.mark.parametrize(
    "changes", [{"service": "RDS"}, {"eventTypeCategory": "issue"}, {"statusCode": "closed"}, {"affectedEntities": []}]
)
def test_other_health_events_mean_nothing(changes: dict[str, object]) -> None:
    """Health events that are about no machine, or about no change to come, are known and empty."""
    assert parse(envelope("AWS Health Event", health(**changes), source="aws.health")) == ()


@pytest.mark.parametrize(
    "event",
    [
        {},
        envelope("EC2 AMI State Change", {}),
        envelope(WARNING, {"instance-id": ID, "instance-action": "terminate"}, source="aws.ec3"),
        {"source": ["aws.ec2"], "detail-type": None},
    ],
)
def test_unknown_kinds_are_none(event: Mapping[str, object]) -> None:
    """What is not one of EC2's announcements is left to somebody else."""
    assert parse(event) is None


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (envelope(WARNING, None), "detail"),
        (envelope(WARNING, [ID]), "detail"),
        (envelope(WARNING, {"instance-action": "terminate"}), "detail.instance-id"),
        (envelope(WARNING, {"instance-id": 7, "instance-action": "terminate"}), "detail.instance-id"),
        (envelope(WARNING, {"instance-id": "vol-1", "instance-action": "terminate"}), "detail.instance-id"),
        (envelope(WARNING, {"instance-id": "i-" + "0" * 90, "instance-action": "terminate"}), "detail.instance-id"),
        (envelope(WARNING, {"instance-id": ID}), "detail.instance-action"),
        (envelope(WARNING, {"instance-id": ID, "instance-action": "stop"}, time="noon"), "time"),
        (envelope(WARNING, {"instance-id": ID, "instance-action": "stop"}, time="2026-13-40T00:00:00Z"), "time"),
        (envelope(WARNING, {"instance-id": ID, "instance-action": "stop"}, time="9999-12-31T23:59:59Z"), "time"),
        (envelope(WARNING, {"instance-id": ID, "instance-action": "stop"}, time="0001-01-01T00:00:00Z"), "time"),
        (envelope(WARNING, {"instance-id": ID, "instance-action": "stop"}, region=""), "region"),
        (envelope(STATE_CHANGE, {"instance-id": ID, "state": "melted"}), "detail.state"),
        (envelope("AWS Health Event", health(affectedEntities="i-1"), source="aws.health"), "detail.affectedEntities"),
        (envelope("AWS Health Event", health(startTime="soon"), source="aws.health"), "detail.startTime"),
    ],
)
def test_malformed_events_name_the_field(event: Mapping[str, object], field: str) -> None:
    """A known kind with other content than it promises is invalid input, and the problem names the field."""
    with pytest.raises(InvalidInput) as caught:
        parse(event)
    assert [problem.field for problem in caught.value.problems] == [field]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([ID, "terminate", "stopped"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_DETAIL = st.fixed_dictionaries(
    {},
    optional={
        key: _JSON | st.datetimes().map(str)
        for key in (
            "instance-id",
            "instance-action",
            "instance-termination-time",
            "state",
            "startTime",
            "eventTypeCode",
        )
    }
    | {"service": st.just("EC2"), "eventTypeCategory": st.just("scheduledChange"), "affectedEntities": _JSON},
)


@given(
    kind=st.sampled_from(
        [
            ("aws.ec2", WARNING),
            ("aws.ec2", STATE_CHANGE),
            ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
            ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
            ("aws.health", "AWS Health Event"),
        ]
    ),
    detail=_DETAIL | _JSON,
    time=_JSON | st.datetimes().map(str),
)
def test_whatever_comes_is_notices_or_invalid_input(kind: tuple[str, str], detail: object, time: object) -> None:
    """No content of a known kind crashes the handler: it is parsed, or it is invalid input."""
    notices: tuple[Notice, ...] | None = ()
    with suppress(InvalidInput):
        notices = parse(envelope(kind[1], detail, source=kind[0], time=time))
    assert notices is not None
