"""Which image a machine boots."""

from datetime import timedelta
from typing import Any

import pytest

from spotferry.providers.azure.images import VENDOR_IMAGES, Image, Images
from spotferry.providers.learned import FRESH_FOR
from spotferry.types.errors import LaunchRefused, ProviderUnavailable
from tests.unit.providers.azure.rig import Answer, Rig, a_candidate, refused, settings

VERSIONS = r"GET .*/artifacttypes/vmimage/offers/.*/versions$"
VERSION = r"GET .*/artifacttypes/vmimage/offers/.*/versions/.+"
MANAGED = "/subscriptions/other/resourceGroups/g/providers/Microsoft.Compute/images/mine"
IN_GALLERY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/a/images/b/versions/1.2.3"


@pytest.fixture
def rig() -> Rig:
    """An adapter that finds Canonical's image."""
    made = Rig()
    made.script.answer(VERSIONS, Answer(200, [{"name": "24.04.2", "id": "x", "location": "eastus"}]))
    made.script.answer(VERSION, told())
    return made


# Any: JSON.
def told(architecture: str = "x64", plan: object = None, **disk: Any) -> Answer:
    """A version of an image."""
    properties = {"architecture": architecture, "plan": plan, "osDiskImage": {"operatingSystem": "Linux", **disk}}
    return Answer(200, {"name": "24.04.2", "location": "eastus", "properties": properties})


# Any: of any field.
def resolve(rig: Rig, own: str = "", images: dict[str, str] | None = None, **offer: Any) -> Image:
    """What the offer would boot."""
    resolver = Images(lambda: rig.now)
    return resolver.resolve(rig.calls(), settings(**(images or {})), a_candidate(**offer).offer, own)


def test_the_vendors_newest_is_made_exact(rig: Rig) -> None:
    """The newest version is asked for and fixed, so that a repeat boots the same."""
    assert resolve(rig) == Image("Canonical:ubuntu-24_04-lts:server:24.04.2", "x86_64", 30)
    assert rig.script.asked[0].query["$orderby"] == "name desc"
    assert rig.script.asked[0].query["$top"] == "1"


def test_arm_and_gpus_have_images_of_their_own(rig: Rig) -> None:
    """By architecture and GPU."""
    rig.script.answer(r"GET .*server-arm64/versions/.+", told("Arm64"))
    assert resolve(rig, arch="arm64").arch == "arm64"
    gpu = resolve(rig, gpu_count=1, gpu_name="T4", gpu_maker="NVIDIA", instance_type="Standard_NC4as_T4_v3")
    assert gpu == Image("microsoft-dsvm:ubuntu-hpc:2204:24.04.2", "x86_64", 64)
    assert ("arm64", True) not in VENDOR_IMAGES


@pytest.mark.parametrize(
    "offer",
    [
        {"gpu_maker": "AMD", "instance_type": "Standard_ND96isr_MI300X_v5"},
        {"gpu_maker": "NVIDIA", "instance_type": "Standard_NV36ads_A10_v5"},
        {"gpu_maker": "NVIDIA", "instance_type": "Standard_ND128isr_NDR_GB200_v6", "arch": "arm64"},
    ],
)
def test_gpus_without_a_vendors_image_are_refused_and_can_be_set(rig: Rig, offer: dict[str, Any]) -> None:
    """No machine is bought whose GPU has no driver; the operator's own image opens the type."""
    arch = offer.get("arch", "x86_64")
    with pytest.raises(LaunchRefused, match=f"{arch}/gpu") as caught:
        resolve(rig, gpu_count=1, **offer)
    assert caught.value.scope == "size"
    rig.script.answer(r"GET .*/a/.*/versions/.+", told("Arm64" if arch == "arm64" else "x64"))
    assert resolve(rig, images={f"{arch}/gpu": "a:b:c:1"}, gpu_count=1, **offer).image_id == "a:b:c:1"


def test_a_jobs_own_image_beats_the_regions(rig: Rig) -> None:
    """And the region's beats the vendor's."""
    assert resolve(rig, own="p:o:s:1", images={"x86_64": "q:o:s:2"}).image_id == "p:o:s:1"
    assert resolve(rig, images={"x86_64": "q:o:s:2"}).image_id == "q:o:s:2"


def test_sizes_and_plans_are_read(rig: Rig) -> None:
    """Whatever Azure calls the size; an image with a plan keeps it."""
    sizes: list[tuple[dict[str, Any], int]] = [  # Any: JSON
        ({"sizeInGb": 127}, 127),
        ({"sizeInBytes": 31 * 1024**3}, 31),
        ({"sizeInBytes": 1}, 1),
    ]
    for disk, size in sizes:
        rig.script.answer(VERSION, told(**disk))
        assert resolve(rig, own="p:o:s:1").size_gb == size
    rig.script.answer(VERSION, told(plan={"name": "n", "publisher": "p", "product": "d"}))
    assert resolve(rig, own="p:o:s:1").plan == "p:d:n"
    assert resolve(rig, own="p:o:s:1").size_gb == 30


def test_an_image_for_another_architecture(rig: Rig) -> None:
    """It is refused by name; a job's own closes nothing to others."""
    rig.script.answer(VERSION, told("Arm64"))
    with pytest.raises(LaunchRefused, match="for arm64") as caught:
        resolve(rig)
    assert caught.value.scope == "region"
    with pytest.raises(LaunchRefused) as caught:
        resolve(rig, own="p:o:s:1")
    assert caught.value.scope == "none"


def test_images_of_our_own(rig: Rig) -> None:
    """A managed image and a gallery's version are asked for where they are, in whichever subscription."""
    managed = {"properties": {"storageProfile": {"osDisk": {"osType": "Linux", "diskSizeGB": 50}}}}
    rig.script.answer(MANAGED, Answer(200, managed))
    assert resolve(rig, own=MANAGED) == Image(MANAGED, "", 50)
    version = {"properties": {"storageProfile": {"osDiskImage": {"sizeInGB": 60}}}}
    rig.script.answer("galleries/a/images/b$", Answer(200, {"properties": {"architecture": "x64"}}))
    rig.script.answer("versions/1.2.3$", Answer(200, version))
    assert resolve(rig, own=IN_GALLERY) == Image(IN_GALLERY, "x86_64", 60)
    with pytest.raises(LaunchRefused, match="for x86_64"):
        resolve(rig, own=IN_GALLERY, arch="arm64")


@pytest.mark.parametrize("own", ["ubuntu", "a:b:c", "/subscriptions/s/disks/x", "../../x", "a:b:c:d/../e"])
def test_what_is_no_image(rig: Rig, own: str) -> None:
    """It is refused by name, and nothing is asked."""
    with pytest.raises(LaunchRefused) as caught:
        resolve(rig, own=own)
    assert own in str(caught.value)
    assert rig.script.asked == []


@pytest.mark.parametrize("own", ["p:o:s:1", "p:o:s:latest", MANAGED])
def test_what_is_not_there(rig: Rig, own: str) -> None:
    """An image that Azure does not know is the job's own trouble; an empty list of versions is none, too."""
    rig.script.answer("GET", refused(404, "NotFound", "Artifact: VMImage was not found."))
    with pytest.raises(LaunchRefused) as caught:
        resolve(rig, own=own)
    assert own in caught.value.message
    assert caught.value.scope == "none"
    rig.script.answer(VERSIONS, Answer(200, []))
    with pytest.raises(LaunchRefused, match="no version"):
        resolve(rig)


def test_trouble_is_no_verdict(rig: Rig) -> None:
    """A throttled question says nothing about the image."""
    rig.script.answer("GET", refused(429, "TooManyRequests"))
    with pytest.raises(ProviderUnavailable):
        resolve(rig)


def test_what_was_learned_is_kept_for_an_hour(rig: Rig) -> None:
    """Placements of one hour ask once."""
    resolver = Images(lambda: rig.now)
    for _ in range(3):
        resolver.resolve(rig.calls(), settings(), a_candidate().offer, "")
    assert len(rig.script.asked) == 2
    rig.now += FRESH_FOR + timedelta(seconds=1)
    resolver.resolve(rig.calls(), settings(), a_candidate().offer, "")
    assert len(rig.script.asked) == 4
