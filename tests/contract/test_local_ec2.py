"""The EC2 face as boto3 sees it: launches and their refusals, idempotency, describe, terminate, spot data."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import HTTPClientError

from local import ec2_moto
from local.ec2 import public_image_id
from tests.contract.local_cloud import UBUNTU, LocalCloud, eventually, launch, local_cloud, refused

ROOT_DISK = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 7}}
MANY = 1200


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A cloud whose machines have no processes; every test has a region to itself."""
    with local_cloud(tmp_path_factory.mktemp("cloud"), "--no-metal", "--boot-seconds", "0.1") as running:
        yield running


def spot(**options: str) -> dict[str, Any]:
    """Market options with these spot options."""
    return {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time", **options}}


def test_a_spot_machine_is_launched_as_it_was_asked_for(cloud: LocalCloud) -> None:
    """Lifecycle, request id, tags, zone, address, token and disk are there at once, then it runs."""
    ec2 = cloud.ec2("eu-west-1")
    zone = "eu-west-1b"
    tags = [{"Key": "spotferry:job", "Value": "job-1"}]
    made = launch(
        ec2,
        ClientToken="token-1",
        Placement={"AvailabilityZone": zone},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        IamInstanceProfile={"Name": "worker"},
    )
    assert (made["State"]["Name"], made["InstanceLifecycle"], made["ClientToken"]) == ("pending", "spot", "token-1")
    assert made["SpotInstanceRequestId"].startswith("sir-")
    assert (made["Placement"]["AvailabilityZone"], made["Tags"]) == (zone, tags)
    assert made["PrivateIpAddress"].startswith("172.31.")
    assert made["IamInstanceProfile"]["Arn"].endswith(":instance-profile/worker")

    def seen() -> Any:
        found = ec2.describe_instances(InstanceIds=[made["InstanceId"]])["Reservations"][0]["Instances"][0]
        return found if found["State"]["Name"] == "running" else None

    assert eventually(seen)["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"


def test_a_client_token_buys_one_machine_also_when_the_answer_was_lost(cloud: LocalCloud) -> None:
    """Same token and request answer the same machine, a changed request is refused, a lost answer is found again."""
    ec2 = cloud.ec2("eu-west-2")
    cloud.lever("lose_answers", {"operation": "RunInstances", "times": 1})
    with pytest.raises(HTTPClientError):
        launch(ec2, ClientToken="lost")
    with ThreadPoolExecutor(4) as threads:
        again = list(threads.map(lambda _: launch(ec2, ClientToken="lost")["InstanceId"], range(4)))
    assert len(set(again)) == 1
    assert refused(lambda: launch(ec2, ClientToken="lost", InstanceType="m5.xlarge")) == (
        "IdempotentParameterMismatch",
        400,
    )
    found = ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["lost"]}])["Reservations"]
    assert [reservation["Instances"][0]["InstanceId"] for reservation in found] == again[:1]


@pytest.mark.parametrize(
    ("changes", "code", "status"),
    [
        ({"InstanceType": "m5.gigantic"}, "InvalidParameterValue", 400),
        ({"UserData": "x" * 16385}, "InvalidParameterValue", 400),
        ({"BlockDeviceMappings": [ROOT_DISK]}, "InvalidBlockDeviceMapping", 400),
        ({"ImageId": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound", 400),
        ({"ImageId": "ubuntu"}, "InvalidAMIID.Malformed", 400),
        ({"SubnetId": "subnet-0123456789abcdef0"}, "InvalidSubnetID.NotFound", 400),
        ({"SecurityGroupIds": ["sg-0123456789abcdef0"]}, "InvalidGroup.NotFound", 400),
        ({"Placement": {"AvailabilityZone": "us-east-1z"}}, "InvalidParameterValue", 400),
        ({"Placement": {"AvailabilityZone": "us-east-1e"}}, "Unsupported", 400),
        ({"InstanceMarketOptions": spot(MaxPrice="0.000001")}, "SpotMaxPriceTooLow", 400),
        ({"InstanceMarketOptions": spot(MaxPrice="cheap")}, "InvalidParameterValue", 400),
        ({"InstanceType": "m7g.large"}, "InvalidParameterValue", 400),
        ({"MaxCount": 2}, "InvalidParameterValue", 400),
        ({"DryRun": True}, "DryRunOperation", 412),
    ],
)
def test_a_wrong_launch_is_refused_as_ec2_does_and_makes_no_machine(
    cloud: LocalCloud, changes: dict[str, Any], code: str, status: int
) -> None:
    """Each mistake has EC2's code and HTTP status, and nothing was bought."""
    ec2 = cloud.ec2("us-east-1")
    assert refused(lambda: launch(ec2, **changes)) == (code, status)
    assert ec2.describe_instances()["Reservations"] == []


def test_user_data_at_the_limit_is_accepted(cloud: LocalCloud) -> None:
    """16384 raw bytes are the most EC2 takes."""
    assert launch(cloud.ec2("eu-west-3"), UserData="x" * 16384)["InstanceId"]


def test_stockouts_and_quotas_have_their_own_errors_by_purchase(cloud: LocalCloud) -> None:
    """No capacity is a 500; spot and on-demand quotas are 400s with codes of their own; restored pools sell again."""
    ec2 = cloud.ec2("us-west-2")
    cloud.lever("exhaust", {"region": "us-west-2", "instance_type": "m5.*"})
    assert refused(lambda: launch(ec2)) == ("InsufficientInstanceCapacity", 500)
    assert refused(lambda: launch(ec2, InstanceMarketOptions=None)) == ("InsufficientInstanceCapacity", 500)
    assert launch(ec2, InstanceType="c5.large")
    cloud.lever("restore", {"region": "us-west-2", "instance_type": "m5.*"})
    assert launch(ec2)
    for purchase in ("spot", "on_demand"):
        cloud.lever("quota", {"region": "us-west-2", "purchase": purchase, "vcpus": 1})
    assert refused(lambda: launch(ec2)) == ("MaxSpotInstanceCountExceeded", 400)
    assert refused(lambda: launch(ec2, InstanceMarketOptions=None)) == ("VcpuLimitExceeded", 400)
    assert launch(ec2, InstanceType="g4dn.xlarge")


def test_throttling_credentials_and_regions_are_denied_on_order(cloud: LocalCloud) -> None:
    """Each denial has EC2's code, is as wide as ordered, and ends."""
    ec2, other = cloud.ec2("ca-central-1"), cloud.ec2("ca-central-1", access_key="other")
    cloud.lever("throttle", {"operation": "Describe*", "region": "ca-central-1", "times": 2})
    throttled = [refused(ec2.describe_instances), refused(ec2.describe_subnets)]
    assert throttled == [("RequestLimitExceeded", 503)] * 2
    cloud.lever("credentials/revoke", {"access_key": "other"})
    assert refused(other.describe_instances) == ("AuthFailure", 401)
    cloud.lever("credentials/restore", {"access_key": "other"})
    cloud.lever("regions/deny", {"region": "ca-central-1"})
    assert refused(other.describe_instances) == ("UnauthorizedOperation", 403)
    assert cloud.ec2("sa-east-1").describe_instances()["Reservations"] == []
    cloud.lever("regions/allow", {"region": "ca-central-1"})
    assert other.describe_instances()["Reservations"] == []


def test_describe_pages_through_more_than_a_thousand_machines(cloud: LocalCloud) -> None:
    """Twelve hundred machines come once each, by pages, and all end in two calls."""
    ec2 = cloud.ec2("eu-north-1")
    cloud.lever("quota", {"region": "eu-north-1", "vcpus": 10_000})
    cloud.lever("capacity", {"region": "eu-north-1", "machines": 10_000})
    with ThreadPoolExecutor(8) as threads:
        made = set(threads.map(lambda _: launch(ec2, InstanceType="t3.micro")["InstanceId"], range(MANY)))
    pages = list(ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 500}))
    assert [len(page["Reservations"]) for page in pages] == [500, 500, 200]
    found = [reservation["Instances"][0]["InstanceId"] for page in pages for reservation in page["Reservations"]]
    assert (len(found), set(found)) == (MANY, made)
    assert len(ec2.describe_instances(InstanceIds=found[:500])["Reservations"]) == 500
    for ids in (found[:1000], found[1000:]):
        ec2.terminate_instances(InstanceIds=ids)
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    assert ec2.describe_instances(Filters=alive)["Reservations"] == []


def test_describe_and_terminate_are_all_or_nothing_on_ids(cloud: LocalCloud) -> None:
    """One missing id fails the whole call and ends no machine; paging cannot be combined with ids."""
    ec2 = cloud.ec2("ap-south-1")
    made = launch(ec2)["InstanceId"]
    ids = [made, "i-0123456789abcdef0"]
    assert refused(lambda: ec2.describe_instances(InstanceIds=ids)) == ("InvalidInstanceID.NotFound", 400)
    assert refused(lambda: ec2.terminate_instances(InstanceIds=ids)) == ("InvalidInstanceID.NotFound", 400)
    assert refused(lambda: ec2.describe_instances(InstanceIds=["i-x"])) == ("InvalidInstanceID.Malformed", 400)
    assert refused(lambda: ec2.describe_instances(InstanceIds=[made], MaxResults=5)) == (
        "InvalidParameterCombination",
        400,
    )
    eventually(lambda: ec2.describe_instance_status(InstanceIds=[made])["InstanceStatuses"])
    first = ec2.terminate_instances(InstanceIds=[made])["TerminatingInstances"][0]
    assert (first["PreviousState"]["Name"], first["CurrentState"]["Name"]) == ("running", "shutting-down")
    eventually(lambda: cloud.machine(made)["state"] == "terminated")
    again = ec2.terminate_instances(InstanceIds=[made])["TerminatingInstances"][0]
    assert (again["PreviousState"]["Name"], again["CurrentState"]["Name"]) == ("terminated", "terminated")
    shown = ec2.describe_instances(InstanceIds=[made])["Reservations"][0]["Instances"][0]
    assert shown["StateReason"]["Code"] == "Client.UserInitiatedShutdown"


def test_filters_find_by_tag_state_lifecycle_and_refuse_what_they_do_not_know(cloud: LocalCloud) -> None:
    """Filters are combined, values may have wildcards, unknown names are an error."""
    ec2 = cloud.ec2("ap-northeast-1")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "deployment", "Value": "blue"}]}]
    on_spot = launch(ec2, TagSpecifications=tags)["InstanceId"]
    launch(ec2, TagSpecifications=tags, InstanceMarketOptions=None)

    def found(**filters: str) -> list[str]:
        wanted = [{"Name": name.replace("__", ":").replace("_", "-"), "Values": [v]} for name, v in filters.items()]
        reservations = ec2.describe_instances(Filters=wanted)["Reservations"]
        return [reservation["Instances"][0]["InstanceId"] for reservation in reservations]

    assert len(found(tag__deployment="bl*")) == 2
    assert found(tag__deployment="blue", instance_lifecycle="spot") == [on_spot]
    assert found(tag__deployment="green") == []
    assert refused(lambda: found(colour="blue")) == ("InvalidParameterValue", 400)


def test_a_new_machine_can_be_invisible_at_first(cloud: LocalCloud) -> None:
    """Not found is not gone: the machine appears when the ordered delay is over."""
    ec2 = cloud.ec2("ap-northeast-2")
    cloud.lever("visibility", {"seconds": 0.5})
    made = launch(ec2)["InstanceId"]
    cloud.lever("visibility", {"seconds": 0})
    assert refused(lambda: ec2.describe_instances(InstanceIds=[made])) == ("InvalidInstanceID.NotFound", 400)
    assert eventually(lambda: ec2.describe_instances()["Reservations"])


def test_spot_requests_tell_how_it_ended(cloud: LocalCloud) -> None:
    """Fulfilled, marked, then taken for capacity, for its price, or ended by its owner."""
    ec2 = cloud.ec2("ap-southeast-1")
    names = ("capacity", "price", "user")
    ids = {name: launch(ec2, InstanceMarketOptions=spot(MaxPrice="5"))["InstanceId"] for name in names}

    def code(name: str) -> str:
        wanted = [{"Name": "instance-id", "Values": [ids[name]]}]
        status = ec2.describe_spot_instance_requests(Filters=wanted)["SpotInstanceRequests"][0]["Status"]["Code"]
        return str(status)

    assert code("capacity") == "fulfilled"
    cloud.lever("interrupt", {"allocated_id": ids["capacity"], "notice_seconds": 1})
    assert code("capacity") == "marked-for-termination"
    ec2.terminate_instances(InstanceIds=[ids["user"]])
    assert code("user") == "instance-terminated-by-user"
    eventually(lambda: code("capacity") == "instance-terminated-no-capacity")
    zone = cloud.machine(ids["price"])["zone"]
    dear = {"region": "ap-southeast-1", "zone": zone, "type": "m5.large", "spot": "6", "on_demand": "7", "fixed": True}
    cloud.lever("prices", [dear])
    assert code("price") == "marked-for-termination"
    missing = ["sir-00000000"]
    assert refused(lambda: ec2.describe_spot_instance_requests(SpotInstanceRequestIds=missing)) == (
        "InvalidSpotInstanceRequestID.NotFound",
        400,
    )


def test_prices_that_were_set_are_what_history_tells_and_machines_pay(cloud: LocalCloud) -> None:
    """A catalogue row, its zone by id, is the current price, in the paged history too, and on the bill."""
    ec2 = cloud.ec2("eu-central-1")
    row = {"region": "eu-central-1", "zone": "euc1-az2", "type": "m5.large", "spot": "0.031", "on_demand": "0.115"}
    assert cloud.lever("prices", [row, {**row, "type": "m5.gigantic"}]) == {"set": 1, "unknown_types": ["m5.gigantic"]}
    retired = {**row, "type": "p3.2xlarge", "spot": "1.1", "on_demand": "3.3", "vcpus": 8, "memory_gib": 61, "gpus": 1}
    assert cloud.lever("prices", [retired])["unknown_types"] == []
    assert launch(ec2, InstanceType="p3.2xlarge", Placement={"AvailabilityZone": "eu-central-1b"})
    query = {"StartTime": datetime.now(UTC), "ProductDescriptions": ["Linux/UNIX"], "InstanceTypes": ["m5.large"]}
    now = ec2.describe_spot_price_history(**query)["SpotPriceHistory"]
    prices = {(price["AvailabilityZone"], price["AvailabilityZoneId"]): price["SpotPrice"] for price in now}
    assert len(prices) == 3
    assert prices["eu-central-1b", "euc1-az2"] == "0.031000"
    made = launch(ec2, Placement={"AvailabilityZone": "eu-central-1b"})
    assert cloud.machine(made["InstanceId"])["price_usd_hour"] == "0.031"
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        ProductDescriptions=["Linux/UNIX"], InstanceTypes=["m5.large", "c5.large"], PaginationConfig={"PageSize": 40}
    )
    rows = [row for page in pages for row in page["SpotPriceHistory"]]
    keys = [(row["InstanceType"], row["AvailabilityZone"], row["Timestamp"]) for row in rows]
    assert len(keys) == len(set(keys)) > 250
    windows = ec2.describe_spot_price_history(**{**query, "ProductDescriptions": ["Windows"]})
    assert windows["SpotPriceHistory"] == []


def test_placement_scores_fall_with_the_capacity_that_is_left(cloud: LocalCloud) -> None:
    """A region without capacity scores 1, a fresh one high, few types low."""
    ec2 = cloud.ec2("us-east-2")
    cloud.lever("exhaust", {"region": "us-west-1"})
    wish = {"InstanceTypes": ["m5.large", "c5.large", "r5.large"], "TargetCapacity": 1}
    answer = ec2.get_spot_placement_scores(**wish, RegionNames=["us-east-2", "us-west-1"])["SpotPlacementScores"]
    assert [(score["Region"], score["Score"]) for score in answer] == [("us-east-2", 10), ("us-west-1", 1)]
    few = ec2.get_spot_placement_scores(**{**wish, "InstanceTypes": ["m5.large"]}, RegionNames=["us-east-2"])
    assert few["SpotPlacementScores"][0]["Score"] == 3


def test_images_zones_types_and_networks_are_the_ones_machines_can_use(cloud: LocalCloud) -> None:
    """Public images are described; zones, types and default subnets come from moto and fit together."""
    ec2 = cloud.ec2("eu-south-1")
    image = ec2.describe_images(ImageIds=[public_image_id("eu-south-1", UBUNTU)])["Images"][0]
    assert (image["RootDeviceName"], image["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"]) == ("/dev/sda1", 8)
    zones = {zone["ZoneName"]: zone["ZoneId"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]}
    subnets = {subnet["AvailabilityZone"]: subnet["SubnetId"] for subnet in ec2.describe_subnets()["Subnets"]}
    assert zones["eu-south-1a"] == "eus1-az1"
    assert subnets.keys() == zones.keys()
    group = ec2.describe_security_groups()["SecurityGroups"][0]["GroupId"]
    assert {subnet["OwnerId"] for subnet in ec2.describe_subnets()["Subnets"]} == {ec2_moto.ACCOUNT_ID}
    made = launch(ec2, SubnetId=subnets["eu-south-1c"], SecurityGroupIds=[group])
    assert (made["Placement"]["AvailabilityZone"], made["SecurityGroups"][0]["GroupId"]) == ("eu-south-1c", group)
    size = ec2.describe_instance_types(InstanceTypes=["m5.xlarge"])["InstanceTypes"][0]["VCpuInfo"]["DefaultVCpus"]
    assert size == 4


def test_a_lever_pulled_wrongly_says_what_is_wrong(cloud: LocalCloud) -> None:
    """Wrong bodies are 400, unknown levers and machines 404, senseless wishes 409."""
    on_demand = launch(cloud.ec2("me-south-1"), InstanceMarketOptions=None)["InstanceId"]
    asked = [
        cloud.ask("POST", "interrupt", {"allocated": "i-1"}),
        cloud.ask("POST", "prices", [{"region": "eu-west-1", "zone": "mars", "type": "m5.large"}]),
        cloud.ask("POST", "abolish", {}),
        cloud.ask("POST", "kill", {"allocated_id": "i-nobody"}),
        cloud.ask("POST", "interrupt", {"allocated_id": on_demand}),
    ]
    assert [status for status, _ in asked] == [400, 400, 404, 404, 409]
    assert all(answer["error"] for _, answer in asked)
