"""Which image a machine boots."""

from datetime import timedelta

import pytest

from spotferry.providers.gcp.images import PUBLIC_FAMILIES
from spotferry.providers.learned import FRESH_FOR
from spotferry.types.errors import LaunchRefused, ProviderUnavailable
from tests.unit.providers.gcp.rig import Json, Rig, a_candidate, refused, settings

HERE = "projects/p1/global/images"


def image(name: str = "u", **changes: object) -> Json:
    """An image as the API shows it."""
    return {"name": name, "architecture": "X86_64", "diskSizeGb": "10", "status": "READY", **changes}


@pytest.mark.parametrize(("arch", "gpus"), sorted(PUBLIC_FAMILIES))
def test_the_vendors_newest(arch: str, gpus: bool) -> None:  # noqa: FBT001 (a case's key)
    """Of the family for the machine's architecture, with drivers where it has a GPU; fixed to that one image."""
    rig = Rig().answer(image(architecture={"x86_64": "X86_64", "arm64": "ARM64"}[arch]))
    request = rig.provider.prepare(a_candidate(arch=arch, gpu_count=int(gpus)), settings(), "", {})
    family = PUBLIC_FAMILIES[arch, gpus]
    assert rig.wire.paths() == [f"GET {family.removeprefix('projects/')}"]
    assert request.image_id == f"{family.partition('/family/')[0]}/u"


def test_the_newest_is_asked_for_once_an_hour() -> None:
    """What was learned serves until then."""
    rig = Rig().answer(image("old"), image("new"))
    for minutes, name in ((0, "old"), (59, "old"), (60, "new")):
        rig.now += timedelta(minutes=minutes) if minutes != 60 else FRESH_FOR
        assert rig.provider.prepare(a_candidate(), settings(), "", {}).image_id.endswith(f"/{name}")


WANTED = [
    ("mine", "GET p1/global/images/mine", f"{HERE}/u"),
    ("projects/other/global/images/theirs", "GET other/global/images/theirs", "projects/other/global/images/u"),
    ("projects/other/global/images/family/f", "GET other/global/images/family/f", "projects/other/global/images/u"),
    (
        "https://www.googleapis.com/compute/v1/projects/other/global/images/theirs",
        "GET other/global/images/theirs",
        "projects/other/global/images/u",
    ),
]


@pytest.mark.parametrize(("wanted", "path", "image_id"), WANTED)
def test_an_image_that_somebody_chose(wanted: str, path: str, image_id: str) -> None:
    """A path, an address, a family, or a name in the broker's project; the job's own beats the region's."""
    rig = Rig().answer(image())
    request = rig.provider.prepare(a_candidate(), settings(image_ids={"x86_64": "never"}), wanted, {})
    assert (rig.wire.paths(), request.image_id, request.own_image) == ([path], image_id, True)
    of_region = Rig().answer(image())
    request = of_region.provider.prepare(a_candidate(), settings(image_ids={"x86_64": wanted}), "", {})
    assert (of_region.wire.paths(), request.image_id, request.own_image) == ([path], image_id, False)


def test_an_override_for_machines_with_gpus() -> None:
    """It has a key of its own."""
    rig = Rig().answer(image())
    chosen = settings(image_ids={"x86_64": "plain", "x86_64/gpu": "with-drivers"})
    rig.provider.prepare(a_candidate(gpu_count=1), chosen, "", {})
    assert rig.wire.paths() == ["GET p1/global/images/with-drivers"]


REFUSED = [
    (refused(404, "notFound", "was not found"), "no image mine"),
    (image(status="PENDING"), "PENDING"),
    (image(deprecated={"state": "OBSOLETE"}), "OBSOLETE"),
    (image(architecture="ARM64"), "is for arm64"),
]


@pytest.mark.parametrize(("answer", "words"), REFUSED)
def test_an_image_that_cannot_be_booted(answer: Json, words: str) -> None:
    """A job's own concerns no other job; the region's closes its type there."""
    for own, override, scope in (("mine", {}, "none"), ("", {"x86_64": "mine"}, "family")):
        with pytest.raises(LaunchRefused, match=words) as caught:
            Rig().answer(answer).provider.prepare(a_candidate(), settings(image_ids=override), own, {})
        assert caught.value.scope == scope


@pytest.mark.parametrize("wanted", ["ami-0123456789abcdef0!", "projects/p/images/x", "UPPER", "a/b"])
def test_what_is_no_image(wanted: str) -> None:
    """It is refused by name, with the forms that there are, and nobody is asked."""
    rig = Rig()
    with pytest.raises(LaunchRefused, match="machine_image wants") as caught:
        rig.provider.prepare(a_candidate(), settings(), wanted, {})
    assert wanted in caught.value.message
    assert rig.wire.asked == []


def test_a_question_that_failed_is_no_verdict() -> None:
    """It may be asked again."""
    with pytest.raises(ProviderUnavailable):
        Rig().answer(*[refused(503, "backendError")] * 5).provider.prepare(a_candidate(), settings(), "", {})


def test_a_disk_holds_its_image() -> None:
    """One that the job named must; one that it did not name grows."""
    large = image(diskSizeGb="50")
    with pytest.raises(LaunchRefused, match="disk_gb: 50"):
        Rig().answer(large).provider.prepare(a_candidate(), settings(), "", {})
    assert Rig().answer(large).provider.prepare(a_candidate(), settings(), "", {}, disk_is_fixed=False).disk_gb == 50
