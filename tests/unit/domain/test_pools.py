"""How far a refusal reaches."""

import pytest

from spotferry.domain.pools import patterns
from spotferry.types.errors import BanScope, CapacityError
from spotferry.types.instance import Instance

AWS = Instance(region="us-east-1", availability_zone="us-east-1a", instance_type="m5.large")
GCP = Instance(region="us-central1", availability_zone="us-central1-a", instance_type="n2-standard-2")
REACHES: list[tuple[BanScope, list[str], list[str]]] = [
    ("none", [], []),
    ("pool", ["us-east-1/us-east-1a/m5.large"], ["us-central1/us-central1-a/n2-standard-2"]),
    ("zone", ["us-east-1/us-east-1a/*"], ["us-central1/us-central1-a/*"]),
    ("region", ["us-east-1/*/*"], ["us-central1/*/*"]),
    ("family", ["us-east-1/*/m5.*"], ["us-central1/*/n2-standard-2"]),
    ("type", ["*/*/m5.*"], ["*/*/n2-standard-2"]),
]


@pytest.mark.parametrize(("scope", "of_aws", "of_gcp"), REACHES)
def test_a_refusal_reaches_its_scope_in_its_market(scope: BanScope, of_aws: list[str], of_gcp: list[str]) -> None:
    """A family is told from a type by the dot in its name, where a cloud writes one."""
    refusal = CapacityError("code", "words", scope=scope)
    assert patterns("spot", AWS, refusal) == [("spot", pattern) for pattern in of_aws]
    assert patterns("spot", GCP, refusal) == [("spot", pattern) for pattern in of_gcp]


def test_a_refusal_by_the_cloud_reaches_both_markets() -> None:
    """Nothing of it is to be had, however it is bought."""
    refusal = CapacityError("code", "words", scope="provider")
    assert patterns("spot", AWS, refusal) == [("spot", "*/*/*"), ("on_demand", "*/*/*")]
