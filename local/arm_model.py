"""What Azure's resource manager keeps of a machine beside the market, and how it shows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from local import azure_facts as facts
from local.json_face import Json
from local.market_model import INSTANCE_SHUTDOWN, SPOT_TERMINATION, USER_SHUTDOWN, Machine, MachineState

SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
PARTS = {"networkinterfaces": "nic", "publicipaddresses": "ip", "disks": "disk"}
"""What a machine has beside itself: the kind, and the end of its name."""
_ENDED_OTHERWISE = frozenset({USER_SHUTDOWN.code, SPOT_TERMINATION.code, INSTANCE_SHUTDOWN.code})
_STATES = {
    MachineState.PENDING: ("Creating", ""),
    MachineState.RUNNING: ("Succeeded", "running"),
    MachineState.STOPPING: ("Succeeded", "stopping"),
    MachineState.STOPPED: ("Succeeded", "stopped"),
    MachineState.SHUTTING_DOWN: ("Deleting", "stopping"),
}
_DISPLAY = {"running": "VM running", "stopping": "VM stopping", "stopped": "VM stopped"}


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a machine came to nothing."""

    code: str
    message: str


@dataclass(slots=True)
class Vm:
    """A machine as a resource: of the market, or one that was accepted and failed before the market sold any."""

    group: str
    name: str
    body: Json
    made_at: datetime
    serial: int
    machine: Machine | None = None
    refused: Failed | None = None
    deleted: bool = False
    deallocated: bool = False

    @property
    def region(self) -> str:
        """Its location."""
        return str(self.body["location"])

    @property
    def failed(self) -> Failed | None:
        """Why it came to nothing, if it did: refused at once, or never booted."""
        if self.refused is not None or self.machine is None:
            return self.refused
        reason = self.machine.reason
        ended = self.machine.state in {MachineState.SHUTTING_DOWN, MachineState.TERMINATED}
        if not ended or reason is None or self.machine.running_at or reason.code in _ENDED_OTHERWISE:
            return None
        # The levers' own codes are EC2's words for a launch that was not carried out.
        code = "AllocationFailed" if reason.code.startswith(("Server.", "Client.")) else reason.code
        return Failed(code, reason.message)

    @property
    def there(self) -> bool:
        """Whether the resource exists."""
        if self.deleted:
            return False
        if self.failed is not None or self.machine is None:
            return True
        return self.machine.state is not MachineState.TERMINATED

    def shown(self, now: datetime) -> bool:
        """Whether the API shows it."""
        return self.there and (self.machine is None or self.machine.visible_at <= now)

    def state(self) -> tuple[str, str]:
        """Provisioning and power state."""
        if self.failed is not None or self.machine is None:
            return "Failed", ""
        if self.deallocated and self.machine.state is MachineState.STOPPED:
            return "Succeeded", "deallocated"
        return _STATES[self.machine.state]


def vm_id(vm: Vm) -> str:
    """Its resource id."""
    return f"{group_id(vm.group)}/providers/Microsoft.Compute/virtualMachines/{vm.name}"


def group_id(group: str) -> str:
    """A resource group's id."""
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}"


def part_id(vm: Vm, kind: str) -> str:
    """The id of its interface, address or disk."""
    provider = "Compute" if kind == "disks" else "Network"
    return f"{group_id(vm.group)}/providers/Microsoft.{provider}/{kind}/{vm.name}-{PARTS[kind.lower()]}"


def model_view(vm: Vm) -> Json:
    """The machine as it was asked for, with what Azure adds; custom data is never told."""
    asked = vm.body["properties"]
    system = {key: value for key, value in asked.get("osProfile", {}).items() if key != "customData"}
    return {
        "name": vm.name,
        "id": vm_id(vm),
        "type": "Microsoft.Compute/virtualMachines",
        "location": vm.region,
        "tags": dict(vm.body.get("tags") or {}),
        **({"zones": vm.body["zones"]} if vm.body.get("zones") else {}),
        "properties": {
            **asked,
            "osProfile": system,
            "networkProfile": {"networkInterfaces": [{"id": part_id(vm, "networkInterfaces")}]},
            "provisioningState": vm.state()[0],
            "timeCreated": utc(vm.made_at),
        },
    }


def status_view(vm: Vm) -> Json:
    """The machine as a list of run states has it: neither tags nor what was asked for."""
    return {
        "name": vm.name,
        # Such lists spell groups in capitals.
        "id": vm_id(vm).replace(f"/resourceGroups/{vm.group}/", f"/resourceGroups/{vm.group.upper()}/"),
        "type": "Microsoft.Compute/virtualMachines",
        "location": vm.region,
        "properties": {"provisioningState": vm.state()[0], "instanceView": instance_view(vm)},
    }


def instance_view(vm: Vm) -> Json:
    """How it runs."""
    provisioning, power = vm.state()
    since = vm.machine.state_since if vm.machine and vm.machine.state_since else vm.made_at
    code = f"ProvisioningState/{provisioning.lower()}"
    status: Json = {"level": "Info", "displayStatus": f"Provisioning {provisioning.lower()}", "time": utc(since)}
    if vm.failed is not None:
        code = f"{code}/{vm.failed.code}"
        status |= {"level": "Error", "message": vm.failed.message}
    statuses = [{"code": code, **status}]
    if power:
        display = _DISPLAY.get(power, f"VM {power}")
        statuses.append({"code": f"PowerState/{power}", "level": "Info", "displayStatus": display})
    return {"statuses": statuses}


def interface_view(vm: Vm) -> Json:
    """Its network interface, the address put in as `$expand` asks."""
    place: Json = {"privateIPAddress": private_ip(vm), "primary": True}
    place["publicIPAddress"] = {
        "id": part_id(vm, "publicIPAddresses"),
        "properties": {"ipAddress": f"20.0.{vm.serial // 250 % 250}.{vm.serial % 250 + 1}"},
    }
    properties = {"ipConfigurations": [{"name": f"{vm.name}-place", "properties": place}]}
    return {
        "name": f"{vm.name}-nic",
        "id": part_id(vm, "networkInterfaces"),
        "location": vm.region,
        "properties": properties,
    }


def private_ip(vm: Vm) -> str:
    """Its address in its subnet; addresses come round again."""
    return f"10.1.{vm.serial // 250 % 250}.{vm.serial % 250 + 4}"


def utc(at: datetime) -> str:
    """A time as Azure writes it, with seven digits of a second."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}0Z"


PUBLISHED = {
    ("canonical", "ubuntu-24_04-lts", "server"): ("24.04.202611100", "x64", 30),
    ("canonical", "ubuntu-24_04-lts", "server-arm64"): ("24.04.202611100", "Arm64", 30),
    ("microsoft-dsvm", "ubuntu-hpc", "2204"): ("22.04.2026102001", "x64", 64),
}
"""Images of the marketplace: version, architecture, size in GB."""


def sells(region: str, zone: str, name: str) -> bool:
    """Tell whether the zone has the type."""
    return name in facts.KINDS and zone in facts.ZONES.get(region, ())
