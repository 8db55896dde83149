"""How far refusals reach."""

import pytest

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
