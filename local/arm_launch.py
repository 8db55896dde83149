"""A PUT of a machine on Azure's resource manager: what is wrong with it, and what the market makes of it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from local import azure_facts as facts
from local.arm_model import PUBLISHED, Failed, sells
from local.json_face import Json, RestError
from local.market_model import (
    LaunchRequest,
    MarketError,
    NoCapacityError,
    PoolKey,
    PriceTooLowError,
    Purchase,
    QuotaExceededError,
)

_CUSTOM_DATA_LIMIT_BYTES = 65_535
_TAGS_LIMIT, _TAG_VALUE_LIMIT = 50, 256
_NOT_IN_TAG_NAMES = re.compile(r"[<>%&\\?/]")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}[A-Za-z0-9])?")
_NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class Wish:
    """A machine that may be asked of the market, and its pools in the region's other zones."""

    request: LaunchRequest
    siblings: tuple[PoolKey, ...]


def wish_of(group: str, name: str, body: Json) -> Wish:
    """What the body asks for, of a resource group.

    Raises:
        RestError: Azure would refuse it.
    """
    properties = _part(body, "properties")
    region, zone = str(body.get("location", "")), str((body.get("zones") or [""])[0])
    size = str(_part(properties, "hardwareProfile").get("vmSize", ""))
    if not _NAME.fullmatch(name):
        raise RestError(400, "InvalidParameter", f"The entity name '{name}' is invalid according to its rule.")
    _check_place(region, zone, size)
    _check_tags(body.get("tags") or {})
    _check_network(_part(properties, "networkProfile"))
    image = _image(_part(properties, "storageProfile"), size)
    purchase, cap = _market(properties, size)
    key = PoolKey(facts.PROVIDER, region, zone, size, purchase)
    zones = [other for other in facts.ZONES[region] if other != zone] if zone else []
    request = LaunchRequest(
        pool=key,
        shape=facts.KINDS[size].shape,
        fingerprint=name,
        max_price_usd_hour=cap,
        # A machine that switches itself off is stopped, keeps its place and goes on costing.
        stop_on_shutdown=True,
        bills_when_stopped=True,
        user_data=_custom_data(_part(properties, "osProfile")),
        tags={str(k): str(v) for k, v in (body.get("tags") or {}).items()},
        details={"image_id": image, "group": group},
        allocated_id=name,
    )
    return Wish(request, tuple(PoolKey(facts.PROVIDER, region, other, size, purchase) for other in zones))


def refusal(error: MarketError) -> RestError | Failed:
    """The market's no: at once where Azure knows at once, else as the end of an accepted operation."""
    match error:
        case QuotaExceededError():
            return _quota(error)
        case PriceTooLowError():
            words = f"The current spot price {error.price} is greater than the provided max price {error.offered}."
            return RestError(409, "SpotPriceGreaterThanProvidedMaxPrice", words)
        case NoCapacityError():
            return _no_capacity(error)
    return RestError(409, "OperationNotAllowed", str(error))


def _no_capacity(error: NoCapacityError) -> RestError | Failed:
    key = error.key
    words = f"Allocation failed. We do not have sufficient capacity for the requested VM size {key.instance_type}"
    if key.zone and error.elsewhere:
        return Failed("ZonalAllocationFailed", f"{words} in zone {key.zone}.")
    if not key.zone:
        return Failed("AllocationFailed", f"{words} in this region.")
    words = (
        f"The requested VM size for resource 'Following SKUs have failed for Capacity Restrictions: "
        f"{key.instance_type}' is currently not available in location '{key.region}'. Please try another size or "
        "deploy to a different location or different zone."
    )
    return RestError(409, "SkuNotAvailable", words)


def _quota(error: QuotaExceededError) -> RestError:
    family = f"standard{facts.KINDS[error.key.instance_type].series.replace(' ', '')}Family Cores"
    quota = "LowPriorityCores" if error.key.purchase is Purchase.SPOT else family
    words = (
        f"Operation could not be completed as it results in exceeding approved {quota} quota. Additional details - "
        f"Deployment Model: Resource Manager, Location: {error.key.region}, Current Limit: {error.limit_vcpus}, "
        f"Current Usage: {error.limit_vcpus}."
    )
    return RestError(409, "OperationNotAllowed", words)


def _check_place(region: str, zone: str, size: str) -> None:
    if region not in facts.ZONES:
        raise RestError(400, "LocationNotAvailableForResourceType", f"The provided location '{region}' is not there.")
    if size not in facts.KINDS:
        words = f"The value {size} provided for the VM size is not valid. The valid sizes in the current region are: "
        raise RestError(400, "InvalidParameter", words + ", ".join(sorted(facts.KINDS)))
    # A machine without a zone is placed by the region; where it has zones, the first serves here.
    if not sells(region, zone, size) and zone:
        words = f"The availability zone '{zone}' is not available for {size} in location '{region}'."
        raise RestError(400, "InvalidParameter", words)


def _check_tags(tags: Mapping[str, object]) -> None:
    if len(tags) > _TAGS_LIMIT:
        raise RestError(400, "TooManyTags", f"{len(tags)} tags are more than {_TAGS_LIMIT}.")
    for name, value in tags.items():
        if _NOT_IN_TAG_NAMES.search(name):
            raise RestError(400, "InvalidTagNameCharacters", f"The tag name '{name}' has reserved characters.")
        if len(str(value)) > _TAG_VALUE_LIMIT:
            raise RestError(400, "TagValueTooLong", f"The value of the tag '{name}' is too long.")


def _check_network(profile: Json) -> None:
    interfaces = profile.get("networkInterfaceConfigurations") or []
    if not interfaces or not profile.get("networkApiVersion"):
        words = "networkInterfaceConfigurations and networkApiVersion are wanted."
        raise RestError(400, "InvalidParameter", words)
    places = _part(interfaces[0], "properties").get("ipConfigurations") or [{}]
    subnet = str(_part(_part(places[0], "properties"), "subnet").get("id", ""))
    if "/subnets/" not in subnet:
        raise RestError(400, "InvalidResourceReference", f"Resource {subnet} referenced by the machine was not found.")


def _image(storage: Json, size: str) -> str:
    reference, disk = _part(storage, "imageReference"), _part(storage, "osDisk")
    named = tuple(str(reference.get(part, "")).lower() for part in ("publisher", "offer", "sku"))
    known = PUBLISHED.get((named[0], named[1], named[2]))
    if known is None or reference.get("version") not in {known[0], "latest"}:
        words = f"The platform image '{':'.join(named)}:{reference.get('version')}' is not available."
        raise RestError(404, "PlatformImageNotFound", words)
    if known[1].lower() != facts.KINDS[size].arch.lower():
        words = f"The image's architecture {known[1]} is not supported by the VM size {size}."
        raise RestError(400, "BadRequest", words)
    if int(disk.get("diskSizeGB") or known[2]) < known[2]:
        words = f"The specified disk size {disk['diskSizeGB']} GB is smaller than the image's {known[2]} GB."
        raise RestError(400, "ResizeDiskError", words)
    return f"{':'.join(named)}:{known[0]}"


def _market(properties: Json, size: str) -> tuple[Purchase, Decimal | None]:
    price = Decimal(str(_part(properties, "billingProfile").get("maxPrice", _NO_LIMIT)))
    if properties.get("priority", "Regular") != "Spot":
        if price != _NO_LIMIT:
            words = "Max price is supported only for Azure Spot virtual machines."
            raise RestError(400, "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines", words)
        return Purchase.ON_DEMAND, None
    if not facts.KINDS[size].spot:
        words = f"Azure Spot is not supported for the VM size {size}."
        raise RestError(409, "AzureSpotIsNotSupportedForThisVMSize", words)
    if price != _NO_LIMIT and price <= 0:
        raise RestError(400, "MaxPriceValueInvalid", f"The max price {price} is neither -1 nor above zero.")
    return Purchase.SPOT, None if price == _NO_LIMIT else price


def _custom_data(system: Json) -> bytes:
    if not system.get("adminUsername") or not system.get("computerName"):
        raise RestError(400, "InvalidParameter", "Required parameter 'osProfile' is missing (null).")
    try:
        data = base64.b64decode(str(system.get("customData", "")), validate=True)
    except binascii.Error as error:
        raise RestError(400, "InvalidParameter", "Custom data must be in Base64 encoded format.") from error
    if len(data) > _CUSTOM_DATA_LIMIT_BYTES:
        raise RestError(400, "InvalidParameter", "Custom data is too long.")
    return data


def _part(body: Json, name: str) -> Json:
    part = body.get(name) or {}
    if not isinstance(part, dict):
        raise RestError(400, "InvalidRequestContent", f"'{name}' is no object.")
    return part
