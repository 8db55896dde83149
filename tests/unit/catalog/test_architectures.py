"""The architecture of a type is read off its name where a list does not say."""

import pytest

from spotferry.catalog.architectures import arch_of

GRAVITON = [
    "a1",
    "t4g",
    "m6g",
    "m6gd",
    "c6g",
    "c6gn",
    "c7g",
    "c7gn",
    "r6gd",
    "r8gb",
    "x2gd",
    "x8g",
    "im4gn",
    "is4gen",
    "i4g",
    "i8ge",
    "g5g",
    "hpc7g",
    "mac2",
    "mac2-m2pro",
]
OTHERS = [
    "t3",
    "m5",
    "c5d",
    "r5dn",
    "g3s",
    "g4dn",
    "g4ad",
    "g5",
    "g6e",
    "gr6",
    "p4de",
    "p5en",
    "trn1",
    "inf1",
    "mac1",
    "u-12tb1",
    "x2idn",
    "im4",
    "hpc6a",
    "vt1",
    "dl1",
    "z1d",
]


@pytest.mark.parametrize(
    "family",
    GRAVITON,
)
def test_graviton_families_are_arm(family: str) -> None:
    """Families with a g behind the generation, and the few that are ARM without it."""
    assert arch_of("aws", f"{family}.large") == "arm64"


@pytest.mark.parametrize(
    "family",
    OTHERS,
)
def test_all_other_families_are_x86(family: str) -> None:
    """A g in front of the generation means graphics, not Graviton."""
    assert arch_of("aws", f"{family}.large") == "x86_64"


@pytest.mark.parametrize(
    ("provider", "kind", "arch"),
    [
        ("gcp", "t2a-standard-1", "arm64"),
        ("gcp", "c4a-standard-4", "arm64"),
        ("gcp", "t2d-standard-1", "x86_64"),
        ("gcp", "n2-standard-2", "x86_64"),
        ("azure", "Standard_D2ps_v5", "arm64"),
        ("azure", "Standard_E2pds_v5", "arm64"),
        ("azure", "Standard_D2s_v5", "x86_64"),
        ("paperspace", "P4000", "x86_64"),
    ],
)
def test_other_clouds_have_names_of_their_own(provider: str, kind: str, arch: str) -> None:
    """GCP's ARM families are listed; Azure marks them by a p among the features."""
    assert arch_of(provider, kind) == arch
