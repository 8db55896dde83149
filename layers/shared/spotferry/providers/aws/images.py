"""Which image a machine boots: the job's own, the region's override, or the newest of the image's vendor."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from spotferry.ports.cloud import Clock, RegionSettings
from spotferry.providers.aws.api import Calls
from spotferry.types.errors import LaunchRefused, ProviderError
from spotferry.types.instance import Offer

PUBLIC_PARAMETERS = {
    ("x86_64", False): "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    ("arm64", False): "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm/ebs-gp3/ami-id",
    ("x86_64", True): "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
    ("arm64", True): "/aws/service/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
}
"""Public parameters that hold the newest image, by (arch, with GPU): Canonical's, and with drivers AWS's own."""

FRESH_FOR = timedelta(hours=1)
"""How long the newest image is taken to be the newest, and an image to be there still."""

_IMAGE_ID = re.compile(r"ami-[0-9a-f]{8,17}")


@dataclass(frozen=True, slots=True)
class Image:
    """What a launch must know of an image."""

    image_id: str
    arch: str
    root_device: str
    size_gb: int


class Images:
    """Resolves images; keeps what it learned for `FRESH_FOR`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._newest: dict[tuple[str, str], tuple[datetime, str]] = {}
        self._images: dict[tuple[str, str], tuple[datetime, Image]] = {}

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
        image = self._describe(calls, image_id, own=bool(own))
        if image.arch != offer.arch:
            message = f"the image {image_id} is for {image.arch}, the machine {offer.instance_type} is {offer.arch}"
            raise _refused("ImageArchitecture", message, calls.region, own=bool(own))
        return image

    def _chosen(self, calls: Calls, settings: RegionSettings, offer: Offer) -> str:
        with_gpu = offer.gpu_count > 0
        override = settings.image_ids.get(f"{offer.arch}/gpu" if with_gpu else offer.arch)
        if override:
            return override
        parameter = PUBLIC_PARAMETERS[offer.arch, with_gpu]
        known = self._newest.get((calls.region, parameter))
        if known is None or self._is_old(known[0]):
            known = (self._clock(), self._parameter(calls, parameter))
            self._newest[calls.region, parameter] = known
        return known[1]

    def _parameter(self, calls: Calls, name: str) -> str:
        try:
            return str(calls.ssm("get_parameter", Name=name)["Parameter"]["Value"])
        except ProviderError as error:
            if error.code != "ParameterNotFound":
                raise
            message = f"the vendor publishes no image at {name}; set an image for the region"
            raise _refused(error.code, message, calls.region, own=False) from error

    def _describe(self, calls: Calls, image_id: str, *, own: bool) -> Image:
        known = self._images.get((calls.region, image_id))
        if known is None or self._is_old(known[0]):
            known = (self._clock(), self._look_up(calls, image_id, own=own))
            self._images[calls.region, image_id] = known
        return known[1]

    def _is_old(self, learned_at: datetime) -> bool:
        return self._clock() - learned_at >= FRESH_FOR

    def _look_up(self, calls: Calls, image_id: str, *, own: bool) -> Image:
        if not _IMAGE_ID.fullmatch(image_id):
            message = f"{image_id!r} is not the id of an image: machine_image wants ami- and hex digits on aws"
            raise _refused("InvalidAMIID.Malformed", message, calls.region, own=own)
        try:
            found = calls.ec2("describe_images", ImageIds=[image_id]).get("Images", [])
        except ProviderError as error:
            if not error.code.startswith("InvalidAMIID."):
                raise
            raise _refused(error.code, error.message, calls.region, own=own) from error
        if not found or found[0].get("State", "available") != "available":
            message = f"the image {image_id} is not available in {calls.region}"
            raise _refused("InvalidAMIID.NotFound", message, calls.region, own=own)
        answer = found[0]
        root = answer.get("RootDeviceName", "")
        sizes = [
            m["Ebs"].get("VolumeSize", 0)
            for m in answer.get("BlockDeviceMappings", [])
            if m.get("DeviceName") == root and "Ebs" in m
        ]
        if not sizes:
            message = f"the image {image_id} has no root volume to size: it must boot from EBS"
            raise _refused("ImageRootDevice", message, calls.region, own=own)
        return Image(image_id, answer.get("Architecture", ""), root, sizes[0])


def _refused(code: str, message: str, region: str, *, own: bool) -> LaunchRefused:
    """A job's own image is the job's own trouble: it closes nothing to anybody else."""
    return LaunchRefused(code, message, region, scope="none" if own else "family")
