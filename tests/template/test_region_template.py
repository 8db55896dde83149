"""What the template of a launch region promises: a way out and none in, and all announcements forwarded home."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from local.deploy import client
from local.packaging import ROOT
from local.template import Template
from spotferry.ports.cloud import RegionSettings
from spotferry.providers.aws.launch import network

ZONES = 6
RULE = "AWS::Events::Rule"
STACK = "spotferry-region"


def of_type(template: Template, kind: str) -> dict[str, Mapping[str, Any]]:
    """All resources of a type, by logical id."""
    return {name: r for name, r in template["Resources"].items() if r["Type"] == kind}


def test_what_home_listens_to_is_what_is_forwarded(template: Template, region_template: Template) -> None:
    """All kinds, and no others: a kind that one of the two templates learns the other must learn."""
    events = template["Resources"]["HandleInterruptionFunction"]["Properties"]["Events"].values()
    heard = [event["Properties"]["Pattern"] for event in events]
    sent = [rule["Properties"]["EventPattern"] for rule in of_type(region_template, RULE).values()]
    assert _kinds(heard) == _kinds(sent)
    assert len(_kinds(sent)) == 5


def _kinds(patterns: list[Mapping[str, Any]]) -> set[str]:
    return {
        json.dumps([source, kind, pattern.get("detail")], sort_keys=True)
        for pattern in patterns
        for source in pattern["source"]
        for kind in pattern["detail-type"]
    }


def test_announcements_go_to_the_home_bus_or_are_kept(region_template: Template) -> None:
    """Each rule has the home region's bus as its target, by a role that may do just that, and a dead-letter queue."""
    bus = {"Fn::Sub": "arn:${AWS::Partition}:events:${HomeRegion}:${AWS::AccountId}:event-bus/default"}
    for rule in of_type(region_template, RULE).values():
        assert rule["Condition"] == "IsElsewhere"
        (target,) = rule["Properties"]["Targets"]
        assert target["Arn"] == bus
        assert target["RoleArn"] == {"Fn::GetAtt": ["ForwardRole", "Arn"]}
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": ["ForwardDlq", "Arn"]}}
    role = region_template["Resources"]["ForwardRole"]["Properties"]
    (policy,) = role["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Resource"]) == ("events:PutEvents", bus)
    (trust,) = role["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "events.amazonaws.com"}
    assert set(trust["Condition"]) == {"StringEquals", "ArnLike"}


def test_a_rules_name_is_one_that_the_role_and_the_queue_take(region_template: Template) -> None:
    """Role and queue let the deployment's own rules in, by their names."""
    for rule in of_type(region_template, RULE).values():
        assert rule["Properties"]["Name"]["Fn::Sub"].startswith("spotferry-${Deployment}-")
    (queue_policy,) = of_type(region_template, "AWS::SQS::QueuePolicy").values()
    (statement,) = queue_policy["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Condition"]["ArnLike"]["aws:SourceArn"]["Fn::Sub"].endswith("rule/spotferry-${Deployment}-*")


def test_nobody_gets_in(region_template: Template) -> None:
    """The machines' security group has no way in, and no other resource opens one."""
    (group,) = of_type(region_template, "AWS::EC2::SecurityGroup").values()
    assert group["Properties"]["SecurityGroupIngress"] == []
    assert not of_type(region_template, "AWS::EC2::SecurityGroupIngress")


def test_machines_have_a_role_only_where_they_read_buckets(region_template: Template) -> None:
    """The role reads the objects that were named; its path is the one that the broker may pass roles on from."""
    role = region_template["Resources"]["MachineRole"]
    assert role["Condition"] == "HasRole"
    (policy,) = role["Properties"]["Policies"]
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Resource"]) == ("s3:GetObject", {"Ref": "ReadableObjects"})
    assert role["Properties"]["Path"] == {"Fn::Sub": "/spotferry/${Deployment}/"}
    forward = region_template["Resources"]["ForwardRole"]["Properties"]["Path"]
    assert not forward["Fn::Sub"].startswith("/spotferry/${Deployment}/")


def test_each_zone_has_a_subnet_with_a_way_out(region_template: Template) -> None:
    """Six zones at most, each with a route to the gateway and addresses of its own."""
    subnets = of_type(region_template, "AWS::EC2::Subnet")
    assert len(subnets) == ZONES
    conditions = {name: subnet["Condition"] for name, subnet in subnets.items()}
    assert conditions == {f"Subnet{n}": "HasOwnNetwork" if n == 1 else f"HasZone{n}" for n in range(1, ZONES + 1)}
    ranges = {subnet["Properties"]["CidrBlock"]["Fn::Select"][0] for subnet in subnets.values()}
    assert len(ranges) == ZONES
    routed = of_type(region_template, "AWS::EC2::SubnetRouteTableAssociation")
    assert {r["Properties"]["SubnetId"]["Ref"] for r in routed.values()} == set(subnets)
    assert all(subnet["Properties"]["MapPublicIpOnLaunch"] is True for subnet in subnets.values())


def test_nothing_in_it_costs_anything_by_itself(region_template: Template) -> None:
    """No gateway, endpoint or address that is paid by the hour; the one alarm only where its topic is named."""
    free = {"VPC", "InternetGateway", "VPCGatewayAttachment", "RouteTable", "Route", "Subnet", "SecurityGroup"}
    free |= {"SubnetRouteTableAssociation", "Role", "InstanceProfile", "Rule", "Queue", "QueuePolicy", "Alarm"}
    assert {r["Type"].rpartition("::")[2] for r in region_template["Resources"].values()} == free
    (alarm,) = of_type(region_template, "AWS::CloudWatch::Alarm").values()
    assert alarm["Condition"] == "HasAlarm"


@pytest.mark.parametrize(
    ("parameters", "subnets"),
    [
        ({"HomeRegion": "us-east-1"}, 3),
        ({"HomeRegion": "us-east-1", "Zones": "2"}, 2),
        ({"HomeRegion": "us-west-2", "Network": "default"}, 0),
    ],
)
def test_its_output_is_what_a_launch_reads(emulator: str, parameters: Mapping[str, str], subnets: int) -> None:
    """The output Network, deployed, is a region's network as the settings and the parameter HomeNetwork have it."""
    cloudformation = client("cloudformation", emulator, "us-west-2")
    stack = f"{STACK}-{subnets}"
    cloudformation.create_stack(
        StackName=stack,
        TemplateBody=(ROOT / "template-region.yaml").read_text(encoding="utf-8"),
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
    )
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    (output,) = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]
    settings = RegionSettings(provider="aws", region="us-west-2", network=json.loads(output["OutputValue"]))
    zones = [key.removeprefix("subnet:") for key in settings.network if key.startswith("subnet:")]
    assert len(zones) == subnets
    for zone in zones:
        placed = network(settings, zone, zone)
        assert placed["subnet_id"].startswith("subnet-")
        assert placed["security_group_id"].startswith("sg-")
    assert settings.network["security_group_id"]
