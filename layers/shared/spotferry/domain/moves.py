"""The function of each event, in one table."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from spotferry.domain import events as e
from spotferry.domain import job_moves, machine_moves, task_moves
from spotferry.domain.handover import Moved
from spotferry.domain.view import View

Move = Callable[[View, Any, datetime], Moved | None]  # Any: each function takes the one event it is registered for

MOVES: Mapping[type[e.Event], Move] = {
    e.LaunchChosen: machine_moves.launch_chosen,
    e.PlacementDeferred: job_moves.placement_deferred,
    e.PlacementImpossible: job_moves.placement_impossible,
    e.LaunchRepeated: machine_moves.launch_repeated,
    e.MachineCreated: machine_moves.machine_created,
    e.LaunchFailed: machine_moves.launch_failed,
    e.AgentArrived: task_moves.agent_arrived,
    e.SetupFinished: task_moves.setup_finished,
    e.SetupFailed: task_moves.setup_failed,
    e.StartupFailed: task_moves.startup_failed,
    e.TaskStarted: task_moves.task_started,
    e.CommandEnded: task_moves.command_ended,
    e.CheckpointCommitted: task_moves.checkpoint_committed,
    e.CheckpointFailed: task_moves.checkpoint_failed,
    e.TaskExited: task_moves.task_exited,
    e.OutputsCommitted: task_moves.outputs_committed,
    e.OutputsFailed: task_moves.outputs_failed,
    e.Released: machine_moves.released,
    e.NoticeReceived: machine_moves.notice_received,
    e.RebalanceAdvised: machine_moves.rebalance_advised,
    e.MachineCondemned: machine_moves.machine_condemned,
    e.MachineGone: machine_moves.machine_gone,
    e.CheckpointRequested: job_moves.checkpoint_requested,
    e.LimitReached: job_moves.limit_reached,
    e.CancelRequested: job_moves.cancel_requested,
    e.RetryRequested: job_moves.retry_requested,
    e.HoldExpired: job_moves.hold_expired,
}
"""The function of each event."""
