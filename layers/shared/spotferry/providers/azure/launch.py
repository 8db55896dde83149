"""The PUT that makes a machine with its disk, interface and address: what `prepare` fixes of it, and its body; pure."""

import base64
from collections.abc import Mapping
from decimal import ROUND_FLOOR, Decimal

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.azure.images import Image
from spotferry.providers.azure.names import checked_name, tags
from spotferry.types.errors import LaunchRefused
from spotferry.types.instance import Attempt, LaunchRequest

USER_DATA_LIMIT_BYTES = 65_535
"""Azure's limit of custom data, before base64."""
NETWORK_API_VERSION = "2022-11-01"
"""Of Microsoft.Network, for the interface that is made together with the machine."""
DISK_TYPE = "StandardSSD_LRS"
"""The disk by which the price list's GiB is priced."""
ADMIN = "spotferry"
NOBODYS_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGUhra4f2yH0fMlIaC0PZEu6f358c8/osStlwNNI6D2E nobody"
"""Azure makes no Linux machine without a key or a password. Nobody has the private half of this one, the
digest of a sentence."""
_PRICE_STEP = Decimal("0.00001")
"""Azure takes prices with five decimals."""
_PRICE_OF_THE_DAY = -1
"""As a maximum price: never above on demand, and no eviction for the price."""
_REQUIRED = ("resource_group", "subnet_id")
_OPTIONAL = ("identity_id", "public_ip")


def network(settings: RegionSettings, zone: str) -> dict[str, str]:
    """Where the machine goes, from the region's settings.

    Args:
        settings: `resource_group` and `subnet_id` are needed; `identity_id` is the machines' user-assigned identity,
            `public_ip` "no" where the subnet has a way out of its own.
        zone: "1" to "3"; "" in a region without zones.

    Raises:
        LaunchRefused: the settings lack something.
    """
    missing = [key for key in _REQUIRED if not settings.network.get(key)]
    if missing:
        message = f"the settings of {settings.region} lack {' and '.join(missing)}: Azure has no default network"
        raise LaunchRefused("NoNetwork", message, settings.region)
    wanted = {key: settings.network.get(key, "") for key in (*_REQUIRED, *_OPTIONAL)}
    return {key: value for key, value in {**wanted, "zone": zone}.items() if value}


def fixed_request(
    image: Image, disk_gb: int, where: Mapping[str, str], wanted: Mapping[str, str], *, own_image: bool
) -> LaunchRequest:
    """The request as it is stored before Azure is asked."""
    plan = {"image_plan": image.plan} if image.plan else {}
    return LaunchRequest(
        image_id=image.image_id,
        disk_gb=disk_gb,
        network={**where, **plan},
        tags=tags(wanted),
        agent_sha256="",
        broker_url="",
        own_image=own_image,
    )


def machine(attempt: Attempt, launch: LaunchRequest, user_data: str) -> dict[str, object]:
    """The body of the PUT: the same for the same attempt. All that it makes is deleted with the machine.

    Raises:
        LaunchRefused: Azure would never take the user data or the name.
    """
    size = len(user_data.encode())
    if size > USER_DATA_LIMIT_BYTES:
        message = f"the user data has {size} bytes, Azure takes {USER_DATA_LIMIT_BYTES}"
        raise LaunchRefused("InvalidCustomData", message, attempt.region, scope="none")
    name, where = checked_name(attempt), launch.network
    properties: dict[str, object] = {
        "hardwareProfile": {"vmSize": attempt.instance_type},
        "storageProfile": {"imageReference": _image(launch.image_id), "osDisk": _disk(name, launch.disk_gb)},
        "osProfile": _system(name, user_data),
        "networkProfile": {
            "networkApiVersion": NETWORK_API_VERSION,
            "networkInterfaceConfigurations": [_interface(name, where)],
        },
        **(_spot(launch) if attempt.market == "spot" else {}),
    }
    body: dict[str, object] = {"location": attempt.region, "tags": tags(launch.tags), "properties": properties}
    if "zone" in where:
        body["zones"] = [where["zone"]]
    if "identity_id" in where:
        body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": {where["identity_id"]: {}}}
    if "image_plan" in where:
        body["plan"] = dict(zip(("publisher", "product", "name"), where["image_plan"].split(":"), strict=True))
    return body


def _image(image_id: str) -> dict[str, str]:
    if image_id.startswith("/"):
        return {"id": image_id}
    return dict(zip(("publisher", "offer", "sku", "version"), image_id.split(":"), strict=True))


def _disk(name: str, size_gb: int) -> dict[str, object]:
    return {
        "name": f"{name}-disk",
        "createOption": "FromImage",
        "deleteOption": "Delete",
        "caching": "ReadWrite",
        "diskSizeGB": size_gb,
        "managedDisk": {"storageAccountType": DISK_TYPE},
    }


def _system(name: str, user_data: str) -> dict[str, object]:
    key = {"path": f"/home/{ADMIN}/.ssh/authorized_keys", "keyData": NOBODYS_KEY}
    return {
        "computerName": name,
        "adminUsername": ADMIN,
        "customData": base64.b64encode(user_data.encode()).decode("ascii"),
        "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}},
    }


def _interface(name: str, where: Mapping[str, str]) -> dict[str, object]:
    # A standard address lets nothing in unless a network security group says so.
    address = {
        "name": f"{name}-ip",
        "sku": {"name": "Standard", "tier": "Regional"},
        "properties": {"deleteOption": "Delete", "publicIPAllocationMethod": "Static"},
    }
    place: dict[str, object] = {"primary": True, "subnet": {"id": where["subnet_id"]}}
    if where.get("public_ip") != "no":
        place["publicIPAddressConfiguration"] = address
    return {
        "name": f"{name}-nic",
        "properties": {
            "primary": True,
            "deleteOption": "Delete",
            "ipConfigurations": [{"name": f"{name}-place", "properties": place}],
        },
    }


def _spot(launch: LaunchRequest) -> dict[str, object]:
    cap = launch.max_price_usd_hour
    price = _PRICE_OF_THE_DAY if cap is None else float(max(cap.quantize(_PRICE_STEP, ROUND_FLOOR), _PRICE_STEP))
    return {"priority": "Spot", "evictionPolicy": "Delete", "billingProfile": {"maxPrice": price}}
