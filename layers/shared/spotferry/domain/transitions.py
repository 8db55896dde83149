"""The state machine of a job, as a table.

A pair of state and event is a move (TRANSITIONS: the states it may lead to, which may be the one it comes from), a
no-op (NO_OPS: with the reason why it changes nothing), or not in the table: then `decide` raises IllegalTransition.
"""

from collections.abc import Iterable, Mapping
from typing import get_args

from spotferry.domain import events as e
from spotferry.types.job import FINAL_STATES, HOLD_STATES, JobState

EVENTS: tuple[type[e.Event], ...] = get_args(e.Event)
"""Every kind of event."""

PENDING = JobState.PENDING
PROVISIONING = JobState.PROVISIONING
SETTING_UP = JobState.SETTING_UP
RUNNING = JobState.RUNNING
INTERRUPTED = JobState.INTERRUPTED
FINALIZING = JobState.FINALIZING
CANCELLING = JobState.CANCELLING
SETUP_FAILED = JobState.SETUP_FAILED
STARTUP_FAILED = JobState.STARTUP_FAILED
DONE = JobState.DONE
FAILED = JobState.FAILED
CANCELLED = JobState.CANCELLED

_PASSED_ON = (PENDING, PROVISIONING, SETTING_UP, SETUP_FAILED, STARTUP_FAILED)
"""Where a job is once its owner is lost: with its successor as far as that has come, or waiting for a machine."""

_WITH_SUCCESSOR = (RUNNING, INTERRUPTED, FINALIZING)
"""Where a second machine is looked for. It may be on its way in SETTING_UP as well: while a task that failed is started
again."""

_TAKEN = (INTERRUPTED,)
_OVER = (DONE, FAILED)

_MOVES: tuple[tuple[type[e.Event], Mapping[JobState, Iterable[JobState]]], ...] = (
    (e.LaunchChosen, {PENDING: [PROVISIONING], **{s: [s] for s in _WITH_SUCCESSOR}}),
    (e.PlacementDeferred, {PENDING: [PENDING], **{s: [s] for s in _WITH_SUCCESSOR}}),
    (e.PlacementImpossible, {PENDING: [FAILED]}),
    (e.LaunchRepeated, {state: [state] for state in JobState if state is not CANCELLING and not state.is_final}),
    (e.MachineCreated, {state: [state] for state in JobState}),
    (
        e.LaunchFailed,
        {
            PENDING: [PENDING],
            PROVISIONING: [PENDING, FAILED, PROVISIONING],
            INTERRUPTED: [INTERRUPTED, FAILED, *_PASSED_ON],
            FINALIZING: [FINALIZING],
            CANCELLING: [CANCELLING, CANCELLED, FAILED],
            **{state: [state] for state in (SETTING_UP, RUNNING, *HOLD_STATES, *FINAL_STATES)},
        },
    ),
    (
        e.AgentArrived,
        {
            PROVISIONING: [SETTING_UP],
            **{state: [state] for state in (SETTING_UP, *_WITH_SUCCESSOR, CANCELLING)},
        },
    ),
    (
        e.SetupFinished,
        {
            SETTING_UP: [SETTING_UP],
            RUNNING: [RUNNING, INTERRUPTED],
            INTERRUPTED: [INTERRUPTED],
            FINALIZING: [FINALIZING],
        },
    ),
    (e.SetupFailed, {SETTING_UP: [SETUP_FAILED, SETTING_UP], **{s: [s] for s in _WITH_SUCCESSOR}}),
    (e.StartupFailed, {SETTING_UP: [STARTUP_FAILED, SETTING_UP], **{s: [s] for s in _WITH_SUCCESSOR}}),
    (e.TaskStarted, {SETTING_UP: [RUNNING]}),
    (e.CommandEnded, {s: [s] for s in (SETTING_UP, *_WITH_SUCCESSOR, CANCELLING, *HOLD_STATES)}),
    (e.CheckpointCommitted, {s: [s] for s in (SETTING_UP, RUNNING, INTERRUPTED, FINALIZING, CANCELLING)}),
    (e.CheckpointFailed, {s: [s] for s in (RUNNING, INTERRUPTED, FINALIZING, CANCELLING)}),
    (
        e.TaskExited,
        {
            SETTING_UP: [FINALIZING, *_OVER, SETTING_UP],
            RUNNING: [FINALIZING, *_OVER, SETTING_UP],
            INTERRUPTED: [FINALIZING, *_OVER, INTERRUPTED],
        },
    ),
    (e.OutputsCommitted, {FINALIZING: _OVER}),
    (e.OutputsFailed, {FINALIZING: [FAILED]}),
    (
        e.Released,
        {
            PENDING: [PENDING],
            PROVISIONING: [PENDING, PROVISIONING],
            SETTING_UP: _PASSED_ON,
            RUNNING: [RUNNING, *_PASSED_ON],
            INTERRUPTED: [INTERRUPTED, *_PASSED_ON],
            FINALIZING: [FINALIZING, FAILED, *_PASSED_ON],
            CANCELLING: [CANCELLING, CANCELLED, FAILED],
            **{state: [FAILED, state] for state in HOLD_STATES},
            **{state: [state] for state in FINAL_STATES},
        },
    ),
    (
        e.NoticeReceived,
        {
            PROVISIONING: _TAKEN,
            SETTING_UP: [*_TAKEN, SETTING_UP],
            RUNNING: [*_TAKEN, RUNNING],
            INTERRUPTED: _TAKEN,
            FINALIZING: [FINALIZING],
        },
    ),
    (e.RebalanceAdvised, {s: [s] for s in (PROVISIONING, SETTING_UP, *_WITH_SUCCESSOR)}),
    (
        e.MachineCondemned,
        {
            PENDING: [PENDING],
            PROVISIONING: [INTERRUPTED, PROVISIONING],
            SETTING_UP: [INTERRUPTED, SETTING_UP],
            RUNNING: [INTERRUPTED, RUNNING],
            INTERRUPTED: [INTERRUPTED],
            FINALIZING: [FINALIZING],
            CANCELLING: [CANCELLING],
            **{state: [FAILED, state] for state in HOLD_STATES},
            **{state: [state] for state in FINAL_STATES},
        },
    ),
    (
        e.MachineGone,
        {
            PENDING: [PENDING],
            PROVISIONING: [PENDING, FAILED, PROVISIONING],
            SETTING_UP: [FAILED, *_PASSED_ON],
            RUNNING: [RUNNING, FAILED, *_PASSED_ON],
            INTERRUPTED: [INTERRUPTED, FAILED, *_PASSED_ON],
            FINALIZING: [FINALIZING, FAILED, *_PASSED_ON],
            CANCELLING: [CANCELLING, CANCELLED, FAILED],
            **{state: [FAILED, state] for state in HOLD_STATES},
            **{state: [state] for state in FINAL_STATES},
        },
    ),
    (e.CheckpointRequested, {RUNNING: [RUNNING]}),
    (
        e.LimitReached,
        {
            PENDING: [FAILED],
            **{state: [CANCELLING] for state in (PROVISIONING, SETTING_UP, RUNNING, INTERRUPTED, *HOLD_STATES)},
        },
    ),
    (
        e.CancelRequested,
        {
            PENDING: [CANCELLED],
            **{
                state: [CANCELLING]
                for state in (PROVISIONING, SETTING_UP, RUNNING, INTERRUPTED, FINALIZING, *HOLD_STATES)
            },
        },
    ),
    (e.RetryRequested, {state: [SETTING_UP] for state in HOLD_STATES}),
    (e.HoldExpired, {state: [FAILED] for state in HOLD_STATES}),
)

TRANSITIONS: Mapping[tuple[JobState, type[e.Event]], frozenset[JobState]] = {
    (state, event): frozenset(targets) for event, row in _MOVES for state, targets in row.items()
}
"""The machine: every pair that may change something, with every state it may lead to."""

_HAS_MACHINE = "the job has its machine, or needs none any more"
_LATE = "late or repeated: the job is past it"
_ENDING = "the job is being ended already"
_OVERTAKEN = "the job is over"
_NOT_HELD = "the job is not on hold any more"
_MACHINE_LOST = "the machine it is about has lost the job"
_SENDING = "the task is over, and its outputs are still sent"

_ASKS_FOR_A_STATE = frozenset({e.RetryRequested, e.CheckpointRequested})
"""What a person asks for makes sense in some states; in any other it is refused, not ignored."""

_PAST_SETUP = (RUNNING, FINALIZING, INTERRUPTED, *HOLD_STATES)

NO_OPS: Mapping[tuple[JobState, type[e.Event]], str] = {
    pair: reason
    for event, reason, states in (
        (e.LaunchChosen, _HAS_MACHINE, tuple(JobState)),
        (e.PlacementDeferred, _HAS_MACHINE, tuple(JobState)),
        (e.PlacementImpossible, _HAS_MACHINE, tuple(JobState)),
        (e.AgentArrived, _LATE, _PAST_SETUP),
        (e.AgentArrived, _OVERTAKEN, tuple(FINAL_STATES)),
        (e.SetupFinished, _LATE, _PAST_SETUP),
        (e.SetupFailed, _LATE, _PAST_SETUP),
        (e.StartupFailed, _LATE, _PAST_SETUP),
        (e.TaskStarted, _LATE, _PAST_SETUP),
        (e.CheckpointFailed, _LATE, (SETTING_UP, *HOLD_STATES)),
        (e.CheckpointCommitted, _LATE, tuple(HOLD_STATES)),
        (e.TaskExited, _LATE, (FINALIZING,)),
        *((event, _ENDING, (CANCELLING,)) for event in EVENTS if event not in _ASKS_FOR_A_STATE),
        *((event, _OVERTAKEN, tuple(FINAL_STATES)) for event in EVENTS if event not in _ASKS_FOR_A_STATE),
        *((event, _MACHINE_LOST, (PENDING,)) for event in (e.NoticeReceived, e.RebalanceAdvised, e.MachineCondemned)),
        *((event, _LATE, tuple(HOLD_STATES)) for event in (e.NoticeReceived, e.RebalanceAdvised)),
        (e.LimitReached, _SENDING, (FINALIZING,)),
        (e.HoldExpired, _NOT_HELD, tuple(JobState)),
    )
    for state in states
    if (pair := (state, event)) not in TRANSITIONS
}
"""Every pair that changes nothing, and why. Within a move's pair an event that repeats what is known changes nothing
either."""
