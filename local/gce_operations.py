"""Zone operations of the local Google Cloud: what was asked of machines, what happened to them, and how it went."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from local.gcp_facts import PROVIDER
from local.json_face import Json
from local.market import Market
from local.market_model import (
    INSTANCE_SHUTDOWN,
    SPOT_TERMINATION,
    USER_SHUTDOWN,
    EventKind,
    Machine,
    MachineState,
    MarketEvent,
    UnknownMachineError,
)

PREEMPTED = "compute.instances.preempted"
HOST_ERROR = "compute.instances.hostError"
GUEST_TERMINATE = "compute.instances.guestTerminate"
_WORDS = {
    PREEMPTED: "Instance was preempted.",
    HOST_ERROR: "Instance terminated by Compute Engine.",
    GUEST_TERMINATE: "Guest initiated shutdown.",
}
STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
_NOT_OURS = ("Server.", "Client.")
"""How the market's reasons begin where nobody ordered another; they are in EC2's words."""
_BY_SYSTEM = "system@google.com"
_BY_US = "spotferry@local.iam.gserviceaccount.com"


@dataclass(frozen=True, slots=True)
class OperationError:
    """Why an operation failed."""

    code: str
    message: str


@dataclass(slots=True)
class Operation:
    """One operation; `error` is of one that failed from the start, of others the machine tells."""

    name: str
    kind: str
    zone: str
    target: str
    at: datetime
    request_id: str = ""
    error: OperationError | None = None
    answered: bool = field(default=False)

    @property
    def number(self) -> int:
        """Its id."""
        return int(hashlib.sha256(self.name.encode()).hexdigest()[:15], 16)


class Operations:
    """Every operation there ever was; listens to the market for those that nobody asked for."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._lock = threading.Lock()
        self._serial = count(1)
        self._all: dict[str, Operation] = {}
        self._by_target: dict[tuple[str, str], str] = {}
        self._by_request: dict[str, Operation] = {}
        market.subscribe(self.hear)

    def hear(self, event: MarketEvent) -> None:
        """Note what the cloud, or the machine itself, does to a machine; for `Market.subscribe`."""
        if event.provider != PROVIDER:
            return
        machine = self._market.get(event.allocated_id)
        kind = _of_event(event, machine)
        if kind and (kind, event.allocated_id) not in self._by_target:
            self.add(kind, machine.pool.zone, event.allocated_id, event.at)

    def add(
        self,
        kind: str,
        zone: str,
        target: str,
        at: datetime,
        request_id: str = "",
        error: OperationError | None = None,
    ) -> Operation:
        """Begin one."""
        with self._lock:
            prefix = "systemevent" if kind in _WORDS else "operation"
            operation = Operation(f"{prefix}-{next(self._serial):012d}", kind, zone, target, at, request_id, error)
            self._all[operation.name] = operation
            self._by_target[kind, target] = operation.name
            if request_id:
                self._by_request[request_id] = operation
            return operation

    def get(self, zone: str, name: str) -> Operation | None:
        """The operation of this name."""
        with self._lock:
            found = self._all.get(name)
        return found if found and found.zone == zone else None

    def of_request(self, request_id: str) -> Operation | None:
        """The operation that was begun with this request id."""
        with self._lock:
            return self._by_request.get(request_id) if request_id else None

    def in_zone(self, zone: str) -> list[Operation]:
        """The zone's operations, oldest first."""
        with self._lock:
            return [operation for operation in self._all.values() if operation.zone == zone]

    def view(self, operation: Operation, project: str, base: str) -> Json:
        """The operation as the API shows it now; its first answer always says that it is under way."""
        machine = self._machine(operation)
        error = operation.error or (_boot_error(machine) if operation.kind == "insert" else None)
        seen = operation.answered or operation.kind in _WORDS
        done = seen and (operation.error is not None or _is_done(operation, machine))
        operation.answered = True
        home = f"{base}/projects/{project}/zones/{operation.zone}"
        shown: Json = {
            "kind": "compute#operation",
            "id": str(operation.number),
            "name": operation.name,
            "zone": home,
            "selfLink": f"{home}/operations/{operation.name}",
            "operationType": operation.kind,
            "targetLink": f"{home}/instances/{operation.target}",
            "status": "DONE" if done else "RUNNING",
            "user": _BY_SYSTEM if operation.kind in _WORDS else _BY_US,
            "progress": 100 if done else 0,
            "insertTime": operation.at.isoformat(),
            "startTime": operation.at.isoformat(),
            "clientOperationId": operation.request_id,
            "statusMessage": _WORDS.get(operation.kind, ""),
        }
        if done:
            shown["endTime"] = self._ended(operation, machine).isoformat()
        if done and error:
            shown["error"] = {"errors": [{"code": error.code, "message": error.message}]}
            shown |= {"httpErrorStatusCode": 503, "httpErrorMessage": "SERVICE UNAVAILABLE"}
        return shown

    def _machine(self, operation: Operation) -> Machine | None:
        try:
            return self._market.get(operation.target)
        except UnknownMachineError:
            return None

    def _ended(self, operation: Operation, machine: Machine | None) -> datetime:
        if operation.kind == "delete" and machine is not None and machine.billing_ended_at:
            return machine.billing_ended_at
        return operation.at


def _of_event(event: MarketEvent, machine: Machine) -> str:
    """The operation that an event is; "" for none."""
    if event.kind is EventKind.INTERRUPTION:
        return "" if machine.notice is None or machine.notice.false_notice else PREEMPTED
    if event.kind is not EventKind.STATE or machine.running_at is None or machine.reason is None:
        return ""
    if event.value == MachineState.STOPPING and machine.reason == INSTANCE_SHUTDOWN:
        return GUEST_TERMINATE
    if event.value != MachineState.SHUTTING_DOWN or machine.reason == USER_SHUTDOWN:
        return ""
    return PREEMPTED if machine.reason.code == SPOT_TERMINATION.code else HOST_ERROR


def _boot_error(machine: Machine | None) -> OperationError | None:
    """Why a machine that was sold never ran; None for one that ran, may yet, or was deleted before."""
    if machine is None or machine.running_at or machine.live or machine.reason is None:
        return None
    if machine.reason == USER_SHUTDOWN:
        return None
    if not machine.reason.code.startswith(_NOT_OURS):
        return OperationError(machine.reason.code, machine.reason.message)
    zone, kind = machine.pool.zone, machine.pool.instance_type
    message = (
        f"A {kind} VM instance is currently unavailable in the {zone} zone. Try a different zone, or try again later."
    )
    return OperationError(STOCKOUT, message)


def _is_done(operation: Operation, machine: Machine | None) -> bool:
    if operation.kind in _WORDS or machine is None:
        return True
    if operation.kind == "insert":
        return machine.state is not MachineState.PENDING
    return machine.state is MachineState.TERMINATED
