"""What an operator may say of a region, cloud by cloud."""

import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from spotferry.ports.cloud import RegionSettings
from spotferry.providers import registry
from spotferry.providers.opening import CheckContext, build_check, region_settings, settings_of
from spotferry.types import PROVIDER_NAMES, InvalidInput, Misconfigured

VM = "/subscriptions/s/resourceGroups/rg/providers"
SUBNET = f"{VM}/Microsoft.Network/virtualNetworks/v/subnets/s"
GOOD: Mapping[str, tuple[str, Mapping[str, tuple[str, ...]], Mapping[str, str]]] = {
    "aws": (
        "us-west-2",
        {
            "subnet:": ("us-west-2a=subnet-0123456789abcdef0", "usw2-az2=subnet-0123456789abcdef1"),
            "security_group_id": ("sg-0123456789abcdef0",),
            "instance_profile_arn": ("arn:aws:iam::123456789012:instance-profile/spotferry/x/p",),
        },
        {
            "subnet:us-west-2a": "subnet-0123456789abcdef0",
            "subnet:usw2-az2": "subnet-0123456789abcdef1",
            "security_group_id": "sg-0123456789abcdef0",
            "instance_profile_arn": "arn:aws:iam::123456789012:instance-profile/spotferry/x/p",
        },
    ),
    "gcp": (
        "northamerica-northeast1",
        {"network": ("jobs",), "service_account": ("m@p.iam.gserviceaccount.com",), "network_tags": ("a,b-c",)},
        {"network": "jobs", "service_account": "m@p.iam.gserviceaccount.com", "network_tags": "a,b-c"},
    ),
    "azure": (
        "eastus2",
        {"resource_group": ("rg",), "subnet_id": (SUBNET,), "public_ip": ("no",)},
        {"resource_group": "rg", "subnet_id": SUBNET, "public_ip": "no"},
    ),
    "paperspace": ("NY2", {"network_id": ("n123abc",)}, {"network_id": "n123abc"}),
}


@pytest.mark.parametrize("provider", GOOD)
def test_what_was_said_becomes_the_settings(provider: str) -> None:
    """Every option ends under the key that the cloud's adapter reads."""
    region, said, network = GOOD[provider]
    made = region_settings(provider, region, said)
    assert made == RegionSettings(provider=provider, region=region, network=network)


def test_every_cloud_can_be_opened() -> None:
    """Each has settings and a check, and its examples are what its own patterns take."""
    assert set(registry.with_part("settings")) == set(registry.with_part("check")) == set(PROVIDER_NAMES)
    for name in PROVIDER_NAMES:
        cloud = settings_of(name)
        assert re.fullmatch(cloud.region, cloud.region_example), name
        assert re.fullmatch(cloud.image, cloud.image_example), name
        assert len({setting.option for setting in cloud.settings}) == len(cloud.settings)


@pytest.mark.parametrize(
    ("provider", "region", "said", "images", "fields"),
    [
        ("aws", "us-west", {}, (), ["REGION"]),
        ("aws", "us-west-2 ", {}, (), ["REGION"]),
        ("gcp", "us-west-2", {}, (), ["REGION"]),
        ("azure", "west europe", {"resource_group": ("rg",), "subnet_id": (SUBNET,)}, (), ["REGION"]),
        ("paperspace", "ny2", {}, (), ["REGION"]),
        ("aws", "us-west-2", {"subnet:": ("subnet-0123456789abcdef0",)}, (), ["--subnet"]),
        ("aws", "us-west-2", {"subnet:": ("=subnet-0123456789abcdef0",)}, (), ["--subnet"]),
        ("aws", "us-west-2", {"subnet:": ("a=subnet-01234567", "a=subnet-76543210")}, (), ["--subnet"]),
        ("aws", "us-west-2", {"subnet:": ("a=sg-0123456789abcdef0",), "security_group_id": ("no",)}, (),
         ["--subnet", "--security-group"]),
        ("azure", "eastus", {}, (), ["--resource-group", "--subnet-id"]),
        ("azure", "eastus", {"resource_group": ("rg",), "subnet_id": ("/subscriptions/s",)}, (), ["--subnet-id"]),
        ("aws", "us-west-2", {}, ("ami-0123456789abcdef0",), ["--image"]),
        ("aws", "us-west-2", {}, ("x86=ami-0123456789abcdef0",), ["--image"]),
        ("aws", "us-west-2", {}, ("arm64=ubuntu",), ["--image"]),
    ],
)  # fmt: skip
def test_all_that_is_wrong_is_named(
    provider: str, region: str, said: Mapping[str, tuple[str, ...]], images: tuple[str, ...], fields: list[str]
) -> None:
    """By option, in one go; nothing is made of a part."""
    with pytest.raises(InvalidInput) as refused:
        region_settings(provider, region, said, images)
    assert [problem.field for problem in refused.value.problems] == fields


def test_images_are_overridden_by_arch_and_gpu() -> None:
    """As the adapters look them up; a word that is nearly one is asked back."""
    made = region_settings("aws", "us-west-2", {}, ("x86_64=ami-01234567", "arm64/gpu=ami-0123456789abcdef0"))
    assert made.image_ids == {"x86_64": "ami-01234567", "arm64/gpu": "ami-0123456789abcdef0"}
    with pytest.raises(InvalidInput, match="did you mean x86_64"):
        region_settings("aws", "us-west-2", {}, ("x86-64=ami-01234567",))


def test_a_cloud_without_settings_or_check_says_so() -> None:
    """A folder that a new provider only began with is no crash."""
    context = CheckContext("test", "us-east-1", lambda: datetime.now(UTC))
    for call in (lambda: settings_of("newcloud"), lambda: build_check("newcloud", context)):
        with pytest.raises(Misconfigured, match="newcloud"):
            call()


def test_settings_need_no_sdk() -> None:
    """The help of `spotferry region add` loads no cloud's library."""
    code = (
        "import sys; from spotferry.providers import registry; from spotferry.providers.opening import settings_of\n"
        "for name in registry.with_part('settings'): settings_of(name)\n"
        "sys.exit(any(name in sys.modules for name in ('boto3', 'botocore', 'google.auth', 'azure')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
