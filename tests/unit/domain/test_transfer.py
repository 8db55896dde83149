"""What carrying data costs: by the cloud that it leaves, and by how far it goes."""

from decimal import Decimal

import pytest

from spotferry.domain.transfer import transfer_usd, usd_per_gb
from spotferry.types.job_file import Input


@pytest.mark.parametrize(
    ("location", "to", "usd"),
    [
        ("aws/us-east-1", "aws/us-east-1", "0"),
        ("aws/us-east-1", "aws/eu-west-1", "0.02"),
        ("aws/sa-east-1", "aws/us-east-1", "0.138"),
        ("aws/ap-south-1", "aws/ap-south-2", "0.086"),
        ("aws/us-east-1", "gcp/us-east1", "0.09"),
        ("aws/ap-northeast-1", "azure/japaneast", "0.114"),
        ("aws/mars-1", "gcp/us-east1", "0.09"),
        ("gcp/us-central1", "gcp/us-central1", "0"),
        ("gcp/us-central1", "gcp/northamerica-northeast1", "0.02"),
        ("gcp/us-central1", "gcp/europe-west4", "0.05"),
        ("gcp/us-central1", "gcp/asia-east1", "0.08"),
        ("gcp/asia-east1", "gcp/us-central1", "0.08"),
        ("gcp/europe-west1", "gcp/southamerica-east1", "0.14"),
        ("gcp/us-central1", "aws/us-east-1", "0.12"),
        ("gcp/australia-southeast1", "paperspace/NY2", "0.19"),
        ("azure/eastus", "azure/westus2", "0.02"),
        ("azure/eastus", "azure/westeurope", "0.05"),
        ("azure/eastus", "azure/japaneast", "0.05"),
        ("azure/japaneast", "azure/eastus", "0.08"),
        ("azure/northeurope", "azure/uksouth", "0.02"),
        ("azure/brazilsouth", "aws/sa-east-1", "0.181"),
        ("paperspace/NY2", "aws/us-east-1", "0"),
        ("", "aws/us-east-1", "0"),
    ],
)
def test_price_is_that_of_the_way(location: str, to: str, usd: str) -> None:
    """Free within a region, cheap within a cloud, dear out of it, free from where nobody bills."""
    provider, _, region = to.partition("/")
    assert usd_per_gb(location, provider, region) == Decimal(usd)


def test_inputs_are_summed() -> None:
    """Each input leaves from where it is."""
    inputs = [
        Input(uri="s3://a/x", location="aws/us-east-1", size_gb=Decimal(500)),
        Input(uri="gs://a/x", location="gcp/us-central1", size_gb=Decimal("2.5")),
        Input(uri="https://a/x", size_gb=Decimal(9)),
    ]
    assert transfer_usd(inputs, "aws", "us-east-1") == Decimal("0.30")
    assert transfer_usd(inputs, "gcp", "us-central1") == Decimal(45)
    assert transfer_usd([], "aws", "us-east-1") == 0
