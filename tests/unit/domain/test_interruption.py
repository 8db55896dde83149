"""What notices mean, whatever cloud sent them."""

from datetime import UTC, datetime

import pytest

from spotferry.domain.interruption import Meaning, meaning
from spotferry.types.events import Notice, NoticeKind, ProviderEvent
from spotferry.types.instance import INSTANCE_STATES

DEADLINE = datetime(2026, 5, 4, 12, 2, tzinfo=UTC)


def a_notice(kind: NoticeKind, state: str = "", deadline: datetime | None = None, ends: int = 0) -> Notice:
    """A notice of that kind."""
    event = ProviderEvent(instance_id="i-1", fault_code="as-given", termination_time=ends)
    return Notice(kind=kind, provider="aws", region="us-east-1", event=event, state=state, deadline=deadline)


@pytest.mark.parametrize(
    ("kind", "state", "expected"),
    [
        (NoticeKind.TAKE_BACK, "", Meaning.LOSE),
        (NoticeKind.REBALANCE, "", Meaning.ADVISED),
        (NoticeKind.MAINTENANCE, "", Meaning.NOTHING),
        (NoticeKind.STATE_CHANGE, "pending", Meaning.NOTHING),
        (NoticeKind.STATE_CHANGE, "running", Meaning.NOTHING),
        (NoticeKind.STATE_CHANGE, "stopping", Meaning.LOSE),
        (NoticeKind.STATE_CHANGE, "shutting-down", Meaning.LOSE),
        (NoticeKind.STATE_CHANGE, "terminated", Meaning.GONE),
        (NoticeKind.STATE_CHANGE, "dreaming", Meaning.NOTHING),
    ],
)
def test_meaning(kind: NoticeKind, state: str, expected: Meaning) -> None:
    """Every kind, and every state of a state change, has one meaning."""
    assert meaning(a_notice(kind, state)) is expected


def test_every_kind_and_state_has_a_meaning() -> None:
    """A kind or a state that is added to the vocabulary is decided about here, or this fails."""
    meanings = {state: meaning(a_notice(NoticeKind.STATE_CHANGE, state)) for state in INSTANCE_STATES}
    assert {s for s, m in meanings.items() if m is Meaning.NOTHING} == {"pending", "running"}
    for kind in NoticeKind:
        assert meaning(a_notice(kind, "running")) in Meaning
