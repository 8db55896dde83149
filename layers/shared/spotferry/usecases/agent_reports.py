"""What each report of docs/agent-protocol.md brings, and the event that it becomes."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from spotferry.domain import events as e
from spotferry.ports.cloud import Command
from spotferry.types.base import Record, Time
from spotferry.types.words import MOST_TOLD, cut


def _text_or_nothing(said: object) -> object:
    return "" if said is None else said


def _bounded(text: str) -> str:
    return cut(text, MOST_TOLD)


_Told = Annotated[str, BeforeValidator(_text_or_nothing), AfterValidator(_bounded)]
"""What a machine says of a failure; null is nothing."""

_ExitCode = Annotated[int, Field(ge=0, le=255)]
_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Report(Record):
    """The data of a report."""

    @abstractmethod
    def event(self, instance_id: str) -> e.Event | None:
        """What happened on the machine; None for nothing that a job needs to hear."""


class SetupFinished(Report):
    """Setup ended well."""

    seconds: _Seconds = 0

    def event(self, instance_id: str) -> e.Event:
        """The setup's end."""
        return e.SetupFinished(instance_id, self.seconds)


class SetupFailed(Report):
    """A line of the setup failed, or its shell."""

    exit_code: _ExitCode
    line: _Told = ""

    def event(self, instance_id: str) -> e.Event:
        """The setup's failure."""
        return e.SetupFailed(instance_id, self.exit_code, self.line)


class StartupFailed(Report):
    """The task could not be started."""

    reason: _Told = ""

    def event(self, instance_id: str) -> e.Event:
        """The start's failure."""
        return e.StartupFailed(instance_id, self.reason)


class TaskStarted(Report):
    """The task runs, from a checkpoint or from nothing."""

    restored_from: int | None = None
    why_not: _Told = ""

    def event(self, instance_id: str) -> e.Event:
        """The task's start."""
        return e.TaskStarted(instance_id, self.restored_from, self.why_not)


class CommandEnded(Report):
    """The lines of a point of the job's life ran."""

    command: Command
    exit_code: _ExitCode
    seconds: _Seconds = 0

    def event(self, instance_id: str) -> e.Event:
        """The lines' end."""
        return e.CommandEnded(instance_id, self.command, self.exit_code, self.seconds)


class CheckpointFailed(Report):
    """A checkpoint came to nothing."""

    reason: _Told = ""

    def event(self, instance_id: str) -> e.Event:
        """The checkpoint's failure."""
        return e.CheckpointFailed(instance_id, self.reason)


class TaskExited(Report):
    """The task ended by itself."""

    exit_code: _ExitCode
    outputs: bool = False

    def event(self, instance_id: str) -> e.Event:
        """The task's end."""
        return e.TaskExited(instance_id, self.exit_code, outputs=self.outputs)


class OutputsFailed(Report):
    """The outputs could not be sent."""

    reason: _Told = ""

    def event(self, instance_id: str) -> e.Event:
        """The outputs' failure."""
        return e.OutputsFailed(instance_id, self.reason)


class NoticeRead(Report):
    """What the machine read from its cloud's metadata service; of kinds that we do not know nothing follows."""

    kind: str
    code: _Told = ""
    deadline: Time | None = None

    def event(self, instance_id: str) -> e.Event | None:
        """The machine is taken back, or may be soon."""
        if self.kind == "rebalance":
            return e.RebalanceAdvised(instance_id, self.code or self.kind)
        if self.kind != "take_back":
            return None
        return e.NoticeReceived(instance_id, self.code or self.kind, self.deadline)


class Released(Report):
    """The task is stopped, and nothing more comes from this machine."""

    reason: _Told = ""

    def event(self, instance_id: str) -> e.Event:
        """The machine's last word."""
        return e.Released(instance_id, self.reason)


REPORTS: Mapping[str, type[Report]] = {
    "setup_finished": SetupFinished,
    "setup_failed": SetupFailed,
    "startup_failed": StartupFailed,
    "task_started": TaskStarted,
    "command_ended": CommandEnded,
    "checkpoint_failed": CheckpointFailed,
    "task_exited": TaskExited,
    "outputs_failed": OutputsFailed,
    "notice": NoticeRead,
    "released": Released,
}
"""The reports by their names."""
