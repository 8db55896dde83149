"""Checks of launch regions against the local cloud: what is there is found, what is missing is a problem in words."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

import pytest

from local.deploy import client
from local.packaging import ROOT
from local.stack import price_sources
from spotferry.ports.cloud import RegionSettings
from spotferry.providers.opening import CheckContext, Finding, Level, build_check
from tests.contract.local_cloud import LocalCloud, local_cloud

HOME = "us-east-1"
VNET = "/subscriptions/s/resourceGroups/jobs/providers/Microsoft.Network/virtualNetworks"
AZURE = {"resource_group": "jobs", "subnet_id": f"{VNET}/spotferry-westeurope/subnets/machines"}
Check = Callable[..., list[Finding]]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCloud]:
    """A local cloud that all tests of this file share, without machines behind it."""
    with local_cloud(tmp_path_factory.mktemp("cloud"), "--no-metal") as running:
        yield running


@pytest.fixture
def check(cloud: LocalCloud, emulator: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Check]:
    """Checks a region of a cloud, the SDKs led to the local one; all trouble is forgotten afterwards."""
    url = f"http://127.0.0.1:{cloud.port}"
    account = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": HOME}
    for name, value in {
        "AWS_ENDPOINT_URL": emulator, "AWS_ENDPOINT_URL_EC2": url, **price_sources(url), **account,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)

    def run(
        provider: str, region: str, network: Mapping[str, str] | None = None, images: Mapping[str, str] | None = None
    ) -> list[Finding]:
        context = CheckContext("checked", HOME, lambda: datetime.now(UTC))
        settings = RegionSettings(provider=provider, region=region, network=network or {}, image_ids=images or {})
        return list(build_check(provider, context)(settings))

    yield run
    cloud.lever("clear_faults")


def problems(findings: list[Finding]) -> str:
    """What keeps launches from succeeding, in one text."""
    return "\n".join(finding.what for finding in findings if finding.level is Level.PROBLEM)


def said(findings: list[Finding], level: Level) -> str:
    """All of one level, in one text."""
    return "\n".join(finding.what for finding in findings if finding.level is level)


def test_the_default_network_of_aws_would_launch(check: Check) -> None:
    """Region, network, images and the dry run are well; a region whose notices stay there is told of it."""
    findings = check("aws", "us-west-2")
    assert problems(findings) == ""
    assert "dry run of a spot machine (t3.small) in the default network would succeed" in said(findings, Level.OK)
    assert "template-region.yaml" in said(findings, Level.NOTE)
    assert "forwarded" not in said(check("aws", HOME), Level.NOTE)


def test_a_region_with_the_forwarding_stack_is_told_so(check: Check, emulator: str) -> None:
    """The rules of template-region.yaml are those that the check looks for."""
    cloudformation = client("cloudformation", emulator, "eu-west-1")
    cloudformation.create_stack(
        StackName="checked-region",
        TemplateBody=(ROOT / "template-region.yaml").read_text(encoding="utf-8"),
        Capabilities=["CAPABILITY_IAM"],
        Parameters=[
            {"ParameterKey": name, "ParameterValue": value}
            for name, value in {"Deployment": "checked", "HomeRegion": HOME, "Network": "default"}.items()
        ],
    )
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName="checked-region", WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    assert f"EC2's notices are forwarded to {HOME}" in said(check("aws", "eu-west-1"), Level.OK)


def test_subnets_of_aws_are_looked_at_one_by_one(check: Check, cloud: LocalCloud) -> None:
    """A subnet that is there, one of another zone, one that is not there."""
    ec2 = cloud.ec2("us-west-2")
    known = {net["AvailabilityZone"]: net["SubnetId"] for net in ec2.describe_subnets()["Subnets"]}
    zone, other = sorted(known)[:2]
    findings = check("aws", "us-west-2", {f"subnet:{zone}": known[zone], "subnet:us-west-2z": known[other]})
    assert f"the subnet {known[zone]} is in {zone}" in said(findings, Level.OK)
    assert f"the subnet {known[other]} is in {other}, not in us-west-2z" in problems(findings)
    assert "zones without a subnet are not used" in said(findings, Level.NOTE)
    missing = check("aws", "us-west-2", {f"subnet:{zone}": "subnet-0123456789abcdef0"})
    assert "InvalidSubnetID.NotFound" in problems(missing)
    assert problems(missing).count("subnet-0123456789abcdef0") >= 2  # by itself, and in the dry run


def test_security_groups_and_profiles_of_aws_are_looked_at(check: Check, cloud: LocalCloud, emulator: str) -> None:
    """One that lets others in is told; one that is missing is a problem; so is a profile that is not there."""
    ec2, iam = cloud.ec2("us-west-2"), client("iam", emulator)
    group = ec2.create_security_group(GroupName="open", Description="open")["GroupId"]
    ec2.authorize_security_group_ingress(GroupId=group, IpProtocol="tcp", FromPort=22, ToPort=22, CidrIp="0.0.0.0/0")
    trust = json.dumps({"Version": "2012-10-17", "Statement": []})
    for name, path in (("ours", "/spotferry/checked/"), ("theirs", "/")):
        iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=trust)
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    arn = "arn:aws:iam::000000000000:instance-profile/"
    findings = check("aws", "us-west-2", {"security_group_id": group, "instance_profile_arn": f"{arn}ours"})
    assert f"the security group {group} lets others in" in said(findings, Level.NOTE)
    assert "a role that the broker may pass on" in said(findings, Level.OK)
    theirs = check("aws", "us-west-2", {"instance_profile_arn": f"{arn}theirs"})
    assert "MachineRoleArn" in said(theirs, Level.NOTE)
    missing = check(
        "aws", "us-west-2", {"security_group_id": "sg-0123456789abcdef0", "instance_profile_arn": f"{arn}no"}
    )
    assert "the security group sg-0123456789abcdef0 is not to be had" in problems(missing)
    assert "the instance profile no is not to be had" in problems(missing)


def test_images_of_aws_are_looked_at(check: Check) -> None:
    """An override that is not there is a problem, and is named."""
    findings = check("aws", "us-west-2", images={"arm64/gpu": "ami-0123456789abcdef0"})
    assert "no image for arm64/gpu machines: InvalidAMIID.NotFound" in problems(findings)


@pytest.mark.parametrize(
    ("provider", "region", "network"),
    [("aws", "us-west-2", {}), ("gcp", "us-central1", {}), ("azure", "westeurope", AZURE)],
)
def test_a_region_that_is_denied_is_a_problem(
    check: Check, cloud: LocalCloud, provider: str, region: str, network: Mapping[str, str]
) -> None:
    """The cloud's own code is in the words, and nothing else is asked there."""
    cloud.lever("regions/deny", {"region": region, "code": "UnauthorizedOperation"})
    (finding,) = check(provider, region, network)
    assert finding.level is Level.PROBLEM
    assert region in finding.what
    assert "UnauthorizedOperation" in finding.what


def test_a_network_of_google_cloud_would_launch(check: Check) -> None:
    """The project's default network, or its subnetwork, with quotas in words."""
    for network in ({}, {"network": "default", "subnetwork": "default"}):
        findings = check("gcp", "europe-west4", network)
        assert problems(findings) == ""
        assert "quota PREEMPTIBLE_CPUS: 0 of" in said(findings, Level.OK)


def test_what_google_cloud_lacks_is_named(check: Check, cloud: LocalCloud) -> None:
    """Network, subnetwork, image, quota, region: each is a problem of its own."""
    findings = check("gcp", "europe-west4", {"network": "jobs", "subnetwork": "jobs-1"}, {"arm64": "own-image"})
    for what in ("the network jobs", "the subnetwork jobs-1", "the image for arm64, own-image,"):
        assert f"{what} is not to be had" in problems(findings)
    for purchase in ("spot", "on_demand"):
        lever = {"provider": "gcp", "region": "us-central1", "family": "gcp", "purchase": purchase, "vcpus": 0}
        cloud.lever("quota", lever)
    tight = check("gcp", "us-central1")
    assert "quota CPUS: 0 of 0 vCPUs in use: raise it" in problems(tight)
    assert "quota PREEMPTIBLE_CPUS is not set" in said(tight, Level.NOTE)
    assert "notFound" in problems(check("gcp", "mars-north1"))


def test_a_network_of_azure_would_launch(check: Check) -> None:
    """Resource group, subnet and its region, providers and quotas."""
    findings = check("azure", "westeurope", AZURE)
    assert problems(findings) == ""
    assert "the network spotferry-westeurope is in westeurope" in said(findings, Level.OK)
    nowhere = check("azure", "westeurope", {**AZURE, "subnet_id": f"{VNET}/machines/subnets/machines"})
    assert problems(nowhere) == ""
    assert "does not tell its region" in said(nowhere, Level.NOTE)


def test_what_azure_lacks_is_named(check: Check, cloud: LocalCloud) -> None:
    """No network at all, one of another region, a subnet that is missing, a quota that is used up."""
    assert "Azure has no default network" in problems(check("azure", "westeurope"))
    elsewhere = check("azure", "westeurope", {**AZURE, "subnet_id": f"{VNET}/spotferry-eastus/subnets/machines"})
    assert "the network spotferry-eastus is in eastus, not in westeurope" in problems(elsewhere)
    missing = check("azure", "westeurope", {**AZURE, "subnet_id": f"{VNET}/spotferry-westeurope/subnets/no"})
    assert "subnets/no is not to be had" in problems(missing)
    cloud.lever("quota", {"provider": "azure", "region": "eastus", "family": "azure", "purchase": "spot", "vcpus": 0})
    tight = check("azure", "eastus", {**AZURE, "subnet_id": f"{VNET}/spotferry-eastus/subnets/machines"})
    assert "quota lowPriorityCores: 0 of 0 vCPUs" in problems(tight)


@pytest.mark.parametrize("provider", ["gcp", "azure"])
def test_credentials_that_were_revoked_are_a_problem(check: Check, cloud: LocalCloud, provider: str) -> None:
    """It is said, not raised."""
    cloud.lever("credentials/revoke", {"access_key": provider})
    (finding,) = check(provider, "us-central1" if provider == "gcp" else "westeurope")
    assert finding.level is Level.PROBLEM
