"""The launch: what `prepare` fixes of it, the names that stand for tags and tokens, and the call's body; pure."""

import re
from collections.abc import Mapping

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.paperspace.templates import Template
from spotferry.types.errors import LaunchRefused, TryNextType
from spotferry.types.instance import Attempt, LaunchRequest

USER_DATA_LIMIT_BYTES = 16 * 1024
"""Paperspace names no limit for a startup script; ours are below 12 KiB, and a longer one is a mistake."""
DISK_SIZES_GB = (50, 100, 250, 500, 1000, 2000)
"""What disks are sold as: docs.paperspace.com, block storage, 50 GB to 2 TB; a size between two is the larger one."""
_PREFIX = "spotferry"
_NAME = re.compile(r"[A-Za-z0-9-]{1,64}")


def name_of(deployment: str, cedana_id: str) -> str:
    """The name of an attempt's machine and of its script: machines have no tags, so it says whose they are."""
    return f"{_PREFIX}.{deployment}.{cedana_id}"


def cedana_id_of(deployment: str, name: str) -> str:
    """The attempt that a machine's name stands for; "" when it is not a machine of this deployment."""
    beginning = name_of(deployment, "")
    rest = name.removeprefix(beginning)
    return rest if name.startswith(beginning) and _NAME.fullmatch(rest) else ""


def api_region(region: str) -> str:
    """The region as the API writes it: the price list's AMS1 is its ams1."""
    return region.lower()


def listed_region(said: str) -> str:
    """The region as the price list has it: the API's ams1, or "Europe (AMS1)" as it also wrote it once."""
    inside = re.search(r"\(([^)]+)\)", said)
    return (inside[1] if inside else said).strip().upper()


def disk_size(template: Template, disk_gb: int, region: str) -> int:
    """Size of the disk as it is sold: at least as large as wanted, and as the template.

    Raises:
        TryNextType: no disk is sold so large.
    """
    wanted = max(disk_gb, template.size_gb)
    fitting = [size for size in DISK_SIZES_GB if size >= wanted]
    if not fitting:
        message = f"a disk of {wanted} GB was wanted, Paperspace's largest has {DISK_SIZES_GB[-1]} GB"
        raise TryNextType("DiskTooLarge", message, region, scope="pool")
    return fitting[0]


def fixed_request(
    template: Template, disk_gb: int, settings: RegionSettings, tags: Mapping[str, str], *, own_image: bool
) -> LaunchRequest:
    """The request as it is stored before Paperspace is asked; settings may name a private network (`network_id`)."""
    network_id = settings.network.get("network_id", "")
    return LaunchRequest(
        image_id=template.template_id,
        disk_gb=disk_gb,
        network={"network_id": network_id} if network_id else {},
        tags=dict(tags),
        agent_sha256="",
        broker_url="",
        own_image=own_image,
    )


def check(attempt: Attempt, user_data: str) -> None:
    """Refuse what Paperspace cannot be asked for.

    Raises:
        LaunchRefused: the user data is too long, the attempt's id is no name, or a spot machine is wanted.
    """
    size = len(user_data.encode())
    if size > USER_DATA_LIMIT_BYTES:
        message = f"the user data has {size} bytes, a startup script may have {USER_DATA_LIMIT_BYTES}"
        raise LaunchRefused("UserDataTooLong", message, attempt.region, scope="none")
    if not _NAME.fullmatch(attempt.cedana_id):
        message = f"{attempt.cedana_id!r} cannot name a machine: 1 to 64 letters, digits and hyphens are wanted"
        raise LaunchRefused("InvalidName", message, attempt.region, scope="none")
    if attempt.market != "on_demand":
        raise LaunchRefused("NoSpotMarket", "Paperspace sells machines on demand only", attempt.region)


def script(name: str, user_data: str) -> dict[str, object]:
    """The body of the call that makes the startup script; it runs as root, once, at the first boot."""
    return {"name": name, "script": user_data, "isRunOnce": True}


def machine(attempt: Attempt, request: LaunchRequest, name: str, script_id: str) -> dict[str, object]:
    """The body of the call that makes the machine."""
    body: dict[str, object] = {
        "name": name,
        "machineType": attempt.instance_type,
        "templateId": request.image_id,
        "diskSize": request.disk_gb,
        "region": api_region(attempt.region),
        # Without an address of its own a machine does not reach the internet. A dynamic one goes when the machine does.
        "publicIpType": "dynamic",
        "startupScriptId": script_id,
        "startOnCreate": True,
        "autoSnapshotEnabled": False,
        "emailPassword": False,
    }
    return body | ({"networkId": request.network["network_id"]} if "network_id" in request.network else {})
