"""What can happen to a job: the inputs of its state machine, as plain data."""

from spotferry.domain.events.agents import (
    AgentArrived,
    CheckpointCommitted,
    CheckpointFailed,
    CommandEnded,
    OutputsCommitted,
    OutputsFailed,
    Released,
    SetupFailed,
    SetupFinished,
    StartupFailed,
    TaskExited,
    TaskStarted,
)
from spotferry.domain.events.machines import (
    LaunchChosen,
    LaunchFailed,
    LaunchRepeated,
    MachineCondemned,
    MachineCreated,
    MachineGone,
    NoticeReceived,
    PlacementDeferred,
    PlacementImpossible,
    RebalanceAdvised,
)
from spotferry.domain.events.people import (
    CancelRequested,
    CheckpointRequested,
    HoldExpired,
    LimitReached,
    PersonsOrder,
    RetryRequested,
)

__all__ = [
    "AgentArrived",
    "CancelRequested",
    "CheckpointCommitted",
    "CheckpointFailed",
    "CheckpointRequested",
    "CommandEnded",
    "Event",
    "HoldExpired",
    "LaunchChosen",
    "LaunchFailed",
    "LaunchRepeated",
    "LimitReached",
    "MachineCondemned",
    "MachineCreated",
    "MachineGone",
    "NoticeReceived",
    "OutputsCommitted",
    "OutputsFailed",
    "PersonsOrder",
    "PlacementDeferred",
    "PlacementImpossible",
    "RebalanceAdvised",
    "Released",
    "RetryRequested",
    "SetupFailed",
    "SetupFinished",
    "StartupFailed",
    "TaskExited",
    "TaskStarted",
]

Event = (
    LaunchChosen
    | PlacementDeferred
    | PlacementImpossible
    | LaunchRepeated
    | MachineCreated
    | LaunchFailed
    | AgentArrived
    | SetupFinished
    | SetupFailed
    | StartupFailed
    | TaskStarted
    | CommandEnded
    | CheckpointCommitted
    | CheckpointFailed
    | TaskExited
    | OutputsCommitted
    | OutputsFailed
    | Released
    | NoticeReceived
    | RebalanceAdvised
    | MachineCondemned
    | MachineGone
    | CheckpointRequested
    | LimitReached
    | CancelRequested
    | RetryRequested
    | HoldExpired
)
