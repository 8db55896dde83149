"""Every role may do what its function does, and no more."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from local.template import Template

# Actions for which AWS has no resource-level permission; all that may stand beside the resource "*".
NO_RESOURCE_LEVEL = {
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeRegions",
    "ec2:DescribeSpotInstanceRequests",
    "ec2:DescribeSpotPriceHistory",
    "ec2:GetSpotPlacementScores",
    "pricing:GetProducts",
    "sts:GetWebIdentityToken",
}
# The functions that ask clouds about machines.
LAUNCHERS = {"CreateInstanceFunction", "DestroyInstanceFunction", "HandleInterruptionFunction", "PollStatusFunction"}
# Actions that make, end or pay for something outside the deployment, and the one function that may, under a condition.
GUARDED = {
    "ec2:RunInstances": {"CreateInstanceFunction"},
    "ec2:CreateTags": {"CreateInstanceFunction"},
    "iam:PassRole": {"CreateInstanceFunction"},
    "iam:CreateServiceLinkedRole": {"CreateInstanceFunction"},
    "ec2:TerminateInstances": {"DestroyInstanceFunction", "PollStatusFunction"},
    "kms:Decrypt": {"ReceiveReportFunction", *LAUNCHERS},
    "sts:GetWebIdentityToken": {"RefreshPricesFunction", *LAUNCHERS},
}
# A launch refers to or makes these beside the machine itself; what guards it is the tag on the machine.
UNGUARDED_STATEMENTS = {"LaunchUsing"}

# A statement of a policy: IAM's own grammar, too wide to be written down here.
Statement = Mapping[str, Any]


def functions(template: Template) -> dict[str, Mapping[str, Any]]:
    """The functions' properties by logical id."""
    kind = "AWS::Serverless::Function"
    return {name: r["Properties"] for name, r in template["Resources"].items() if r["Type"] == kind}


def statements(properties: Mapping[str, Any]) -> Iterator[Statement]:
    """All statements of a function's own policies, conditional ones included."""
    for policy in properties["Policies"]:
        for statement in policy["Statement"]:
            yield statement["Fn::If"][1] if "Fn::If" in statement else statement


def listed(value: object) -> list[Any]:
    """One or several, as several."""
    return value if isinstance(value, list) else [value]


def test_each_function_has_a_policy_of_its_own(template: Template) -> None:
    """No function runs under a role that is shared or brought along, or under a ready-made policy."""
    for name, properties in functions(template).items():
        assert "Role" not in properties, name
        assert all(set(policy) == {"Statement"} for policy in properties["Policies"]), name


def test_every_statement_is_explicit(template: Template) -> None:
    """Statements allow named actions: no wildcard action, no NotAction, no NotResource."""
    for name, properties in functions(template).items():
        for statement in statements(properties):
            assert statement["Effect"] == "Allow", name
            assert {"NotAction", "NotResource"}.isdisjoint(statement), name
            assert not any("*" in action for action in listed(statement["Action"])), (name, statement["Sid"])


def test_the_resource_star_stands_only_where_aws_knows_no_other(template: Template) -> None:
    """A statement on every resource holds nothing but actions that cannot be confined."""
    for name, properties in functions(template).items():
        for statement in statements(properties):
            if "*" in listed(statement["Resource"]):
                assert set(listed(statement["Action"])) <= NO_RESOURCE_LEVEL, (name, statement["Sid"])


def test_what_costs_money_is_guarded(template: Template) -> None:
    """Launching, ending, tagging, passing a role and decrypting are allowed to the functions whose work that is, under
    a condition each.
    """
    holders: dict[str, set[str]] = {action: set() for action in GUARDED}
    for name, properties in functions(template).items():
        for statement in statements(properties):
            for action in set(listed(statement["Action"])) & set(GUARDED):
                holders[action].add(name)
                assert statement["Sid"] in UNGUARDED_STATEMENTS or statement.get("Condition"), (name, statement["Sid"])
    assert holders == GUARDED


@pytest.mark.parametrize("action", ["ec2:RunInstances", "ec2:TerminateInstances"])
def test_machines_of_others_are_out_of_reach(template: Template, action: str) -> None:
    """A machine is made or ended only with this deployment's tag on it."""
    machine = "instance/*"
    guards = [
        statement["Condition"]["StringEquals"]
        for properties in functions(template).values()
        for statement in statements(properties)
        if action in listed(statement["Action"])
        and any(str(arn.get("Fn::Sub", "")).endswith(machine) for arn in listed(statement["Resource"]))
    ]
    assert guards
    for guard in guards:
        (key,) = guard
        assert key.endswith("Tag/spotferry:deployment")
        assert guard[key] == {"Ref": "Deployment"}


@pytest.mark.parametrize(
    ("function", "actions"),
    [
        ("CreateInstanceFunction", {"ec2:DescribeSpotPriceHistory"}),
        ("HandleInterruptionFunction", {"ec2:DescribeInstances", "ec2:DescribeSpotInstanceRequests"}),
        ("PollStatusFunction", {"ec2:DescribeInstances", "ec2:DescribeSpotInstanceRequests"}),
    ],
)
def test_what_the_ledger_asks_may_be_asked(template: Template, function: str, actions: set[str]) -> None:
    """Price at launch, time and cause of the end: a denial would go unnoticed, as the broker goes on without them."""
    allowed = {a for s in statements(functions(template)[function]) for a in listed(s["Action"])}
    assert actions <= allowed


def test_who_asks_clouds_knows_how_to(template: Template) -> None:
    """Functions that ask clouds have their SDKs and their identity; the others have neither."""
    for name, properties in functions(template).items():
        asks = name in {*LAUNCHERS, "RefreshPricesFunction"}
        variables = set(properties["Environment"]["Variables"])
        assert ({"Ref": "ProviderSdksLayer"} in properties.get("Layers", [])) == asks, name
        for word in ("GCP_FEDERATION", "AZURE_FEDERATION", "AZURE_CLIENT_SECRET"):
            assert (word in variables) == asks, (name, word)


def test_only_roles_of_launch_regions_are_passed_on(template: Template) -> None:
    """Those that a region's template makes for its machines, by their path, and the one that was named."""
    passed = [
        statement["Resource"]
        for statement in statements(functions(template)["CreateInstanceFunction"])
        if "iam:PassRole" in listed(statement["Action"])
    ]
    ours = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/spotferry/${Deployment}/*"}
    assert passed == [ours, {"Ref": "MachineRoleArn"}]


def test_no_function_may_delete_records_or_scan_tables(template: Template) -> None:
    """History stays: no role deletes items, none reads a whole table, and of the objects only parts of checkpoints that
    their jobs no longer keep are deleted.
    """
    forbidden = {"dynamodb:DeleteItem", "dynamodb:Scan", "dynamodb:BatchWriteItem"}
    deleters = []
    for name, properties in functions(template).items():
        for statement in statements(properties):
            assert forbidden.isdisjoint(listed(statement["Action"])), (name, statement["Sid"])
            if "s3:DeleteObject" in listed(statement["Action"]):
                deleters.append((name, statement["Resource"]))
    assert deleters == [("ReceiveReportFunction", {"Fn::Sub": "${Bucket.Arn}/checkpoints/*"})]


def test_secrets_are_opened_by_those_who_hand_them_out(template: Template) -> None:
    """The token key is read where tokens are made or checked, jobs' secrets and the deployment's lines only where
    agents say hello, the keys of clouds only where clouds are asked about machines.
    """
    openers: dict[str, set[str]] = {
        "ReadTokenKey": set(),
        "ResolveSecrets": set(),
        "ReadCommands": set(),
        "ReadCloudKeys": set(),
    }
    for name, properties in functions(template).items():
        for statement in statements(properties):
            if statement["Sid"] in openers:
                openers[statement["Sid"]].add(name)
    assert openers == {
        "ReadTokenKey": {"CreateInstanceFunction", "ReceiveReportFunction"},
        "ResolveSecrets": {"ReceiveReportFunction"},
        "ReadCommands": {"ReceiveReportFunction"},
        "ReadCloudKeys": LAUNCHERS,
    }


def test_a_function_is_told_only_of_what_it_may_use(template: Template) -> None:
    """An environment names no queue, bucket or secret that the function's policy does not reach."""
    wanted = {
        "PLACEMENT_QUEUE_URL": "PlacementQueue",
        "BUCKET": "Bucket",
        "TOKEN_SECRET_ARN": "TokenSecret",
    }
    for name, properties in functions(template).items():
        reach = str([statement["Resource"] for statement in statements(properties)])
        for variable in set(properties["Environment"]["Variables"]) & set(wanted):
            assert wanted[variable] in reach, (name, variable)
