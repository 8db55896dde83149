"""Which image a machine boots: the job's own, the region's override, or the newest of the image's vendor."""

import re
from dataclasses import dataclass

from spotferry.ports.cloud import Clock, RegionSettings
from spotferry.providers.aws.api import Calls
from spotferry.providers.learned import Learned
from spotferry.providers.verdict import image_refused
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Offer

PUBLIC_PARAMETERS = {
    ("x86_64", False): "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    ("arm64", False): "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id",
    ("x86_64", True): "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
    ("arm64", True): "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
}
"""Public parameters that hold the newest image, by (arch, with GPU): Canonical's, and with drivers AWS's own."""

_IMAGE_ID = re.compile(r"ami-[0-9a-f]{8,17}")


@dataclass(frozen=True, slots=True)
class Image:
    """What a launch must know of an image."""

    image_id: str
    arch: str
    root_device: str
    size_gb: int


class Images:
    """Resolves images; keeps what it learned while it is fresh."""

    def __init__(self, clock: Clock) -> None:
        self._newest: Learned[tuple[str, str], str] = Learned(clock)
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
        image_id = own or self._chosen(calls, settings, offer)
        image = self._images.get((calls.region, image_id), lambda: _look_up(calls, image_id, own=bool(own)))
        if image.arch != offer.arch:
            message = f"the image {image_id} is for {image.arch}, the machine {offer.instance_type} is {offer.arch}"
            raise image_refused("ImageArchitecture", message, calls.region, own=bool(own))
        return image

    def _chosen(self, calls: Calls, settings: RegionSettings, offer: Offer) -> str:
        with_gpu = offer.gpu_count > 0
        override = settings.image_for(offer.arch, with_gpu=with_gpu)
        if override:
            return override
        parameter = PUBLIC_PARAMETERS[offer.arch, with_gpu]
        return self._newest.get((calls.region, parameter), lambda: _parameter(calls, parameter))


def _parameter(calls: Calls, name: str) -> str:
    try:
        return str(calls.ssm("get_parameter", Name=name)["Parameter"]["Value"])
    except ProviderError as error:
        if error.code != "ParameterNotFound":
            raise
        message = f"the vendor publishes no image at {name}; set an image for the region"
        raise image_refused(error.code, message, calls.region, own=False) from error


def _look_up(calls: Calls, image_id: str, *, own: bool) -> Image:
    if not _IMAGE_ID.fullmatch(image_id):
        message = f"{image_id!r} is not the id of an image: machine_image wants ami- and hex digits on aws"
        raise image_refused("InvalidAMIID.Malformed", message, calls.region, own=own)
    try:
        found = calls.ec2("describe_images", ImageIds=[image_id]).get("Images", [])
    except ProviderError as error:
        if not error.code.startswith("InvalidAMIID."):
            raise
        raise image_refused(error.code, error.message, calls.region, own=own) from error
    if not found or found[0].get("State", "available") != "available":
        message = f"the image {image_id} is not available in {calls.region}"
        raise image_refused("InvalidAMIID.NotFound", message, calls.region, own=own)
    answer = found[0]
    root = answer.get("RootDeviceName", "")
    sizes = [
        m["Ebs"].get("VolumeSize", 0)
        for m in answer.get("BlockDeviceMappings", [])
        if m.get("DeviceName") == root and "Ebs" in m
    ]
    if not sizes:
        message = f"the image {image_id} has no root volume to size: it must boot from EBS"
        raise image_refused("ImageRootDevice", message, calls.region, own=own)
    return Image(image_id, answer.get("Architecture", ""), root, sizes[0])
