"""Answers of EC2 and of the price list about prices, in the shape of each, for stubs to give."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from botocore.stub import ANY

from spotferry.providers.aws.pricing import AwsPricing
from spotferry.providers.context import PricingContext
from tests.unit.providers.aws.rig import NOW, REGION, Rig

# Any: answers as the SDK has them, trees of plain values.
Answer = dict[str, Any]
ZONES = {"us-east-1a": "use1-az4", "us-east-1b": "use1-az6"}
USUAL_DISK = Decimal("0.11")
SPOT_QUESTION = {"StartTime": NOW, "ProductDescriptions": ["Linux/UNIX"], "MaxResults": 1000}
OFFERINGS_QUESTION = {"LocationType": "availability-zone-id", "MaxResults": 1000}


def zones(names: Mapping[str, str] = ZONES) -> Answer:
    """The region's own zones, and a local zone beside them."""
    own = [
        {"ZoneName": name, "ZoneId": zone_id, "ZoneType": "availability-zone", "State": "available"}
        for name, zone_id in names.items()
    ]
    local = {"ZoneName": "us-east-1-bos-1a", "ZoneId": "use1-bos1-az1", "ZoneType": "local-zone", "State": "available"}
    return {"AvailabilityZones": [*own, local]}


def offerings(*pools: tuple[str, str], token: str | None = None) -> Answer:
    """Pairs of type and zone id that EC2 offers."""
    rows = [{"InstanceType": name, "LocationType": "availability-zone-id", "Location": zone} for name, zone in pools]
    return {"InstanceTypeOfferings": rows} | ({} if token is None else {"NextToken": token})


def spot_row(name: str, zone: str, price: str | None, at: datetime = NOW - timedelta(hours=1)) -> Answer:
    """One spot price as of a time, its zone by name."""
    row = {
        "InstanceType": name,
        "AvailabilityZone": zone,
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": price,
        "Timestamp": at,
    }
    return {key: value for key, value in row.items() if value is not None}


def spot_page(*rows: Answer, token: str | None = None) -> Answer:
    """A page of the price history."""
    return {"SpotPriceHistory": list(rows)} | ({} if token is None else {"NextToken": token})


def fact(name: str, *archs: str, vcpus: int = 2, memory_mib: int = 8192, gpus: Answer | None = None) -> Answer:
    """A type as DescribeInstanceTypes tells it."""
    known: Answer = {
        "InstanceType": name,
        "ProcessorInfo": {"SupportedArchitectures": list(archs) or ["x86_64"]},
        "VCpuInfo": {"DefaultVCpus": vcpus},
        "MemoryInfo": {"SizeInMiB": memory_mib},
    }
    return known | ({} if gpus is None else {"GpuInfo": gpus})


def gpus(name: str, count: int, mib: int) -> Answer:
    """The GPUs of a type."""
    gpu = {"Name": name, "Manufacturer": "NVIDIA", "Count": count, "MemoryInfo": {"SizeInMiB": mib}}
    return {"Gpus": [gpu], "TotalGpuMemoryInMiB": max(count, 1) * mib}


def term(price: str | None, unit: str = "Hrs", begins: str = "2020-01-01T00:00:00Z", currency: str = "USD") -> Answer:
    """One term of a product."""
    dimension: Answer = {"unit": unit, "pricePerUnit": {} if price is None else {currency: price}}
    return {"effectiveDate": begins, "priceDimensions": {"rate": dimension}}


def product(terms: Sequence[Answer], family: str = "Compute Instance", **attributes: str) -> str:
    """One entry of the price list: JSON in JSON."""
    on_demand = {f"term-{n}": each for n, each in enumerate(terms)}
    return json.dumps(
        {"product": {"productFamily": family, "attributes": attributes}, "terms": {"OnDemand": on_demand}}
    )


def machine(name: str, price: str | None, operation: str = "RunInstances") -> str:
    """A machine in the price list."""
    return product([term(price)], instanceType=name, operation=operation)


def disk(price: str | None) -> str:
    """The disk in the price list."""
    return product([term(price, "GB-Mo")], "Storage", volumeApiName="gp3")


def products_question(*, disks: bool = False, region: str = REGION, token: str = "") -> Answer:
    """What the price list must be asked, to the letter."""
    wanted = (
        {"productFamily": "Storage", "volumeApiName": "gp3"}
        if disks
        else {
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
        }
    )
    filters = [{"Type": "TERM_MATCH", "Field": f, "Value": v} for f, v in {"regionCode": region, **wanted}.items()]
    asked: Answer = {"ServiceCode": "AmazonEC2", "Filters": filters, "MaxResults": 100}
    return asked | ({"NextToken": token} if token else {})


class PriceRig(Rig):
    """A pricing model over stubs, and what it noted."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[str, str, str]] = []
        context = PricingContext(
            clock=lambda: self.now,
            note=lambda *note: self.notes.append(note),
            disk_usd_gib_month=lambda _provider, _region: USUAL_DISK,
        )
        self.pricing = AwsPricing(context, self.api)

    def answer(
        self,
        pools: Sequence[tuple[str, str]],
        spot: Sequence[Answer],
        listed: Sequence[str],
        facts: Sequence[Answer],
        disks: Sequence[str] = (disk("0.08"),),
    ) -> None:
        """Let a whole region be answered, each listing in one page."""
        ec2, prices = self.stub(), self.stub("pricing")
        ec2.add_response("describe_availability_zones", zones(), {})
        ec2.add_response("describe_instance_type_offerings", offerings(*pools, token=""), OFFERINGS_QUESTION)
        ec2.add_response("describe_spot_price_history", spot_page(*spot, token=""), SPOT_QUESTION)
        prices.add_response("get_products", {"PriceList": list(listed), "NextToken": ""}, products_question())
        prices.add_response("get_products", {"PriceList": list(disks)}, products_question(disks=True))
        ec2.add_response("describe_instance_types", {"InstanceTypes": list(facts)}, {"InstanceTypes": ANY})
