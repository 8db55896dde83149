"""The launch call: what `prepare` fixes of it, and how it is put together; pure."""

import hashlib
import re
import uuid
from collections.abc import Mapping
from datetime import timedelta

from google.cloud.compute_v1 import (
    AcceleratorConfig,
    AccessConfig,
    AttachedDisk,
    AttachedDiskInitializeParams,
    Duration,
    Instance,
    Items,
    Metadata,
    NetworkInterface,
    Scheduling,
    ServiceAccount,
    Tags,
)

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.gcp.images import Image
from spotferry.providers.gcp.labels import INSTANCE, labels
from spotferry.providers.gcp.pricing_gpus import GPU_MODELS
from spotferry.providers.gcp.pricing_machines import boots_from_hyperdisk
from spotferry.types.errors import LaunchRefused, TryNextZone
from spotferry.types.instance import Attempt, LaunchRequest

USER_DATA_LIMIT_BYTES = 256 * 1024
"""Compute Engine's limit of one value of a machine's metadata."""
RUN_LIMIT = timedelta(days=30)
"""How long a machine may run before Google deletes it: the last resort against one that everybody forgot."""
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_REQUESTS = uuid.UUID("5b1c9d0e-6f5b-4f0c-9d43-0d5a6c8f3e21")
_SETTINGS = ("network", "subnetwork", "service_account", "network_tags", "external_ip")


def network(settings: RegionSettings, zone: str) -> dict[str, str]:
    """Where the machine goes, from the region's settings.

    Args:
        settings: `network` and `subnetwork` (paths, or names in the broker's project; the default network where neither
            is set), `external_ip` ("no" for a subnetwork whose machines reach out through Cloud NAT), `network_tags`
            (separated by commas, for the firewall), `service_account` (none where it is missing).
        zone: the zone as offers have it.

    Raises:
        TryNextZone: the offer names no zone.
    """
    if not zone:
        raise TryNextZone("NoZone", "the offer names no zone, and a machine must be in one", settings.region)
    return {"zone": zone, **{key: settings.network[key] for key in _SETTINGS if settings.network.get(key)}}


def fixed_request(
    image: Image, disk_gb: int, where: Mapping[str, str], tags: Mapping[str, str], *, own_image: bool
) -> LaunchRequest:
    """The request as it is stored before Google is asked."""
    return LaunchRequest(
        image_id=image.path,
        disk_gb=disk_gb,
        network=where,
        tags=tags,
        agent_sha256="",
        broker_url="",
        own_image=own_image,
    )


def machine_name(instance_id: str) -> str:
    """The name of the attempt's machine: our id of it, or where that is no name, one made of it."""
    if _NAME.fullmatch(instance_id):
        return instance_id
    return f"i-{hashlib.sha256(instance_id.encode()).hexdigest()[:40]}"


def request_id(instance_id: str) -> str:
    """The launch's idempotency token: Google answers the operation that it began for the same one."""
    return str(uuid.uuid5(_REQUESTS, instance_id))


def check(attempt: Attempt, launch: LaunchRequest, user_data: str) -> None:
    """What Google would refuse, or does not look at.

    Raises:
        LaunchRefused: the user data is larger than Google takes, or the GPU is not one that it has.
        TryNextZone: the price passed the cap; Google itself takes no cap.
    """
    size = len(user_data.encode())
    if size > USER_DATA_LIMIT_BYTES:
        message = f"the user data has {size} bytes, Compute Engine takes {USER_DATA_LIMIT_BYTES}"
        raise LaunchRefused("UserDataTooLarge", message, attempt.region, scope="none")
    cap = launch.max_price_usd_hour
    if attempt.market == "spot" and cap is not None and attempt.price > cap:
        message = f"the price of ${attempt.price:f} an hour is above the cap of ${cap:f}"
        raise TryNextZone("PriceAboveCap", message, attempt.region)
    if _hosts_gpus(attempt) and attempt.accelerator_name not in _ACCELERATORS:
        message = f"no accelerator of Compute Engine is known by the name {attempt.accelerator_name}"
        raise LaunchRefused("UnknownGpu", message, attempt.region, scope="pool", ban_for=timedelta(days=1))


def machine(attempt: Attempt, launch: LaunchRequest, user_data: str) -> Instance:
    """The machine to make: the same for the same attempt, so that its request may be repeated."""
    where = launch.network
    zone = where["zone"]
    made = Instance(
        name=machine_name(attempt.cedana_id),
        machine_type=f"zones/{zone}/machineTypes/{attempt.instance_type}",
        description=launch.tags.get("Name", ""),
        labels={**labels(launch.tags), INSTANCE: machine_name(attempt.cedana_id)},
        disks=[_boot_disk(attempt, launch, zone)],
        network_interfaces=[_interface(where, attempt.region)],
        metadata=Metadata(items=[Items(key="startup-script", value=user_data)]),
        scheduling=_scheduling(attempt),
    )
    if tags := [tag.strip() for tag in where.get("network_tags", "").split(",") if tag.strip()]:
        made.tags = Tags(items=tags)
    if account := where.get("service_account"):
        scope = "https://www.googleapis.com/auth/cloud-platform"
        made.service_accounts = [ServiceAccount(email=account, scopes=[scope])]
    if _hosts_gpus(attempt):
        kind = f"zones/{zone}/acceleratorTypes/{_ACCELERATORS[attempt.accelerator_name]}"
        made.guest_accelerators = [
            AcceleratorConfig(accelerator_type=kind, accelerator_count=attempt.accelerator_count)
        ]
    return made


_ACCELERATORS = {model.name: name for name, model in GPU_MODELS.items()}
"""What offers call a GPU to what Compute Engine does."""


def _hosts_gpus(attempt: Attempt) -> bool:
    """N1 machines are given their GPUs; every other type comes with its own."""
    return attempt.accelerator_count > 0 and attempt.instance_type.startswith("n1-")


def _boot_disk(attempt: Attempt, launch: LaunchRequest, zone: str) -> AttachedDisk:
    kind = "hyperdisk-balanced" if boots_from_hyperdisk(attempt.instance_type) else "pd-balanced"
    return AttachedDisk(
        boot=True,
        auto_delete=True,
        initialize_params=AttachedDiskInitializeParams(
            source_image=launch.image_id,
            disk_size_gb=launch.disk_gb,
            disk_type=f"zones/{zone}/diskTypes/{kind}",
            labels=labels(launch.tags),
        ),
    )


def _interface(where: Mapping[str, str], region: str) -> NetworkInterface:
    interface = NetworkInterface()
    if subnetwork := where.get("subnetwork"):
        interface.subnetwork = subnetwork if "/" in subnetwork else f"regions/{region}/subnetworks/{subnetwork}"
    if chosen := where.get("network", "" if subnetwork else "default"):
        interface.network = chosen if "/" in chosen else f"global/networks/{chosen}"
    if where.get("external_ip", "yes") != "no":
        interface.access_configs = [AccessConfig(name="External NAT", type_="ONE_TO_ONE_NAT")]
    return interface


def _scheduling(attempt: Attempt) -> Scheduling:
    """Deleted, not stopped, at the end of its time and when it is taken back; and never started again."""
    spot = attempt.market == "spot"
    return Scheduling(
        provisioning_model="SPOT" if spot else "STANDARD",
        instance_termination_action="DELETE",
        max_run_duration=Duration(seconds=int(RUN_LIMIT.total_seconds())),
        automatic_restart=False,
        on_host_maintenance="TERMINATE" if spot or attempt.accelerator_count else "MIGRATE",
    )
