"""What belongs to machines on Azure: interfaces, addresses and disks, with their machines or left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from local.arm_model import PARTS, Vm, interface_view
from local.arm_wire import Answer, Request, not_found
from local.json_face import RestError


class Parts:
    """Keeps what was left behind; what belongs to a machine that is there follows from that machine.

    The face's lock guards it.
    """

    def __init__(self, vms: Callable[[], Iterable[Vm]]) -> None:
        self._vms = vms
        self._left: dict[tuple[str, str, str], Vm] = {}

    def leave(self, vm: Vm) -> None:
        """Have the machine's parts stay when it goes."""
        self._left |= {(vm.group.lower(), kind, f"{vm.name}-{end}".lower()): vm for kind, end in PARTS.items()}

    def listed(self, request: Request) -> Answer:
        """The names of a group's parts of one kind."""
        return Answer(200, {"value": [{"name": name} for name in sorted(self._present(request.parts))]})

    def shown(self, request: Request) -> Answer:
        """One part."""
        name, kind = request.parts["name"].lower(), request.parts["kind"]
        vm = self._present(request.parts).get(name)
        if vm is None:
            raise not_found(f"{kind}/{name}", request.parts["group"])
        return Answer(200, interface_view(vm) if kind.lower() == "networkinterfaces" else {"name": name})

    def delete(self, request: Request) -> Answer:
        """End a part that nothing uses."""
        group, kind, name = (request.parts[part].lower() for part in ("group", "kind", "name"))
        vm = self._present(request.parts).get(name)
        if vm is None:
            return Answer(204)
        if (group, kind, name) not in self._left:
            raise RestError(409, "InUse", f"{name} is used by the machine {vm.name}.")
        interface = (group, "networkinterfaces", f"{vm.name}-nic".lower())
        if kind == "publicipaddresses" and interface in self._left:
            raise RestError(409, "PublicIPAddressCannotBeDeleted", f"{name} is used by {interface[2]}.")
        del self._left[group, kind, name]
        return Answer(200)

    def _present(self, parts: Mapping[str, str]) -> dict[str, Vm]:
        """The group's parts of one kind, by name."""
        group, kind = parts["group"].lower(), parts["kind"].lower()
        mine = [vm for vm in self._vms() if vm.there and vm.group.lower() == group]
        left = {name: vm for (g, k, name), vm in self._left.items() if (g, k) == (group, kind)}
        return {**left, **{f"{vm.name}-{PARTS[kind]}".lower(): vm for vm in mine}}
