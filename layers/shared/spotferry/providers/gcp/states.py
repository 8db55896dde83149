"""Compute Engine's words for what a machine is and why it ended, as data."""

from collections.abc import Mapping

from spotferry.providers.ends import Cause

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
