"""Which refused events may repeat a save whose effects were never sent."""

from dataclasses import replace
from datetime import timedelta

import pytest

from spotferry.domain import events as e
from spotferry.domain.repeats import REPEATS_WITHIN, may_be_repeat
from spotferry.domain.view import View
from spotferry.types import JobState
from tests.builders import NOW, OTHER, an_event, view_in

EXITED = e.TaskExited(OTHER, 0)


@pytest.fixture
def view() -> View:
    """A job that was changed just now and whose first attempt was heard up to its third report."""
    view = view_in(JobState.PROVISIONING, updated_at=NOW)
    return view.with_attempt(view.attempts[OTHER].model_copy(update={"reports": 3}))


@pytest.mark.parametrize("kind", [e.CheckpointRequested, e.CancelRequested, e.RetryRequested])
def test_a_person_repeats_nothing(view: View, kind: type[e.Event]) -> None:
    """Who is refused an order and gives it again has not been heard before."""
    assert not may_be_repeat(view, an_event(kind), NOW)


@pytest.mark.parametrize(("report", "may"), [(3, True), (1, True), (4, False), (None, True)])
def test_a_report_that_was_never_heard_repeats_nothing(view: View, report: int | None, may: bool) -> None:  # noqa: FBT001 (a table's column)
    """A stale agent that goes on reporting says something new; one without numbers may repeat itself."""
    assert may_be_repeat(view, replace(EXITED, report=report), NOW) is may


def test_what_has_no_number_may_be_a_repeat(view: View) -> None:
    """What clouds say comes twice as well."""
    assert may_be_repeat(view, e.RebalanceAdvised(OTHER, "rebalance"), NOW)


def test_a_repeat_comes_soon(view: View) -> None:
    """What is owed for longer has been sent by a poll."""
    assert may_be_repeat(view, EXITED, NOW + REPEATS_WITHIN)
    assert not may_be_repeat(view, EXITED, NOW + REPEATS_WITHIN + timedelta(seconds=1))
