"""How far refusals reach."""

import pytest

from spotferry.domain.offer_words import part_matches, place_text
from spotferry.domain.pools import patterns
from spotferry.types.errors import BanScope, CapacityError
from spotferry.types.instance import Instance


def reached(scope: BanScope, instance_type: str = "m5.large") -> list[tuple[str, str]]:
    """What a refusal of a machine in zone z of region r sets aside."""
    machine = Instance(region="r", availability_zone="z", instance_type=instance_type)
    return patterns("spot", machine, CapacityError("Code", "words", scope=scope))


@pytest.mark.parametrize(
    ("scope", "pattern"),
    [
        ("pool", "r/z/m5.large"),
        ("zone", "r/z/*"),
        ("region", "r/*/*"),
        ("size", "r/*/m5.large"),
        ("family", "r/*/m5.*"),
        ("type", "*/*/m5.*"),
    ],
)
def test_scopes(scope: BanScope, pattern: str) -> None:
    """Each closes its part of one market."""
    assert reached(scope) == [("spot", pattern)]


def test_none_and_all() -> None:
    """Nothing, or the whole cloud in both markets."""
    assert reached("none") == []
    assert reached("provider") == [("spot", "*/*/*"), ("on_demand", "*/*/*")]


@pytest.mark.parametrize(
    ("instance_type", "family"),
    [
        ("Standard_D4s_v5", "Standard_D*s_v5"),
        ("Standard_D16ps_v6", "Standard_D*ps_v6"),
        ("Standard_E8-4s_v5", "Standard_E*s_v5"),
        ("Standard_NC24ads_A100_v4", "Standard_NC*ads_A100_v4"),
        ("Standard_NC4as_T4_v3", "Standard_NC*as_T4_v3"),
        ("Standard_F72", "Standard_F*"),
        ("p4d.24xlarge", "p4d.*"),
        ("unheard", "unheard"),
    ],
)
def test_families(instance_type: str, family: str) -> None:
    """The types that share a quota: by the family's letters, whatever the size; an unknown form is alone."""
    assert reached("family", instance_type) == [("spot", f"r/*/{family}")]


@pytest.mark.parametrize(("gpus", "family"), [(0, "n1-*"), (1, "n1-standard-4")])
def test_families_of_google_cloud(gpus: int, family: str) -> None:
    """Quotas of processors are by the letters before the hyphen; those of GPUs are not, so such a type is alone."""
    machine = Instance(provider="gcp", region="r", instance_type="n1-standard-4", accelerator_count=gpus)
    assert patterns("spot", machine, CapacityError("Code", "words", scope="family")) == [("spot", f"r/*/{family}")]


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*", "anything", True),
        ("m5.*", "m5.large", True),
        ("m5.*", "m5a.large", False),
        ("m5.large", "m5.large", True),
        ("m5.large", "m5.larger", False),
        ("Standard_D*s_v5", "Standard_D16s_v5", True),
        ("Standard_D*s_v5", "Standard_D16as_v4", False),
        ("Standard_D*s_v5", "Standard_Ds_v", False),
    ],
)
def test_a_family_bans_its_types(pattern: str, text: str, fits: bool) -> None:  # noqa: FBT001
    """What a refusal sets aside is what placement leaves alone, whatever the cloud's names look like."""
    assert part_matches(pattern, text) is fits


@pytest.mark.parametrize(
    ("region", "zone", "words"),
    [
        ("us-east-1", "us-east-1a", "us-east-1a"),
        ("eastus", "1", "eastus/1"),
        ("NY2", "", "NY2"),
        ("us-east-1", "use1-az1", "us-east-1/use1-az1"),
    ],
)
def test_a_place_names_its_region(region: str, zone: str, words: str) -> None:
    """Nobody has to guess which region zone 1 is in."""
    assert place_text(region, zone) == words
