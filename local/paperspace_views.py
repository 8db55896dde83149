"""What Paperspace's API shows of the market's machines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from local import paperspace_facts as facts
from local.json_face import Json
from local.market_model import USER_SHUTDOWN, Machine, MachineState

_STATES = {
    MachineState.PENDING: "provisioning",
    MachineState.RUNNING: "ready",
    MachineState.STOPPING: "stopping",
    MachineState.STOPPED: "off",
    MachineState.SHUTTING_DOWN: "stopping",
    MachineState.TERMINATED: "off",
}
_GIB = 1024**3
OUT_OF_CAPACITY = (
    "We are currently out of capacity for the selected VM type. Try again in a few minutes, or select a different one."
)


def machine_view(machine: Machine) -> Json:
    """One machine, with all that the API promises of one."""
    kind, details = facts.KINDS[machine.pool.instance_type], machine.request.details
    accelerator = {"name": kind.gpu, "memory": kind.vram_gib * _GIB, "count": 1}
    return {
        "id": machine.allocated_id,
        "name": details["name"],
        "state": _STATES[machine.state],
        "os": details["os"],
        "machineType": machine.pool.instance_type,
        "agentType": "LinuxHeadless",
        "cpus": kind.vcpus,
        "ram": int(kind.memory_gib * _GIB),
        "storageTotal": int(details["disk_gb"]) * _GIB,
        "storageUsed": 0,
        "accelerators": [accelerator] if kind.gpu else [],
        "region": machine.pool.region.lower(),
        "privateIp": f"10.{machine.serial // 65536 % 256}.{machine.serial // 256 % 256}.{machine.serial % 256}",
        "networkId": details["network_id"],
        "publicIp": f"172.83.{machine.serial // 256 % 256}.{machine.serial % 256}" if machine.live else None,
        "publicIpType": "dynamic",
        "usageRate": float(machine.price_usd_hour),
        "storageRate": 0.007,
        "dtCreated": _time(machine.launched_at),
        "dtModified": _time(machine.state_since or machine.launched_at),
        "dtDeleted": _time(machine.ended_at) if machine.ended_at else None,
        **_settings(),
    }


def _settings() -> Json:
    return {
        "autoShutdownEnabled": False,
        "autoShutdownTimeout": None,
        "autoShutdownForce": None,
        "autoSnapshotEnabled": False,
        "autoSnapshotFrequency": None,
        "autoSnapshotSaveCount": None,
        "updatesPending": False,
        "restorePointEnabled": False,
        "restorePointFrequency": None,
        "restorePointSnapshotId": None,
        "reservation": None,
    }


def create_event(machine: Machine) -> Json:
    """How the machine's creation goes."""
    failed = machine.running_at is None and machine.reason is not None and machine.reason.code != USER_SHUTDOWN.code
    state = "error" if failed else "in progress" if machine.running_at is None else "done"
    finished = machine.state_since if failed else machine.running_at
    return {
        "id": f"create-{machine.allocated_id}",
        "name": "create",
        "state": state,
        "machineId": machine.allocated_id,
        "dtCreated": _time(machine.launched_at),
        "dtStarted": _time(machine.launched_at),
        "dtFinished": _time(finished) if finished else None,
        "error": OUT_OF_CAPACITY if failed else None,
    }


def deactivate_event(machine: Machine) -> Json | None:
    """How the machine is taken down; None while it is not."""
    if machine.state not in {MachineState.SHUTTING_DOWN, MachineState.TERMINATED}:
        return None
    began = machine.billing_ended_at or machine.state_since or machine.launched_at
    return {
        "id": f"deactivate-{machine.allocated_id}",
        "name": "deactivate",
        "state": "done" if machine.ended_at else "in progress",
        "machineId": machine.allocated_id,
        "dtCreated": _time(began),
        "dtStarted": _time(began),
        "dtFinished": _time(machine.ended_at) if machine.ended_at else None,
        "error": None,
    }


def template_views() -> Iterator[Json]:
    """The operating systems."""
    for template_id, template in facts.TEMPLATES.items():
        types = [
            {"machineTypeLabel": name, "isAvailable": bool(kind.gpu) or not template.only_with_gpu}
            for name, kind in facts.KINDS.items()
        ]
        yield {
            "id": template_id,
            "name": template.name,
            "agentType": "LinuxHeadless",
            "operatingSystemLabel": template.system,
            "defaultSizeGb": template.size_gb,
            "availableMachineTypes": types,
            "dtCreated": "2024-06-01T00:00:00.000Z",
        }


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
