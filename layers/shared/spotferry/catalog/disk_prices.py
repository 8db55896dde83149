"""What a GiB of the disk that machines boot from costs a month, by cloud and region, US dollars.

AWS: EBS gp3, list price per GB-month. GCP: balanced persistent disk. Azure: Standard SSD, the E-tiers' price divided by
their size. Paperspace: block storage. A region that no table knows has its cloud's highest price, so that an unknown
disk never makes a machine look cheap.
"""

from collections.abc import Mapping
from decimal import Decimal

_AWS = {
    "af-south-1": "0.1047",
    "ap-east-1": "0.1056",
    "ap-northeast-1": "0.096",
    "ap-northeast-2": "0.0912",
    "ap-northeast-3": "0.096",
    "ap-south-1": "0.0912",
    "ap-south-2": "0.0912",
    "ap-southeast-1": "0.096",
    "ap-southeast-2": "0.096",
    "ap-southeast-3": "0.096",
    "ap-southeast-4": "0.096",
    "ca-central-1": "0.088",
    "ca-west-1": "0.088",
    "eu-central-1": "0.0952",
    "eu-central-2": "0.1142",
    "eu-north-1": "0.0836",
    "eu-south-1": "0.0924",
    "eu-south-2": "0.088",
    "eu-west-1": "0.088",
    "eu-west-2": "0.0928",
    "eu-west-3": "0.0928",
    "il-central-1": "0.0968",
    "me-central-1": "0.0968",
    "me-south-1": "0.0968",
    "sa-east-1": "0.152",
    "us-east-1": "0.08",
    "us-east-2": "0.08",
    "us-west-1": "0.096",
    "us-west-2": "0.08",
}
_GCP = {
    "asia-east1": "0.10",
    "asia-east2": "0.11",
    "asia-northeast1": "0.13",
    "asia-northeast2": "0.13",
    "asia-northeast3": "0.13",
    "asia-south1": "0.12",
    "asia-southeast1": "0.11",
    "asia-southeast2": "0.13",
    "australia-southeast1": "0.135",
    "europe-central2": "0.12",
    "europe-north1": "0.11",
    "europe-west1": "0.10",
    "europe-west2": "0.12",
    "europe-west3": "0.12",
    "europe-west4": "0.11",
    "europe-west6": "0.13",
    "northamerica-northeast1": "0.11",
    "southamerica-east1": "0.15",
    "us-central1": "0.10",
    "us-east1": "0.10",
    "us-east4": "0.11",
    "us-west1": "0.10",
    "us-west2": "0.12",
    "us-west3": "0.12",
    "us-west4": "0.11",
}
_AZURE = {"eastus": "0.075", "westus2": "0.075", "westeurope": "0.075", "northeurope": "0.075"}
_PAPERSPACE = {"AMS1": "0.10", "CA1": "0.10", "NY2": "0.10"}

_BY_PROVIDER: Mapping[str, Mapping[str, Decimal]] = {
    provider: {region: Decimal(price) for region, price in table.items()}
    for provider, table in (("aws", _AWS), ("gcp", _GCP), ("azure", _AZURE), ("paperspace", _PAPERSPACE))
}


def disk_usd_gib_month(provider: str, region: str) -> Decimal:
    """Price of a GiB for a month in a region; the cloud's highest where the region is not known, 0 for a new cloud."""
    table = _BY_PROVIDER.get(provider, {})
    return table.get(region, max(table.values(), default=Decimal(0)))
