"""Compute Engine's words for what a machine is and why it ended, as data."""

from collections.abc import Mapping
from enum import StrEnum

from spotferry.types.instance import EndedBy

STATES: Mapping[str, str] = {
    "PENDING": "pending",
    "PROVISIONING": "pending",
    "STAGING": "pending",
    "REPAIRING": "pending",
    "RUNNING": "running",
    "PENDING_STOP": "stopping",
    "STOPPING": "stopping",
    "SUSPENDING": "stopping",
    # These three are lost to their job, and not gone: their disks bill until they are deleted.
    "SUSPENDED": "stopping",
    "STOPPED": "stopping",
    # Google's word for a machine that is switched off. One that is gone is not shown at all.
    "TERMINATED": "stopping",
    "DEPROVISIONING": "shutting-down",
}
"""Compute Engine's status of a machine to ours."""

PREEMPTED = "compute.instances.preempted"
"""The operation, and the audit log's method, of a spot machine that is taken back."""


class Cause(StrEnum):
    """Who ended a machine."""

    TAKEN_BACK = "taken_back"
    """Google wanted its capacity back."""
    NEVER_STARTED = "never_started"
    """Google accepted the launch and could not carry it out."""
    MAINTAINED = "maintained"
    """The hardware failed, or was maintained without a move."""
    SHUT_DOWN = "shut_down"
    """The machine switched itself off."""
    ORDERED = "ordered"
    """Somebody with rights to the project ended it, the broker most likely."""


OPERATIONS: Mapping[str, Cause] = {
    PREEMPTED: Cause.TAKEN_BACK,
    "compute.instances.hostError": Cause.MAINTAINED,
    "compute.instances.terminateOnHostMaintenance": Cause.MAINTAINED,
    "compute.instances.guestTerminate": Cause.SHUT_DOWN,
    "stop": Cause.ORDERED,
    "suspend": Cause.ORDERED,
    "delete": Cause.ORDERED,
}
"""Type of a zone operation to who ended the machine; of several operations the first in this order tells."""

INSERT = "insert"
"""The operation of a launch; where it failed, the machine never started."""

BY_CLOUD = frozenset({Cause.TAKEN_BACK, Cause.NEVER_STARTED, Cause.MAINTAINED})
"""The causes that are the cloud's doing."""

ENDED_BY: Mapping[Cause, EndedBy] = {
    Cause.TAKEN_BACK: "cloud",
    Cause.MAINTAINED: "cloud",
    Cause.NEVER_STARTED: "launch",
    Cause.SHUT_DOWN: "us",
    Cause.ORDERED: "us",
}
"""Who ended a machine, as the ledger asks."""


def reason_code(cloud_reason: str) -> str:
    """The code at the head of a reason written as "code: words"."""
    return cloud_reason.partition(":")[0].strip()
