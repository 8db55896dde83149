"""AWS's prices end to end: the pricing model, through boto3, against the local cloud's EC2 and price list."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from spotferry.catalog.disk_prices import disk_usd_gib_month
from spotferry.domain.interruption_rates import class_rate
from spotferry.providers.aws.api import AwsApi, Service
from spotferry.providers.aws.placement_scores import FACTORS, FAMILIES_A_REGION
from spotferry.providers.aws.pricing import AwsPricing
from spotferry.providers.aws.pricing_list import read_prices
from spotferry.providers.aws.zones import ZoneNames
from spotferry.providers.context import PricingContext
from spotferry.providers.retries import Timing
from spotferry.types.errors import ProviderError, SkipProvider
from tests.contract.local_cloud import LocalCloud, local_cloud

REGION, OTHER = "eu-west-3", "eu-north-1"
TYPE = "m5.large"


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud whose machines have no processes."""
    with local_cloud(tmp_path_factory.mktemp("cloud"), "--no-metal", "--speed-up", "1") as running:
        yield running


@pytest.fixture(autouse=True)
def no_trouble(cloud: LocalCloud) -> Iterator[None]:
    """Whatever trouble a test orders ends with it."""
    yield
    cloud.lever("clear_faults")


def client(cloud: LocalCloud, service: Service, region: str) -> Any:  # Any: boto3 makes its clients at run time
    """A client of the local cloud that retries nothing."""
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=f"http://127.0.0.1:{cloud.port}",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}),
    )


def an_api(cloud: LocalCloud) -> AwsApi:
    """The adapter's way to the local cloud; its pauses pass at once."""
    return AwsApi(lambda service, region: client(cloud, service, region), Timing(sleep=lambda _seconds: None))


@pytest.fixture(scope="module")
def model(cloud: LocalCloud) -> AwsPricing:
    """A pricing model over the local cloud."""
    return AwsPricing(PricingContext(clock=lambda: datetime.now(UTC)), an_api(cloud))


def set_price(cloud: LocalCloud, zone: str, spot: str | None, on_demand: str) -> None:
    """Have the market ask this, and not move it."""
    price: dict[str, object] = {"provider": "aws", "region": REGION, "zone": zone, "type": TYPE}
    cloud.lever("prices", [price | {"spot": spot, "on_demand": on_demand, "fixed": True}])


def refused(call: Any) -> tuple[str, int]:  # Any: a bound call of the SDK
    """Code and status of a refusal."""
    with pytest.raises(ClientError) as refusal:
        call()
    response = refusal.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_offers_are_what_the_market_asks(cloud: LocalCloud, model: AwsPricing) -> None:
    """A price that moves is read anew, in the zone it holds for; a closed spot market is closed in the offers."""
    names = {z["ZoneId"]: z["ZoneName"] for z in cloud.ec2(REGION).describe_availability_zones()["AvailabilityZones"]}
    first, second, *_ = sorted(names)
    set_price(cloud, names[first], "0.0123", "0.112")
    set_price(cloud, names[second], None, "0.112")
    offers = {offer.zone: offer for offer in model.offers(REGION) if offer.instance_type == TYPE}
    assert set(offers) == set(names)
    assert (offers[first].spot_usd_hour, offers[first].on_demand_usd_hour) == (Decimal("0.0123"), Decimal("0.112"))
    assert (offers[second].spot_usd_hour, offers[second].on_demand_usd_hour) == (None, Decimal("0.112"))
    set_price(cloud, names[first], "0.0456", "0.112")
    moved = [o for o in model.offers(REGION) if (o.instance_type, o.zone) == (TYPE, first)]
    assert [offer.spot_usd_hour for offer in moved] == [Decimal("0.0456")]


def test_a_whole_region_is_priced(model: AwsPricing) -> None:
    """Hundreds of types over all pages: positive decimals, unique pools, both architectures, GPUs, the disk's price."""
    offers = list(model.offers(OTHER))
    assert len(offers) > 1000
    assert len({(offer.instance_type, offer.zone) for offer in offers}) == len(offers)
    assert all((offer.spot_usd_hour or 1) > 0 and (offer.on_demand_usd_hour or 1) > 0 for offer in offers)
    assert {offer.arch for offer in offers} == {"x86_64", "arm64"}
    assert any(offer.gpu_name == "T4" and offer.gpu_count == 8 for offer in offers)
    assert {offer.disk_usd_gib_month for offer in offers} == {disk_usd_gib_month("aws", OTHER)}


def test_scores_make_rates_of_pools_that_are_offered(model: AwsPricing) -> None:
    """A few whole families have a rate, by the ids of their zones, which is a factor on that of their class."""
    rates = {(rate.instance_type, rate.zone): rate.per_hour for rate in model.interruption_rates(REGION)}
    offers = {(offer.instance_type, offer.zone): offer for offer in model.offers(REGION)}
    assert rates.keys() <= offers.keys()
    assert 0 < len({name.partition(".")[0] for name, _ in rates}) <= FAMILIES_A_REGION
    usual = {pool: class_rate("aws", "spot", has_gpu=offers[pool].gpu_count > 0) for pool in rates}
    assert {rates[pool] / usual[pool] for pool in rates} <= set(FACTORS.values())


def test_a_launch_finds_the_zone_of_an_offer(cloud: LocalCloud, model: AwsPricing) -> None:
    """The zone of every offer is an id that a launch translates into the account's own name."""
    zones = {offer.zone for offer in model.offers(REGION)}
    calls, names = an_api(cloud).begin(REGION), ZoneNames()
    own = {z["ZoneName"] for z in cloud.ec2(REGION).describe_availability_zones()["AvailabilityZones"]}
    assert {names.name(calls, zone) for zone in zones} == own
    assert not zones & own


def test_the_market_knows_zones_by_id(cloud: LocalCloud) -> None:
    """The price history of one zone is asked for by its id, which is what offers have."""
    ec2 = cloud.ec2(REGION)
    zone = ec2.describe_availability_zones()["AvailabilityZones"][0]
    history = ec2.describe_spot_price_history(
        InstanceTypes=[TYPE],
        ProductDescriptions=["Linux/UNIX"],
        StartTime=datetime.now(UTC),
        Filters=[{"Name": "availability-zone-id", "Values": [zone["ZoneId"]]}],
    )["SpotPriceHistory"]
    assert {row["AvailabilityZone"] for row in history} <= {zone["ZoneName"]}
    nowhere = [{"Name": "availability-zone-id", "Values": ["mars1-az1"]}]
    assert ec2.describe_spot_price_history(InstanceTypes=[TYPE], Filters=nowhere)["SpotPriceHistory"] == []


def test_a_denied_region_fails_and_leaves_the_others(cloud: LocalCloud, model: AwsPricing) -> None:
    """403 in one region is that region's failure."""
    cloud.lever("regions/deny", {"region": OTHER, "code": "UnauthorizedOperation"})
    with pytest.raises(SkipProvider):
        next(model.offers(OTHER))
    assert next(model.offers(REGION)).region == REGION


@pytest.mark.parametrize("operation", ["DescribeSpotPriceHistory", "DescribeInstanceTypeOfferings", "GetProducts"])
def test_a_throttled_listing_is_waited_out_or_fails(cloud: LocalCloud, model: AwsPricing, operation: str) -> None:
    """Two refusals are got over; refusals without end fail the region."""
    cloud.lever("throttle", {"operation": operation, "region": REGION, "times": 2})
    assert next(model.offers(REGION)).region == REGION
    cloud.lever("throttle", {"operation": operation, "region": REGION, "times": 100})
    with pytest.raises(ProviderError):
        next(model.offers(REGION))


def test_the_price_list_has_what_must_be_filtered_out(cloud: LocalCloud) -> None:
    """Without the right filters a client finds Windows and reserved capacity at no price beside the plain machine."""
    pricing = client(cloud, "pricing", "us-east-1")
    only = {"Type": "TERM_MATCH", "Field": "instanceType", "Value": TYPE}
    where = {"Type": "TERM_MATCH", "Field": "regionCode", "Value": REGION}
    everything = pricing.get_products(ServiceCode="AmazonEC2", Filters=[only, where])["PriceList"]
    assert len(everything) == 3
    set_price(cloud, f"{REGION}a", "0.01", "0.112")
    assert read_prices(an_api(cloud), REGION, datetime.now(UTC)).machines[TYPE] == Decimal("0.112")


def test_the_price_list_refuses_as_the_real_one(cloud: LocalCloud) -> None:
    """Another service, a page that is too large, a filter it cannot do, credentials that were revoked."""
    pricing = client(cloud, "pricing", "us-east-1")
    where = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": REGION}]
    assert refused(lambda: pricing.get_products(ServiceCode="AmazonS3", Filters=where))[0] == "NotFoundException"
    wrong: list[dict[str, Any]] = [{"MaxResults": 101}, {"NextToken": "x"}, {"Filters": []}]
    for asked in wrong:
        ask = partial(pricing.get_products, ServiceCode="AmazonEC2", **({"Filters": where} | asked))
        assert refused(ask) == ("InvalidParameterException", 400)
    assert refused(lambda: pricing.describe_services(ServiceCode="AmazonEC2"))[0] == "UnknownOperationException"
    cloud.lever("credentials/revoke", {"access_key": "key"})
    code, _ = refused(lambda: pricing.get_products(ServiceCode="AmazonEC2", Filters=where))
    assert code == "UnrecognizedClientException"


def test_a_region_that_nobody_has_is_not_priced(cloud: LocalCloud) -> None:
    """No machine in the list of a region is a failure, not an empty region."""
    with pytest.raises(ProviderError, match="NoPriceList"):
        read_prices(an_api(cloud), "mars-north-1", datetime.now(UTC))
