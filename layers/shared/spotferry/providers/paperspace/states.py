"""Paperspace's words for what a machine is, as data."""

from collections.abc import Mapping

STATES: Mapping[str, str] = {
    "provisioning": "pending",
    "starting": "pending",
    "restarting": "pending",
    "upgrading": "pending",
    "serviceready": "pending",
    "ready": "running",
    "stopping": "stopping",
    # Off is lost to its job, and not gone: its disk bills until the machine is deleted.
    "off": "stopping",
    # In no document of the API; seen in a third party's structure of it. Nothing runs on such a machine.
    "failed": "stopping",
}
"""Paperspace's state of a machine to ours; one that is deleted is not shown, or has the time of its deletion."""

LOST: Mapping[str, str] = {
    "stopping": "the machine is being switched off",
    "off": "the machine is switched off",
    "failed": "Paperspace could not keep the machine up",
}
"""What the states say that mean the end of the work on a machine, in words."""
