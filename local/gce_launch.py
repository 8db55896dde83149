"""instances.insert: every check that Compute Engine makes before it accepts a launch, and the sale."""

from __future__ import annotations

from typing import Any

from local import gce_images
from local.gce_operations import STOCKOUT, OperationError
from local.gcp_facts import KINDS, PROVIDER, ZONES
from local.json_face import Json, RestError
from local.market import Market
from local.market_model import LaunchRequest, MarketError, NoCapacityError, PoolKey, Purchase, QuotaExceededError

METADATA_LIMIT_BYTES = 262144
_STARTUP_SCRIPT = "startup-script"


def read(zone: str, resource: Json) -> LaunchRequest:
    """The launch that a resource describes.

    Raises:
        RestError: as Compute Engine refuses it.
    """
    name = str(resource.get("name", ""))
    kind_name = _last(resource.get("machineType"))
    kind = KINDS.get(kind_name)
    if kind is None:
        raise RestError(
            400,
            "invalid",
            f"Invalid value for field 'resource.machineType': '{resource.get('machineType')}'. Machine type with name "
            f"'{kind_name}' does not exist in zone '{zone}'.",
        )
    scheduling = resource.get("scheduling") or {}
    spot = scheduling.get("provisioningModel") == "SPOT"
    _check_scheduling(scheduling, spot=spot, gpus=kind.gpus or len(resource.get("guestAccelerators") or []))
    image = _checked_image(resource, kind.arch)
    metadata = _metadata(resource)
    region = zone.rpartition("-")[0]
    return LaunchRequest(
        pool=PoolKey(PROVIDER, region, zone, kind_name, Purchase.SPOT if spot else Purchase.ON_DEMAND),
        shape=kind.shape,
        fingerprint=name,
        stop_on_shutdown=True,
        user_data=metadata.get(_STARTUP_SCRIPT, "").encode(),
        tags={str(key): str(value) for key, value in (resource.get("labels") or {}).items()},
        details=_details(resource, image, scheduling),
        allocated_id=name,
    )


def sell(market: Market, request: LaunchRequest) -> OperationError | None:
    """Make the machine; the error that its operation ends with when the market refuses."""
    pool = request.pool
    siblings = tuple(
        PoolKey(pool.provider, pool.region, zone, pool.instance_type, pool.purchase)
        for zone in ZONES[pool.region]
        if zone != pool.zone
    )
    try:
        market.launch(request, siblings)
    except MarketError as error:
        return _refusal(error)
    return None


def _refusal(error: MarketError) -> OperationError:
    match error:
        case NoCapacityError():
            zone, kind = error.key.zone, error.key.instance_type
            elsewhere = (
                f"Consider trying your request in the {', '.join(error.elsewhere)} zone(s), which currently has "
                "capacity to accommodate your request. "
                if error.elsewhere
                else ""
            )
            words = f"A {kind} VM instance is currently unavailable in the {zone} zone. {elsewhere}"
            return OperationError(STOCKOUT, f"{words}Alternatively, you can try your request again at a later time.")
        case QuotaExceededError():
            quota = "PREEMPTIBLE_CPUS" if error.key.purchase is Purchase.SPOT else "CPUS"
            limit = f"Limit: {error.limit_vcpus}.0 in region {error.key.region}."
            return OperationError("QUOTA_EXCEEDED", f"Quota '{quota}' exceeded.  {limit}")
        case _:
            return OperationError("INTERNAL_ERROR", f"Internal error: {error}")


# Any: JSON as the client wrote it.
def _check_scheduling(scheduling: dict[str, Any], *, spot: bool, gpus: int) -> None:
    if spot and scheduling.get("automaticRestart"):
        raise RestError(400, "invalid", "Scheduling must have automatic restart be false when preemptible is true.")
    if (spot or gpus) and scheduling.get("onHostMaintenance") != "TERMINATE":
        raise RestError(400, "invalid", "Instances with guest accelerators or of SPOT do not support live migration.")
    if scheduling.get("maxRunDuration") and not scheduling.get("instanceTerminationAction"):
        raise RestError(400, "invalid", "You must specify the instance termination action with a maximum run duration.")


def _checked_image(resource: Json, arch: str) -> gce_images.PublicImage:
    disks = resource.get("disks") or []
    boot: dict[str, Any] = next((disk for disk in disks if disk.get("boot")), {})
    wanted = boot.get("initializeParams") or {}
    if not wanted.get("sourceImage"):
        raise RestError(400, "invalid", "Invalid value for field 'resource.disks': ''. A boot disk must be specified.")
    image = gce_images.by_path(str(wanted["sourceImage"]))
    if image.architecture != arch:
        raise RestError(400, "invalid", f"The image {image.path} is not compatible with the machine type: {arch}.")
    if int(wanted.get("diskSizeGb") or image.size_gb) < image.size_gb:
        raise RestError(
            400,
            "invalid",
            f"Invalid value for field 'resource.disks[0].initializeParams.diskSizeGb': '{wanted['diskSizeGb']}'. "
            f"Requested disk size cannot be smaller than the image size ({image.size_gb} GB)",
        )
    return image


def _metadata(resource: Json) -> dict[str, str]:
    items = (resource.get("metadata") or {}).get("items") or []
    for item in items:
        if len(str(item.get("value", "")).encode()) > METADATA_LIMIT_BYTES:
            raise RestError(
                400,
                "invalid",
                f"Value for field 'resource.metadata.items[{item['key']}].value' is too large: maximum size "
                f"{METADATA_LIMIT_BYTES} character(s).",
            )
    return {str(item["key"]): str(item.get("value", "")) for item in items}


def _details(resource: Json, image: gce_images.PublicImage, scheduling: dict[str, Any]) -> dict[str, str]:
    interfaces = resource.get("networkInterfaces") or [{}]
    accounts = resource.get("serviceAccounts") or [{}]
    gpus = resource.get("guestAccelerators") or [{}]
    return {
        "image": image.path,
        "network": str(interfaces[0].get("network") or interfaces[0].get("subnetwork") or ""),
        "external_ip": "yes" if interfaces[0].get("accessConfigs") else "",
        "service_account": str(accounts[0].get("email", "")),
        "termination_action": str(scheduling.get("instanceTerminationAction", "STOP")),
        "accelerator": f"{_last(gpus[0].get('acceleratorType'))} {gpus[0].get('acceleratorCount', '')}".strip(),
    }


def _last(path: object) -> str:
    return str(path or "").rpartition("/")[2]
