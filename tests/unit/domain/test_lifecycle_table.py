"""The state machine as a table: every pair of state and event is spoken for."""

import itertools
from dataclasses import replace

import pytest

from spotferry.domain import events as e
from spotferry.domain.lifecycle import decide, event_name
from spotferry.domain.moves import MOVES
from spotferry.domain.transitions import EVENTS, NO_OPS, TRANSITIONS
from spotferry.domain.view import View
from spotferry.types import IllegalTransition, JobState
from tests.builders import NOW, OTHER, an_event, view_in

PAIRS = list(itertools.product(JobState, EVENTS))


def _id(pair: tuple[JobState, type[e.Event]]) -> str:
    return f"{pair[0]}+{event_name(pair[1])}"


def _ready_for(view: View, kind: type[e.Event]) -> View:
    """A launch's answer is only awaited before the cloud gave one."""
    if kind not in {e.LaunchFailed, e.MachineCreated}:
        return view
    return replace(view, attempts={i: a.model_copy(update={"allocated_id": ""}) for i, a in view.attempts.items()})


@pytest.mark.parametrize("pair", PAIRS, ids=_id)
def test_every_pair_is_a_move_a_no_op_or_illegal(pair: tuple[JobState, type[e.Event]]) -> None:
    """A listed move leads where the table says, a no-op changes nothing, every other pair raises IllegalTransition."""
    state, kind = pair
    view = _ready_for(view_in(state), kind)
    subject = OTHER if state is JobState.PENDING else "i-1"
    if pair in TRANSITIONS:
        decision = decide(view, an_event(kind, subject), now=NOW)
        assert decision.view.job.state in TRANSITIONS[pair]
    elif pair in NO_OPS:
        decision = decide(view, an_event(kind, subject), now=NOW)
        assert decision.entry is None
        assert decision.view == view
        assert NO_OPS[pair]
    else:
        with pytest.raises(IllegalTransition, match=state):
            decide(view, an_event(kind, subject), now=NOW)


def test_moves_and_no_ops_do_not_overlap() -> None:
    """A pair stands in one of the two tables only."""
    assert not TRANSITIONS.keys() & NO_OPS.keys()


def test_every_event_has_its_function() -> None:
    """No kind of event is left without a move."""
    assert set(MOVES) == set(EVENTS)


@pytest.mark.parametrize("pair", [p for p in PAIRS if p[0].is_final], ids=_id)
def test_final_states_are_final(pair: tuple[JobState, type[e.Event]]) -> None:
    """No event leads a final job anywhere else."""
    assert TRANSITIONS.get(pair, frozenset({pair[0]})) == {pair[0]}


def test_every_state_can_be_reached_and_left() -> None:
    """There is a way from acceptance to each state, and from each to a final one."""
    reached = {JobState.PENDING}
    while more := {t for (s, _), targets in TRANSITIONS.items() if s in reached for t in targets} - reached:
        reached |= more
    assert reached == set(JobState)
    ends = {s for s in JobState if s.is_final}
    while more := {s for (s, _), targets in TRANSITIONS.items() if targets & ends} - ends:
        ends |= more
    assert ends == set(JobState)
