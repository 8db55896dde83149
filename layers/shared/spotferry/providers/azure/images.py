"""Which image a machine boots: the job's own, the region's override, or the newest of Canonical's or Microsoft's."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from azure.core.rest import HttpRequest

from spotferry.ports.cloud import Clock, RegionSettings, image_key
from spotferry.providers.azure.api import Calls, Connection
from spotferry.providers.azure.errors import Failure, call_error
from spotferry.providers.learned import Learned
from spotferry.providers.verdict import image_refused
from spotferry.types.errors import LaunchRefused, ProviderError
from spotferry.types.instance import Offer

VENDOR_IMAGES = {
    ("x86_64", False): "Canonical:ubuntu-24_04-lts:server:latest",
    ("arm64", False): "Canonical:ubuntu-24_04-lts:server-arm64:latest",
    ("x86_64", True): "microsoft-dsvm:ubuntu-hpc:2204:latest",
}
"""By (arch, with GPU). Microsoft's image has NVIDIA's drivers for computing; there is none with a GPU for arm64."""

SIZES_GB = {"ubuntu-24_04-lts": 30, "ubuntu-hpc": 64}
"""What an offer's images hold, where Azure does not tell."""
_USUAL_GB = 30

_refused = partial(image_refused, reach="region")

_URN = re.compile(r"[^:/\s]+:[^:/\s]+:[^:/\s]+:[^:/\s]+")
_RESOURCE = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/"
    r"(?:images/[^/]+|galleries/[^/]+/images/[^/]+/versions/[^/]+)",
    re.IGNORECASE,
)
_IMAGES_VERSION, _GALLERIES_VERSION = "2024-07-01", "2023-07-03"
_OTHER_DRIVERS = re.compile(r"Standard_(?:NV|NG)", re.IGNORECASE)
"""Types whose GPUs are made for graphics: they want drivers that the vendor's image has not."""
_ARCHES = {"x64": "x86_64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Image:
    """What a launch must know of an image.

    Attributes:
        image_id: publisher:offer:sku:version, the version exact; or a resource id.
        arch: "" where Azure does not tell.
        size_gb: what its disk needs at least.
        plan: publisher:product:name of the purchase plan; "" for none.
    """

    image_id: str
    arch: str
    size_gb: int
    plan: str = ""


class Images:
    """Resolves images; keeps what it learned while it is fresh."""

    def __init__(self, clock: Clock) -> None:
        self._images: Learned[tuple[str, str], Image] = Learned(clock)

    def resolve(self, calls: Calls, settings: RegionSettings, offer: Offer, own: str) -> Image:
        """The image for the offer.

        Args:
            calls: to the offer's region.
            settings: of that region; its image override "arch/gpu" or "arch" beats the vendor's image.
            offer: the machine that will boot it.
            own: the job's own image; beats everything.

        Raises:
            LaunchRefused: there is no such image here, or it does not fit the machine.
            ProviderError: the question failed.
        """
        named = own or _chosen(settings, offer)
        image = self._images.get((calls.region, named), lambda: _look_up(calls, named, own=bool(own)))
        if image.arch and image.arch != offer.arch:
            message = f"the image {named} is for {image.arch}, the machine {offer.instance_type} is {offer.arch}"
            raise _refused("ImageArchitecture", message, calls.region, own=bool(own))
        return image


def _chosen(settings: RegionSettings, offer: Offer) -> str:
    with_gpu = offer.gpu_count > 0
    override = settings.image_for(offer.arch, with_gpu=with_gpu)
    if override:
        return override
    unfit = with_gpu and (offer.gpu_maker.upper() != "NVIDIA" or _OTHER_DRIVERS.match(offer.instance_type))
    named = VENDOR_IMAGES.get((offer.arch, with_gpu))
    if unfit or named is None:
        place = image_key(offer.arch, with_gpu=with_gpu)
        message = f"no vendor's image has the drivers of {offer.instance_type}: set the image {place} of {offer.region}"
        raise LaunchRefused("NoImage", message, offer.region, scope="size", ban_for=timedelta(hours=24))
    return named


def _look_up(calls: Calls, named: str, *, own: bool) -> Image:
    if _URN.fullmatch(named):
        return _published(calls, named, own=own)
    if _RESOURCE.fullmatch(named):
        return _resource(calls, named, own=own)
    message = f"{named!r} is no image of Azure: publisher:offer:sku:version is, or the resource id of an image or of an"
    raise _refused("ImageNotFound", f"{message} image's version in a gallery", calls.region, own=own)


def _published(calls: Calls, urn: str, *, own: bool) -> Image:
    """An image of the marketplace, its version made exact."""
    publisher, offer, sku, version = urn.split(":")
    if version.lower() == "latest":
        version = _newest(calls, urn, own=own)
    answer = _asked(
        calls,
        urn,
        lambda c: c.compute.virtual_machine_images.get(calls.region, publisher, offer, sku, version).as_dict(),
        own=own,
    )
    told = answer.get("properties") or {}
    plan = told.get("plan") or {}
    return Image(
        image_id=f"{publisher}:{offer}:{sku}:{version}",
        arch=_ARCHES.get(str(told.get("architecture", "")).lower(), ""),
        size_gb=_size_gb(told.get("osDiskImage") or {}) or SIZES_GB.get(offer.lower(), _USUAL_GB),
        plan=f"{plan['publisher']}:{plan['product']}:{plan['name']}" if plan else "",
    )


def _newest(calls: Calls, urn: str, *, own: bool) -> str:
    publisher, offer, sku, _ = urn.split(":")

    # Any: a list of the SDK's models.
    def versions(connection: Connection) -> Any:
        listed = connection.compute.virtual_machine_images.list(
            calls.region, publisher, offer, sku, top=1, orderby="name desc"
        )
        return [str(row["name"]) for row in listed]

    found = _asked(calls, urn, versions, own=own)
    if not found:
        raise _refused("ImageNotFound", f"{urn} has no version in {calls.region}", calls.region, own=own)
    return str(found[0])


def _resource(calls: Calls, resource_id: str, *, own: bool) -> Image:
    """An image of our own: managed, or a version in a gallery."""
    in_gallery = "/galleries/" in resource_id.lower()
    told = _asked(calls, resource_id, lambda c: _get(c, resource_id, in_gallery=in_gallery), own=own)
    disk = _part(told, "properties", "storageProfile", "osDiskImage" if in_gallery else "osDisk")
    arch = ""
    if in_gallery:
        definition = resource_id.rsplit("/versions/", 1)[0]
        described = _asked(calls, resource_id, lambda c: _get(c, definition, in_gallery=True), own=own)
        arch = _ARCHES.get(str(_part(described, "properties").get("architecture") or "x64").lower(), "")
    return Image(resource_id, arch, _size_gb(disk) or _USUAL_GB)


# Any: JSON as Azure answers it.
def _get(connection: Connection, resource_id: str, *, in_gallery: bool) -> Any:
    version = _GALLERIES_VERSION if in_gallery else _IMAGES_VERSION
    return connection.send(HttpRequest("GET", resource_id, params={"api-version": version})).json()


# Any: as above.
def _asked(calls: Calls, named: str, question: Any, *, own: bool) -> Any:
    """The answer; that there is no such thing is the image's own refusal."""

    def refusal(failure: Failure, region: str) -> ProviderError:
        if failure.not_found or failure.code in {"InvalidParameter", "PlatformImageNotFound", "ArtifactNotFound"}:
            message = f"there is no image {named} in {region}: {failure.message}"
            return _refused(failure.code, message, region, own=own)
        return call_error(failure, region)

    return calls.ask(question, refusal)


# Any: as above.
def _part(told: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        told = (told or {}).get(name)
    return told or {}


# Any: as above.
def _size_gb(disk: Mapping[str, Any]) -> int:
    """Size of an image's disk as its kind tells it; 0 where it does not."""
    for key in ("sizeInGB", "sizeInGb", "diskSizeGB"):
        if disk.get(key):
            return int(disk[key])
    return -(-int(disk.get("sizeInBytes") or 0) // (1024**3))
