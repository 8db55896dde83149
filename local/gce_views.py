"""How a machine of the market looks through Compute Engine's API."""

from __future__ import annotations

import hashlib

from local.json_face import Json
from local.market_model import Machine, MachineState, Purchase

STATUSES = {
    MachineState.PENDING: "PROVISIONING",
    MachineState.RUNNING: "RUNNING",
    MachineState.STOPPING: "STOPPING",
    MachineState.STOPPED: "TERMINATED",
    MachineState.SHUTTING_DOWN: "STOPPING",
}
"""A machine that has ended is not shown at all."""
PROJECT_NUMBER = "1"


def number(machine: Machine) -> str:
    """The machine's numeric id."""
    return str(int(hashlib.sha256(machine.allocated_id.encode()).hexdigest()[:15], 16))


def private_ip(machine: Machine) -> str:
    """The machine's address in its network."""
    return f"10.128.{machine.serial // 250 % 250}.{machine.serial % 250 + 2}"


def public_ip(machine: Machine) -> str:
    """The machine's address outside; "" for one that was to have none. The range is for documentation."""
    return f"198.51.100.{machine.serial % 250 + 2}" if machine.request.details["external_ip"] else ""


def instance_view(machine: Machine, project: str, base: str) -> Json:
    """The machine as `instances.get` shows it."""
    home = f"{base}/projects/{project}/zones/{machine.pool.zone}"
    interface: Json = {"name": "nic0", "networkIP": private_ip(machine), "network": machine.request.details["network"]}
    if address := public_ip(machine):
        interface["accessConfigs"] = [{"name": "External NAT", "type": "ONE_TO_ONE_NAT", "natIP": address}]
    spot = machine.pool.purchase is Purchase.SPOT
    shown: Json = {
        "kind": "compute#instance",
        "id": number(machine),
        "name": machine.allocated_id,
        "zone": home,
        "selfLink": f"{home}/instances/{machine.allocated_id}",
        "machineType": f"{home}/machineTypes/{machine.pool.instance_type}",
        "status": STATUSES[machine.state],
        "creationTimestamp": machine.launched_at.isoformat(),
        "labels": dict(machine.request.tags),
        "networkInterfaces": [interface],
        "scheduling": {
            "provisioningModel": "SPOT" if spot else "STANDARD",
            "preemptible": spot,
            "instanceTerminationAction": machine.request.details["termination_action"],
            "automaticRestart": False,
        },
    }
    if machine.running_at:
        shown["lastStartTimestamp"] = machine.running_at.isoformat()
    if machine.billing_ended_at:
        shown["lastStopTimestamp"] = machine.billing_ended_at.isoformat()
    return shown
