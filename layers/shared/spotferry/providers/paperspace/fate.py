"""What a machine's events tell: how its launch went, and that it was ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from spotferry.providers.paperspace.api import Calls, Json, pages
from spotferry.providers.paperspace.machines import time_of
from spotferry.types.instance import Attempt, EndedBy, Instance

_InstanceT = TypeVar("_InstanceT", bound=Instance)
MADE, FAILED = "made", "failed"
_CREATE: Mapping[str, str] = {"done": MADE, "error": FAILED, "cancelled": FAILED}
"""State of a machine's create event to what became of the launch; every other state says that it still goes on."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a machine.

    Attributes:
        launch: MADE, FAILED, or "" while Paperspace is at it or tells nothing.
        words: why the launch failed.
        ended_at: when the machine was taken down, as far as that is told.
        gone: it was taken down, or never came to be.
    """

    launch: str = ""
    words: str = ""
    ended_at: datetime | None = None
    gone: bool = False

    @property
    def ended_by(self) -> EndedBy:
        """Nobody but who has rights to the account takes a machine down."""
        if self.launch == FAILED:
            return "launch"
        return "us" if self.gone else ""


def fate_of(calls: Calls, machine_id: str) -> Fate:
    """What the events of the machine tell; its own, whoever caused them, the newest first.

    Raises:
        ProviderError: the question failed.
    """
    events = [e for e in pages(calls, "/machine-events", {"machineId": machine_id}) if e.get("machineId") == machine_id]
    create = _named(events, "create")
    taken_down = _named(events, "deactivate")
    launch = _CREATE.get(str(create.get("state")), "") if create else ""
    words = str((create or {}).get("error") or f"the machine's create event is {(create or {}).get('state')}")
    down = taken_down is not None and taken_down.get("state") not in {"error", "cancelled"}
    last = (taken_down if down else None) or {}
    return Fate(
        launch=launch,
        words=words if launch == FAILED else "",
        ended_at=time_of(last, "dtStarted") or time_of(last, "dtCreated"),
        gone=down or launch == FAILED,
    )


def unseen(instance: _InstanceT, fate: Fate) -> _InstanceT:
    """The machine, when Paperspace does not show it and its events tell this: as it was, unless they tell its end."""
    if not fate.gone:
        return instance
    changes: dict[str, object] = {"state": "terminated"}
    if isinstance(instance, Attempt):
        changes["ended_by"] = fate.ended_by
        changes["billed_until"] = fate.ended_at or instance.billed_until
        changes["cloud_reason"] = f"create: {fate.words}" if fate.words else "deactivate: the machine was taken down"
    return instance.model_copy(update=changes)


def _named(events: list[Json], name: str) -> Json | None:
    return next((event for event in events if event.get("name") == name), None)
