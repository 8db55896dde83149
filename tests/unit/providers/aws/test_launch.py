"""What is asked of EC2 for one machine, to the letter."""

from decimal import Decimal
from typing import Any

import pytest

from spotferry.providers.aws import launch
from spotferry.providers.aws.images import Image
from spotferry.types.errors import LaunchRefused, ProviderUnavailable, TryNextZone
from spotferry.types.instance import Instance
from tests.unit.providers.aws.rig import IMAGE, TAGS, TOKEN, Rig, a_launch, an_attempt, machine, reservations, settings

LISTED = [{"Key": key, "Value": value} for key, value in sorted(TAGS.items())]
RUN: dict[str, object] = {
    "ClientToken": TOKEN,
    "MinCount": 1,
    "MaxCount": 1,
    "ImageId": IMAGE,
    "InstanceType": "m5.large",
    "UserData": f"#!/bin/bash\n# {TOKEN}\n",
    "InstanceInitiatedShutdownBehavior": "terminate",
    "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
    "BlockDeviceMappings": [
        {
            "DeviceName": "/dev/sda1",
            "Ebs": {"VolumeSize": 20, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True},
        }
    ],
    "InstanceMarketOptions": {
        "MarketType": "spot",
        "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
    },
    "TagSpecifications": [
        {"ResourceType": kind, "Tags": LISTED} for kind in ("instance", "volume", "spot-instances-request")
    ],
    "Placement": {"AvailabilityZone": "us-east-1a"},
}


def test_a_spot_machine_is_asked_for_with_everything_it_needs() -> None:
    """The request has token, spot options, IMDSv2, shutdown means terminate, an encrypted disk, tags and zone."""
    rig = Rig()
    answer = machine("i-new", "pending", PublicIpAddress="198.51.100.7")
    rig.stub().add_response("run_instances", {"Instances": [answer]}, RUN)
    made = rig.provider.create_instance(an_attempt())
    assert (made.allocated_id, made.state, made.ip_address) == ("i-new", "pending", "198.51.100.7")
    assert (made.cedana_id, made.availability_zone) == (TOKEN, "us-east-1a")
    rig.done()


def test_a_repeat_is_the_same_request() -> None:
    """Two calls for one attempt are equal to the byte, so that EC2 sees the token with the request it knows."""
    attempt = an_attempt()
    assert attempt.launch is not None
    first, second = (launch.run_instances(attempt, attempt.launch, "#!") for _ in range(2))
    assert repr(first) == repr(second)


def test_an_on_demand_machine_has_no_spot_part() -> None:
    """An on-demand machine is asked for without market options, and no spot request is tagged."""
    attempt = an_attempt(market="on_demand", launch=a_launch(max_price_usd_hour=Decimal("0.05")))
    assert attempt.launch is not None
    params = launch.run_instances(attempt, attempt.launch, "#!")
    assert "InstanceMarketOptions" not in params
    assert [t["ResourceType"] for t in listed(params, "TagSpecifications")] == ["instance", "volume"]


def listed(params: dict[str, object], key: str) -> list[dict[str, Any]]:
    """A list in the parameters."""
    value = params[key]
    assert isinstance(value, list)
    return value


@pytest.mark.parametrize(
    ("cap", "sent"),
    [
        ("0.05", "0.050000"),
        ("1E+1", "10.000000"),
        ("0.0478082191780821917808219178", "0.047808"),
        ("0.0000019", "0.000001"),
        ("1E-7", "0.000001"),
        ("0", "0.000001"),
    ],
)
def test_the_price_cap_is_written_out_in_full(cap: str, sent: str) -> None:
    """A cap is sent as plain digits, rounded down: EC2 refuses exponents, and a price of 0."""
    attempt = an_attempt(launch=a_launch(max_price_usd_hour=Decimal(cap)))
    assert attempt.launch is not None
    options = launch.run_instances(attempt, attempt.launch, "#!")["InstanceMarketOptions"]
    assert isinstance(options, dict)
    assert options["SpotOptions"]["MaxPrice"] == sent


def test_subnet_group_and_profile_are_used_when_they_are_set() -> None:
    """A subnet takes the zone's place; security group and instance profile come along."""
    where = {
        "zone": "us-east-1a",
        "root_device": "/dev/xvda",
        "subnet_id": "subnet-1",
        "security_group_id": "sg-1",
        "instance_profile_arn": "arn:aws:iam::1:instance-profile/p",
    }
    attempt = an_attempt(launch=a_launch(network=where, tags={}))
    assert attempt.launch is not None
    params = launch.run_instances(attempt, attempt.launch, "#!")
    assert params["SubnetId"] == "subnet-1"
    assert params["SecurityGroupIds"] == ["sg-1"]
    assert params["IamInstanceProfile"] == {"Arn": "arn:aws:iam::1:instance-profile/p"}
    assert listed(params, "BlockDeviceMappings")[0]["DeviceName"] == "/dev/xvda"
    assert "Placement" not in params
    assert "TagSpecifications" not in params


@pytest.mark.parametrize("filler", ["a", "é"])
def test_user_data_at_the_limit_is_accepted_and_above_it_refused_before_any_call(filler: str) -> None:
    """16 KiB of bytes go out; one byte more is refused, and EC2 is not asked."""
    fits = filler * (launch.USER_DATA_LIMIT_BYTES // len(filler.encode()))
    rig = Rig(lambda _attempt: fits)
    rig.stub().add_response("run_instances", {"Instances": [machine("i-new", "pending")]})
    assert rig.provider.create_instance(an_attempt()).allocated_id == "i-new"
    rig = Rig(lambda _attempt: f"{fits}b")
    with pytest.raises(LaunchRefused, match=r"16385 bytes, EC2 takes 16384") as caught:
        rig.provider.create_instance(an_attempt())
    assert caught.value.scope == "none"
    assert rig.stubs == {}


@pytest.mark.parametrize("token", ["", "x" * 65, "ü", "a b"])
def test_an_id_that_cannot_be_a_token_is_refused_before_any_call(token: str) -> None:
    """EC2 takes 1 to 64 visible ASCII characters as a client token."""
    rig = Rig()
    with pytest.raises(LaunchRefused, match="client token"):
        rig.provider.create_instance(an_attempt(cedana_id=token))
    assert rig.stubs == {}


def test_only_an_attempt_with_a_fixed_request_is_launched() -> None:
    """A launch that was not written down first is a mistake of the caller."""
    for candidate in (Instance(cedana_id=TOKEN), an_attempt(launch=None)):
        with pytest.raises(TypeError):
            Rig().provider.create_instance(candidate)


@pytest.mark.parametrize("answer", [{}, {"Instances": []}, {"Instances": [{"State": {"Name": "pending"}}]}])
def test_an_answer_without_a_machine_decides_nothing(answer: dict[str, object]) -> None:
    """An answer that is not what the API promises is no verdict: the same request is made again."""
    rig = Rig()
    rig.stub().add_response("run_instances", answer)
    with pytest.raises(ProviderUnavailable, match="without a machine"):
        rig.provider.create_instance(an_attempt())


@pytest.mark.parametrize("code", ["IdempotentParameterMismatch", "IdempotentInstanceTerminated"])
@pytest.mark.parametrize("state", ["running", "terminated"])
def test_a_token_that_was_used_finds_its_machine(code: str, state: str) -> None:
    """When EC2 refuses a token that bought a machine before, that machine is the answer, whatever became of it."""
    rig = Rig()
    rig.stub().add_client_error("run_instances", code, "used", 400)
    filters = [{"Name": "client-token", "Values": [TOKEN]}]
    seen = reservations(machine("i-old", state))
    rig.stub().add_response("describe_instances", seen, {"Filters": filters, "MaxResults": 1000})
    made = rig.provider.create_instance(an_attempt())
    assert (made.allocated_id, made.state) == ("i-old", state)


def test_the_zone_of_the_price_list_is_kept() -> None:
    """Bans are compared with the list's zone: the account's name for it is filled in only where there is none."""
    for given, expected in (("use1-az4", "use1-az4"), ("", "us-east-1a")):
        rig = Rig()
        rig.stub().add_response("run_instances", {"Instances": [machine("i-new", "pending")]})
        assert rig.provider.create_instance(an_attempt(availability_zone=given)).availability_zone == expected


@pytest.mark.parametrize(
    ("network", "offered", "expected"),
    [
        ({}, "us-east-1a", ""),
        ({"subnet:us-east-1a": "s-a"}, "us-east-1a", "s-a"),
        ({"subnet:use1-az1": "s-1"}, "use1-az1", "s-1"),
        ({"subnet:us-east-1a": "s-a", "subnet:us-east-1b": "s-b"}, "", "s-a"),
        ({"subnet:us-east-1a": ""}, "us-east-1a", ""),
    ],
)
def test_the_subnet_follows_the_zone(network: dict[str, str], offered: str, expected: str) -> None:
    """The subnet of the zone, by its name or its id; any subnet where the offer names no zone; else the default."""
    where = launch.network(settings(network), offered, "us-east-1a" if offered else "")
    assert where.get("subnet_id", "") == expected


def test_a_zone_without_a_subnet_is_left_out() -> None:
    """Where the region has subnets, a zone without one is refused with the setting that would mend it."""
    with pytest.raises(TryNextZone, match="subnet:us-east-1b") as caught:
        launch.network(settings({"subnet:us-east-1a": "s-a"}), "us-east-1b", "us-east-1b")
    assert caught.value.scope == "zone"


def test_tag_values_are_cut_to_what_ec2_takes() -> None:
    """A long value does not fail the launch; it is cut when the request is fixed, so a repeat has the same."""
    image = Image(IMAGE, "x86_64", "/dev/sda1", 8)
    assert launch.fixed_request(image, 8, {}, {"name": "x" * 300}, own_image=False).tags == {"name": "x" * 256}
