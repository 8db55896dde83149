"""The subscription's activity log, as far as the ends of machines go."""

from __future__ import annotations

import re
from datetime import datetime

from local.arm_model import utc
from local.json_face import Json
from local.market import Market
from local.market_model import SPOT_TERMINATION, USER_SHUTDOWN, EventKind, MachineState, MarketEvent

_OPERATIONS = {
    SPOT_TERMINATION.code: "Microsoft.Compute/virtualMachines/evictSpotVM/action",
    USER_SHUTDOWN.code: "Microsoft.Compute/virtualMachines/delete",
}
_WANTED = re.compile(r"resourceUri eq '[^']*/virtualMachines/([^']+)'", re.IGNORECASE)
_SINCE = re.compile(r"eventTimestamp ge '([^']+)'")


class Activity:
    """Who ended which machine."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[datetime, str]]] = {}

    def hear(self, event: MarketEvent, market: Market) -> None:
        """Note the end of a machine; a launch that failed and a failure of the machine are in no log."""
        if event.kind is EventKind.STATE and event.value == MachineState.SHUTTING_DOWN:
            reason = market.get(event.allocated_id).reason
            operation = _OPERATIONS.get(reason.code) if reason else None
            if operation:
                self._rows.setdefault(event.allocated_id.lower(), []).append((event.at, operation))

    def rows(self, wanted: str) -> list[Json]:
        """The rows that a filter asks for: of one machine, from a time on."""
        name, since = _WANTED.search(wanted), _SINCE.search(wanted)
        if name is None or since is None:
            return []
        first = datetime.fromisoformat(since[1])
        return [
            {
                "operationName": {"value": operation, "localizedValue": operation.rpartition("/")[2]},
                "status": {"value": "Succeeded"},
                "eventTimestamp": utc(at),
            }
            for at, operation in self._rows.get(name[1].lower(), [])
            if at >= first
        ]
