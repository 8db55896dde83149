"""The words of docs/agent-protocol.md that a strict broker knows."""

from collections.abc import Mapping

PHASES = {"setting_up", "waiting", "running", "checkpointing", "finalizing", "held", "stopping"}
EVENTS: Mapping[str, set[str]] = {
    "setup_finished": {"seconds"},
    "setup_failed": {"exit_code", "line"},
    "startup_failed": {"reason"},
    "task_started": {"restored_from", "why_not"},
    "checkpoint_failed": {"reason"},
    "command_ended": {"command", "exit_code", "seconds"},
    "task_exited": {"exit_code", "outputs"},
    "outputs_failed": {"reason"},
    "notice": {"kind", "code", "deadline"},
    "released": {"checkpoint", "reason"},
}
BEFORE = {"task_started": "setup_finished", "task_exited": "task_started"}
REASONS = {"instance_termination", "job_termination", "heartbeat"}
