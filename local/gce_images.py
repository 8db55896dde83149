"""The public images of the local Google Cloud: the newest of the families that adapters ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from local.json_face import Json, RestError


@dataclass(frozen=True, slots=True)
class PublicImage:
    """One image: what it is called, and what it is."""

    project: str
    name: str
    family: str
    architecture: str
    size_gb: int

    @property
    def path(self) -> str:
        """As requests name it."""
        return f"projects/{self.project}/global/images/{self.name}"


IMAGES: tuple[PublicImage, ...] = (
    PublicImage("ubuntu-os-cloud", "ubuntu-2404-noble-amd64-v20261120", "ubuntu-2404-lts-amd64", "X86_64", 10),
    PublicImage("ubuntu-os-cloud", "ubuntu-2404-noble-arm64-v20261120", "ubuntu-2404-lts-arm64", "ARM64", 10),
    PublicImage(
        "ubuntu-os-accelerator-images",
        "ubuntu-accelerator-2404-amd64-nvidia-580-v20261120",
        "ubuntu-accelerator-2404-amd64-with-nvidia-580",
        "X86_64",
        20,
    ),
)
_BY_NAME: Mapping[tuple[str, str], PublicImage] = {(image.project, image.name): image for image in IMAGES}
_BY_FAMILY: Mapping[tuple[str, str], PublicImage] = {(image.project, image.family): image for image in IMAGES}


def by_name(project: str, name: str) -> PublicImage:
    """The image of this name.

    Raises:
        RestError: there is none.
    """
    return _found(_BY_NAME.get((project, name)), f"projects/{project}/global/images/{name}")


def by_family(project: str, family: str) -> PublicImage:
    """The newest image of the family.

    Raises:
        RestError: there is none.
    """
    return _found(_BY_FAMILY.get((project, family)), f"projects/{project}/global/images/family/{family}")


def by_path(path: str) -> PublicImage:
    """The image that a request names.

    Raises:
        RestError: there is none.
    """
    match path.split("/"):
        case ["projects", project, "global", "images", name]:
            return by_name(project, name)
        case ["projects", project, "global", "images", "family", family]:
            return by_family(project, family)
    raise RestError(
        400, "invalid", f"Invalid value for field 'resource.disks[0].initializeParams.sourceImage': '{path}'."
    )


def view(image: PublicImage) -> Json:
    """The image as the API shows it."""
    return {
        "kind": "compute#image",
        "name": image.name,
        "family": image.family,
        "status": "READY",
        "architecture": image.architecture,
        "diskSizeGb": str(image.size_gb),
        "creationTimestamp": "2026-11-20T00:00:00.000-08:00",
    }


def _found(image: PublicImage | None, path: str) -> PublicImage:
    if image is None:
        raise RestError(404, "notFound", f"The resource '{path}' was not found")
    return image
