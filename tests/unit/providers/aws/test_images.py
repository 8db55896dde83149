"""Which image is booted, and what is known of zones."""

from datetime import timedelta

import pytest

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.aws.images import PUBLIC_PARAMETERS
from spotferry.providers.learned import FRESH_FOR
from spotferry.types.errors import LaunchRefused, ProviderUnavailable, TryNextZone
from spotferry.types.instance import Candidate, LaunchRequest
from tests.unit.providers.aws.rig import IMAGE, REGION, TAGS, Rig, a_candidate, settings

OWN = "ami-00000000"


def an_image(image_id: str = IMAGE, arch: str = "x86_64", size_gb: int = 8, **changes: object) -> dict[str, object]:
    """An image as DescribeImages shows it."""
    mappings = [
        {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
        {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": size_gb}},
    ]
    return {
        "ImageId": image_id,
        "State": "available",
        "Architecture": arch,
        "RootDeviceName": "/dev/sda1",
        "BlockDeviceMappings": mappings,
    } | changes


def expect_image(rig: Rig, image: dict[str, object]) -> None:
    """EC2 will be asked for this image."""
    rig.stub().add_response("describe_images", {"Images": [image]}, {"ImageIds": [image["ImageId"]]})


def expect_parameter(rig: Rig, name: str, value: str = IMAGE) -> None:
    """Systems Manager will be asked for this parameter."""
    rig.stub("ssm").add_response("get_parameter", {"Parameter": {"Value": value}}, {"Name": name})


def prepare(
    rig: Rig, candidate: Candidate, region: RegionSettings | None = None, own: str = "", *, disk_is_fixed: bool = True
) -> LaunchRequest:
    """Fix a request."""
    return rig.provider.prepare(candidate, region or settings(), own, TAGS, disk_is_fixed=disk_is_fixed)


@pytest.mark.parametrize(("arch", "gpus"), [("x86_64", 0), ("arm64", 0), ("x86_64", 1), ("arm64", 2)])
def test_the_newest_image_of_the_vendor(arch: str, gpus: int) -> None:
    """Without an override the vendor's public parameter for architecture and GPU names the image."""
    rig = Rig()
    expect_parameter(rig, PUBLIC_PARAMETERS[arch, gpus > 0])
    expect_image(rig, an_image(arch=arch))
    request = prepare(rig, a_candidate(arch=arch, gpu_count=gpus))
    assert request.image_id == IMAGE
    assert request.network == {"zone": "us-east-1a", "root_device": "/dev/sda1"}
    assert (request.disk_gb, request.tags, request.max_price_usd_hour) == (20, TAGS, None)
    assert (request.agent_sha256, request.broker_url) == ("", "")
    rig.done()


@pytest.mark.parametrize(
    ("overrides", "own", "gpus", "expected"),
    [
        ({"x86_64": "ami-11111111"}, "", 0, "ami-11111111"),
        ({"x86_64": "ami-11111111", "x86_64/gpu": "ami-22222222"}, "", 1, "ami-22222222"),
        ({"x86_64": "ami-11111111"}, OWN, 0, OWN),
        ({}, OWN, 1, OWN),
    ],
)
def test_who_overrides_whom(overrides: dict[str, str], own: str, gpus: int, expected: str) -> None:
    """The job's own image beats the region's override, which beats the vendor's; nobody asks for what is beaten."""
    rig = Rig()
    expect_image(rig, an_image(expected))
    assert prepare(rig, a_candidate(gpu_count=gpus), settings(image_ids=overrides), own).image_id == expected
    assert ("ssm", REGION) not in rig.stubs


def test_an_override_for_another_kind_does_not_count() -> None:
    """A region's image for machines without a GPU is not booted on one that has one."""
    rig = Rig()
    expect_parameter(rig, PUBLIC_PARAMETERS["x86_64", True])
    expect_image(rig, an_image())
    assert prepare(rig, a_candidate(gpu_count=1), settings(image_ids={"x86_64": OWN})).image_id == IMAGE


def test_what_was_learned_is_asked_for_once_an_hour() -> None:
    """The newest image, and what it is like, are looked up again after an hour."""
    rig = Rig()
    expect_parameter(rig, PUBLIC_PARAMETERS["x86_64", False])
    expect_image(rig, an_image())
    for _ in range(3):
        prepare(rig, a_candidate())
    rig.now += FRESH_FOR - timedelta(seconds=1)
    prepare(rig, a_candidate())
    rig.done()
    rig.now += timedelta(seconds=1)
    expect_parameter(rig, PUBLIC_PARAMETERS["x86_64", False])
    expect_image(rig, an_image())
    prepare(rig, a_candidate())
    rig.done()


def test_an_image_that_was_taken_away_is_noticed_within_the_hour() -> None:
    """What was learned of an image does not outlive it by more than that."""
    rig = Rig()
    expect_image(rig, an_image(OWN))
    prepare(rig, a_candidate(), own=OWN)
    rig.now += FRESH_FOR
    rig.stub().add_response("describe_images", {"Images": []})
    with pytest.raises(LaunchRefused, match="not available"):
        prepare(rig, a_candidate(), own=OWN)


@pytest.mark.parametrize(("own", "is_own"), [(OWN, True), ("", False)])
def test_the_request_says_whose_image_it_is(own: str, is_own: bool) -> None:  # noqa: FBT001 (a case)
    """A region's override is the operator's, not the job's."""
    rig = Rig()
    expect_image(rig, an_image(OWN))
    assert prepare(rig, a_candidate(), settings(image_ids={"x86_64": OWN}), own).own_image is is_own


@pytest.mark.parametrize(("own", "wanted", "image", "disk"), [("", 20, 75, 75), ("", 100, 75, 100), (OWN, 20, 75, 75)])
def test_a_disk_that_no_job_named_grows_to_its_image(own: str, wanted: int, image: int, disk: int) -> None:
    """Whoever chose the image: the default disk is the least, not the most."""
    rig = Rig()
    expect_image(rig, an_image(OWN, size_gb=image))
    region = settings(image_ids={"x86_64": OWN})
    assert prepare(rig, a_candidate(disk_gb=wanted), region, own, disk_is_fixed=False).disk_gb == disk


@pytest.mark.parametrize(
    ("own", "answer", "words"),
    [
        ("my-image", None, "not the id of an image"),
        ("ami-xyz", None, "not the id of an image"),
        (OWN, [], "not available in us-east-1"),
        (OWN, [an_image(OWN, State="pending")], "not available in us-east-1"),
        (OWN, [an_image(OWN, arch="arm64")], "is for arm64, the machine m5.large is x86_64"),
        (OWN, [an_image(OWN, BlockDeviceMappings=[])], "boot from EBS"),
    ],
)
def test_a_jobs_own_image_that_does_not_do(own: str, answer: list[dict[str, object]] | None, words: str) -> None:
    """The refusal says what is wrong with the image, and closes nothing to other jobs."""
    rig = Rig()
    if answer is not None:
        rig.stub().add_response("describe_images", {"Images": answer})
    with pytest.raises(LaunchRefused, match=words) as caught:
        prepare(rig, a_candidate(), own=own)
    assert caught.value.scope == "none"


def test_an_image_that_ec2_does_not_know_keeps_ec2s_words() -> None:
    """EC2's own code and words reach the person who named the image."""
    rig = Rig()
    rig.stub().add_client_error(
        "describe_images", "InvalidAMIID.NotFound", "The image id '[ami-00000000]' does not exist"
    )
    with pytest.raises(LaunchRefused, match="does not exist") as caught:
        prepare(rig, a_candidate(), own=OWN)
    assert caught.value.code == "InvalidAMIID.NotFound"


def test_a_region_without_the_vendors_image_closes_the_family_there() -> None:
    """A missing public parameter says which one, and does not close the region to other kinds of machine."""
    rig = Rig()
    rig.stub("ssm").add_client_error("get_parameter", "ParameterNotFound", "none")
    with pytest.raises(LaunchRefused, match="set an image for the region") as caught:
        prepare(rig, a_candidate())
    assert caught.value.scope == "family"


def test_a_question_that_fails_is_no_verdict() -> None:
    """When the look-up of the image is throttled to the end, nothing is known about the candidate."""
    rig = Rig()
    for _ in range(5):
        rig.stub("ssm").add_client_error("get_parameter", "ThrottlingException", "slow down")
    with pytest.raises(ProviderUnavailable):
        prepare(rig, a_candidate())


def test_a_disk_smaller_than_the_image_is_refused() -> None:
    """The size that counts is that of the root volume of the image that was resolved."""
    rig = Rig()
    expect_image(rig, an_image(OWN, size_gb=35))
    with pytest.raises(LaunchRefused, match="smaller than the image"):
        prepare(rig, a_candidate(disk_gb=34), own=OWN)


def test_zone_ids_become_the_accounts_names() -> None:
    """A price list's zone id becomes the account's name for it, asked for once a region; a name stays as it is."""
    rig = Rig()
    zones = [{"ZoneId": "use1-az1", "ZoneName": "us-east-1c"}, {"ZoneId": "use1-az2", "ZoneName": "us-east-1a"}]
    rig.stub().add_response("describe_availability_zones", {"AvailabilityZones": zones})
    expect_image(rig, an_image(OWN))
    assert prepare(rig, a_candidate(zone="use1-az1"), own=OWN).network["zone"] == "us-east-1c"
    assert prepare(rig, a_candidate(zone="use1-az2"), own=OWN).network["zone"] == "us-east-1a"
    assert prepare(rig, a_candidate(zone="us-east-1f"), own=OWN).network["zone"] == "us-east-1f"
    assert "zone" not in prepare(rig, a_candidate(zone=""), own=OWN).network
    with pytest.raises(TryNextZone, match="use1-az9"):
        prepare(rig, a_candidate(zone="use1-az9"), own=OWN)
    rig.done()
