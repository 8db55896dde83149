"""Which image a machine boots: the job's own, the region's override, or the newest of the image's vendor."""

import re
from dataclasses import dataclass

from google.cloud.compute_v1 import Image as VendorImage

from spotferry.ports.cloud import Clock, RegionSettings
from spotferry.providers.gcp.api import Calls
from spotferry.providers.learned import Learned
from spotferry.providers.verdict import image_refused
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Offer

PUBLIC_FAMILIES = {
    ("x86_64", False): "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64",
    ("arm64", False): "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-arm64",
    ("x86_64", True): (
        "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accelerator-2404-amd64-with-nvidia-580"
    ),
    ("arm64", True): (
        "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accelerator-2404-arm64-with-nvidia-580"
    ),
}
"""Families whose newest image is taken, by (arch, with GPU): Canonical's, and those with drivers for accelerators."""

_ARCHITECTURES = {"X86_64": "x86_64", "ARM64": "arm64"}
_LINK = re.compile(
    r"(?:https://[a-z.]+/compute/[a-z0-9]+/)?projects/(?P<project>[a-z0-9.:-]{1,100})/global/images/"
    r"(?P<family>family/)?(?P<name>[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)"
)
_NAME = re.compile(r"(?P<name>[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)")


@dataclass(frozen=True, slots=True)
class Image:
    """What a launch must know of an image: its path, which names one image and no family."""

    path: str
    arch: str
    size_gb: int


class Images:
    """Resolves images; keeps what it learned while it is fresh."""

    def __init__(self, clock: Clock) -> None:
        self._images: Learned[str, Image] = Learned(clock)

    def resolve(self, calls: Calls, settings: RegionSettings, offer: Offer, own: str) -> Image:
        """The image for the offer.

        Args:
            calls: about the offer's region.
            settings: of that region; its image override "arch/gpu" or "arch" beats the vendor's image.
            offer: the machine that will boot it.
            own: the job's own image; beats everything. As the overrides it is the path of an image or of a family
                (`projects/P/global/images/NAME`, `.../images/family/NAME`), or the name of an image in our project.

        Raises:
            LaunchRefused: there is no such image, or it does not fit the machine.
            ProviderError: the question failed.
        """
        with_gpu = offer.gpu_count > 0
        override = settings.image_for(offer.arch, with_gpu=with_gpu)
        wanted = own or override or PUBLIC_FAMILIES[offer.arch, with_gpu]
        image = self._images.get(wanted, lambda: _look_up(calls, wanted, own=bool(own)))
        if image.arch != offer.arch:
            message = f"the image {image.path} is for {image.arch}, the machine {offer.instance_type} is {offer.arch}"
            raise image_refused("ImageArchitecture", message, calls.region, own=bool(own))
        return image


def _look_up(calls: Calls, wanted: str, *, own: bool) -> Image:
    parts = _LINK.fullmatch(wanted) or _NAME.fullmatch(wanted)
    if parts is None:
        message = (
            f"{wanted!r} is not the path of an image: machine_image wants projects/P/global/images/NAME or "
            "projects/P/global/images/family/NAME on gcp, or the name of an image in the broker's project"
        )
        raise image_refused("ImageMalformed", message, calls.region, own=own)
    named = parts.groupdict()
    project, name = named.get("project") or calls.project, named["name"]
    try:
        if named.get("family"):
            found = calls.ask(lambda c: c.images.get_from_family, {"project": project, "family": name})
        else:
            found = calls.ask(lambda c: c.images.get, {"project": project, "image": name})
    except ProviderError as error:
        if error.code != "notFound":
            raise
        raise image_refused(
            error.code, f"there is no image {wanted}: {error.message}", calls.region, own=own
        ) from error
    return _checked(found, project, wanted, calls.region, own=own)


def _checked(found: VendorImage, project: str, wanted: str, region: str, *, own: bool) -> Image:
    if found.status not in {"", "READY"}:
        raise image_refused("ImageNotReady", f"the image {wanted} is {found.status}", region, own=own)
    if found.deprecated.state in {"OBSOLETE", "DELETED"}:
        raise image_refused("ImageNotReady", f"the image {wanted} is {found.deprecated.state}", region, own=own)
    arch = _ARCHITECTURES.get(found.architecture or "X86_64", found.architecture)
    return Image(f"projects/{project}/global/images/{found.name}", arch, int(found.disk_size_gb))
