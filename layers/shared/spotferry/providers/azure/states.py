"""Azure's words for what a machine is and why, as data. No SDK."""

from collections.abc import Mapping

from spotferry.providers.ends import Cause

POWER: Mapping[str, str] = {
    "starting": "pending",
    "running": "running",
    "stopping": "stopping",
    # Stopped is lost to its job, and goes on billing until the machine is deleted.
    "stopped": "stopping",
    "deallocating": "stopping",
    # Deallocated bills its disk.
    "deallocated": "stopping",
}
"""Azure's power state of a machine to ours."""

PROVISIONING: Mapping[str, str] = {
    "creating": "pending",
    "updating": "pending",
    "migrating": "pending",
    "deleting": "shutting-down",
}
"""Azure's provisioning state to ours; the power state counts where it is "succeeded"."""

FAILED = frozenset({"failed", "canceled"})
"""Provisioning states of a machine that came to nothing, if nothing of it has power."""
POWERLESS = frozenset({"", "unknown", "deallocated"})
"""Power states in which nothing of a machine can run."""


OPERATIONS: Mapping[str, Cause] = {
    "microsoft.compute/virtualmachines/evictspotvm/action": Cause.TAKEN_BACK,
    "microsoft.compute/virtualmachines/simulateeviction/action": Cause.TAKEN_BACK,
    "microsoft.compute/virtualmachines/delete": Cause.ORDERED,
    "microsoft.compute/virtualmachines/deallocate/action": Cause.ORDERED,
    "microsoft.compute/virtualmachines/poweroff/action": Cause.ORDERED,
}
"""Operations of the activity log, in small letters, to who ended the machine."""


def state_of(provisioning: str, power: str) -> str | None:
    """A name of INSTANCE_STATES; None where Azure's words are none of those we know.

    A machine whose creation or whose last change failed is "terminated" if it has no power, for nothing of it runs;
    with power it is lost, and "stopping": it may run for all that we know.

    Args:
        provisioning: in small letters, "" where Azure does not tell.
        power: likewise.
    """
    if provisioning in FAILED:
        return "terminated" if power in POWERLESS else "stopping"
    if provisioning in PROVISIONING:
        return PROVISIONING[provisioning]
    if provisioning not in {"succeeded", ""}:
        return None
    return POWER.get(power)
