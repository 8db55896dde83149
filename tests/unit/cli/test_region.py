"""`spotferry region`: opening, listing, checking and closing launch regions."""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from click.testing import CliRunner, Result

from cli import region as region_command
from cli import region_target
from cli.main import main
from spotferry.ports.cloud import RegionSettings
from spotferry.providers.opening import CheckContext, Finding, Level, RegionCheck
from spotferry.types import Misconfigured

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Run

PREFIX = "/spotferry/spotferry/regions"
STACK = {"Outputs": [{"OutputKey": "Network", "OutputValue": '{"subnet:a": "subnet-1", "security_group_id": "sg-1"}'}]}


class FakeAws:
    """SSM and CloudFormation of one account; records who was asked where."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.stacks: dict[str, Mapping[str, Any]] = {}  # Any: an answer of the SDK
        self.asked: list[tuple[str, str]] = []
        self.trouble: Exception | None = None
        self.endpoints: list[str] = []

    def connect(self, service: str, region: str) -> "FakeAws":
        """The client: itself."""
        if self.trouble:
            raise self.trouble
        self.asked.append((service, region))
        self.endpoints.append(os.environ.get("AWS_ENDPOINT_URL", ""))
        return self

    def get_paginator(self, name: str) -> "FakeAws":
        """Itself."""
        assert name == "get_parameters_by_path"
        return self

    def paginate(self, *, Path: str, Recursive: bool) -> Iterator[dict[str, Any]]:  # noqa: N803 (the SDK's)
        """One parameter a page."""
        assert Recursive
        for name, value in self.values.items():
            if name.startswith(Path):
                yield {"Parameters": [{"Name": name, "Value": value}]}

    def get_parameters(self, *, Names: list[str], WithDecryption: bool = False) -> dict[str, Any]:  # noqa: N803
        """Those that are there."""
        assert WithDecryption == any("/clouds/" in name for name in Names)
        return {"Parameters": [{"Name": name, "Value": self.values[name]} for name in Names if name in self.values]}

    def put_parameter(self, *, Name: str, Value: str, Type: str, Overwrite: bool) -> dict[str, int]:  # noqa: N803
        """Write one."""
        assert (Type, Overwrite) == ("String", True)
        version = 2 if Name in self.values else 1
        self.values[Name] = Value
        return {"Version": version}

    def delete_parameters(self, *, Names: list[str]) -> dict[str, list[str]]:  # noqa: N803
        """Delete those that are there."""
        return {"DeletedParameters": [name for name in Names if self.values.pop(name, None) is not None]}

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803
        """One stack."""
        if StackName not in self.stacks:
            raise ClientError({"Error": {"Code": "ValidationError", "Message": "does not exist"}}, "DescribeStacks")
        return {"Stacks": [self.stacks[StackName]]}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> FakeAws:
    """An account that nothing was opened in; the broker of these tests is in eu-west-1."""
    fake = FakeAws()
    monkeypatch.setattr(region_target, "_client", fake.connect)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    return fake


def stored(aws: FakeAws, place: str) -> Mapping[str, Any]:
    """The settings of a region, as the broker reads them."""
    loaded = RegionSettings.model_validate_json(aws.values[f"{PREFIX}/{place}"])
    return {"network": loaded.network, "image_ids": loaded.image_ids}


def test_a_region_is_opened_and_changed(run: "Run", aws: FakeAws) -> None:
    """The settings are where the broker looks, in the home region; the second time all of them are replaced."""
    subnet = "us-west-2a=subnet-0123456789abcdef0"
    result = run("region", "add", "aws", "us-west-2", "--subnet", subnet, "--image", "arm64=ami-01234567")
    assert (result.exit_code, result.stdout) == (0, "aws us-west-2 is open\n")
    assert "spotferry region check aws us-west-2" in result.stderr
    assert stored(aws, "aws/us-west-2") == {
        "network": {"subnet:us-west-2a": "subnet-0123456789abcdef0"},
        "image_ids": {"arm64": "ami-01234567"},
    }
    assert aws.asked == [("ssm", "eu-west-1")]
    again = run("region", "add", "aws", "us-west-2", "--json")
    assert json.loads(again.stdout)["changed"] is True
    assert stored(aws, "aws/us-west-2") == {"network": {}, "image_ids": {}}


@pytest.mark.parametrize(
    ("words", "network"),
    [
        (["gcp", "europe-west4", "--network", "jobs", "--service-account", "m@p.iam.gserviceaccount.com"],
         {"network": "jobs", "service_account": "m@p.iam.gserviceaccount.com"}),
        (["azure", "westeurope", "--resource-group", "rg", "--subnet-id",
          "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/s"],
         {"resource_group": "rg",
          "subnet_id": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/s"}),
        (["paperspace", "NY2", "--private-network", "n1"], {"network_id": "n1"}),
    ],
)  # fmt: skip
def test_every_cloud_has_its_own_options(
    run: "Run", aws: FakeAws, words: list[str], network: Mapping[str, str]
) -> None:
    """As the cloud's settings name them."""
    assert run("region", "add", *words).exit_code == 0
    assert stored(aws, "/".join(words[:2]))["network"] == network


def test_a_stack_gives_the_network(run: "Run", aws: FakeAws) -> None:
    """The output of template-region.yaml in that very region; what is said beside it comes over it."""
    aws.stacks["jobs"] = STACK
    group = "sg-0123456789abcdef0"
    assert run("region", "add", "aws", "us-west-2", "--from-stack", "jobs", "--security-group", group).exit_code == 0
    assert aws.asked[0] == ("cloudformation", "us-west-2")
    assert stored(aws, "aws/us-west-2")["network"] == {"subnet:a": "subnet-1", "security_group_id": group}


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        (None, "there is no stack jobs in us-west-2"),
        ({"Outputs": []}, "no stack of template-region.yaml"),
        ({}, "no stack of template-region.yaml"),
        ({"Outputs": [{"OutputKey": "Network", "OutputValue": "subnet-1"}]}, "not what it should be"),
        ({"Outputs": [{"OutputKey": "Network", "OutputValue": "[1]"}]}, "not what it should be"),
    ],
)
def test_a_stack_that_gives_none_is_named(
    run: "Run", aws: FakeAws, stack: Mapping[str, Any] | None, words: str
) -> None:
    """Nothing is written."""
    if stack is not None:
        aws.stacks["jobs"] = stack
    result = run("region", "add", "aws", "us-west-2", "--from-stack", "jobs")
    assert (result.exit_code, aws.values) == (2, {})
    assert words in result.stderr


def test_what_is_wrong_is_said_by_option_and_nothing_is_written(run: "Run", aws: FakeAws) -> None:
    """Exit status 2, all in one go."""
    result = run("region", "add", "azure", "West Europe", "--subnet-id", "here")
    assert (result.exit_code, aws.values) == (2, {})
    for word in ("REGION:", "--resource-group:", "--subnet-id:"):
        assert word in result.stderr


def test_the_home_region_belongs_to_the_template(run: "Run", aws: FakeAws) -> None:
    """Whoever changes it by hand is told that the next deployment changes it back."""
    assert "HomeNetwork" in run("region", "add", "aws", "eu-west-1").stderr
    assert "HomeNetwork" not in run("region", "add", "aws", "eu-west-2").stderr
    assert set(aws.values) == {f"{PREFIX}/aws/eu-west-1", f"{PREFIX}/aws/eu-west-2"}


def test_regions_are_listed(run: "Run", aws: FakeAws) -> None:
    """In order, with network and images; one that cannot be read is named, for the broker places nothing until then."""
    assert run("region", "list").stdout == "no region is open\n"
    run("region", "add", "gcp", "europe-west4", "--network", "jobs")
    run("region", "add", "aws", "us-west-2", "--image", "arm64=ami-01234567")
    aws.values[f"{PREFIX}/aws/zz"] = "{"
    aws.values["/spotferry/another/regions/aws/eu-west-1"] = "{}"
    result = run("region", "list")
    assert [line.split() for line in result.stdout.splitlines()[1:]] == [
        ["aws", "us-west-2", "default", "arm64=ami-01234567"],
        ["gcp", "europe-west4", "network=jobs"],
    ]
    assert f"{PREFIX}/aws/zz cannot be read" in result.stderr
    told = json.loads(run("region", "list", "--json").stdout)
    assert [item["region"] for item in told["regions"]] == ["us-west-2", "europe-west4"]
    assert told["damaged"] == [f"{PREFIX}/aws/zz"]


def test_a_region_is_closed(run: "Run", aws: FakeAws) -> None:
    """Once; the second time there is none."""
    run("region", "add", "gcp", "europe-west4")
    assert run("region", "remove", "gcp", "europe-west4").stdout == "gcp europe-west4 is closed\n"
    assert aws.values == {}
    assert run("region", "remove", "gcp", "europe-west4").exit_code == 2
    assert json.loads(run("region", "remove", "gcp", "europe-west4", "--json").stdout)["removed"] is False


@pytest.mark.parametrize("level", list(Level))
def test_a_check_tells_its_findings(run: "Run", aws: FakeAws, monkeypatch: pytest.MonkeyPatch, level: Level) -> None:
    """A line each; exit status 1 only when something keeps machines from starting."""
    run("region", "add", "gcp", "europe-west4", "--network", "jobs")
    contexts: list[CheckContext] = []

    def build(provider: str, context: CheckContext) -> RegionCheck:
        contexts.append(context)
        return lambda settings: iter([Finding(level, f"{provider} {settings.region} {settings.network['network']}")])

    monkeypatch.setattr(region_command, "build_check", build)
    result = run("region", "check", "gcp", "europe-west4")
    assert result.exit_code == (1 if level is Level.PROBLEM else 0)
    assert result.stdout.split() == [level.value, "gcp", "europe-west4", "jobs"]
    told = json.loads(run("region", "check", "gcp", "europe-west4", "--json").stdout)
    assert told["ok"] == (level is not Level.PROBLEM)
    assert told["findings"] == [{"level": level.value, "what": "gcp europe-west4 jobs"}]
    assert (contexts[0].deployment, contexts[0].home_region) == ("spotferry", "eu-west-1")
    assert isinstance(contexts[0].clock(), datetime)
    aws.values["/spotferry/spotferry/clouds/paperspace/api-key"] = "k1\n"
    assert contexts[0].secret("paperspace/api-key") == "k1"
    with pytest.raises(Misconfigured, match="no/key"):
        contexts[0].secret("no/key")


def test_a_check_that_cannot_begin_is_a_problem(run: "Run", aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials for that cloud, no project: said as a finding."""
    run("region", "add", "gcp", "europe-west4")

    def build(provider: str, context: CheckContext) -> RegionCheck:
        raise Misconfigured(f"no project of {provider} for {context.deployment}")

    monkeypatch.setattr(region_command, "build_check", build)
    result = run("region", "check", "gcp", "europe-west4")
    assert (result.exit_code, result.stdout) == (1, "problem  no project of gcp for spotferry\n")
    assert aws.asked


@pytest.mark.parametrize("text", [None, "{"])
def test_only_a_region_that_is_set_up_is_checked(run: "Run", aws: FakeAws, text: str | None) -> None:
    """Exit status 2, and what to do."""
    if text:
        aws.values[f"{PREFIX}/aws/us-west-2"] = text
    result = run("region", "check", "aws", "us-west-2")
    assert result.exit_code == 2
    assert "set" in result.stderr


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "x"), "AccessDeniedException"),
        (NoCredentialsError(), "aws sso login"),
    ],
)
def test_when_aws_does_not_let_us_that_is_said(run: "Run", aws: FakeAws, trouble: Exception, words: str) -> None:
    """Exit status 1: the input was right."""
    aws.trouble = trouble
    result = run("region", "list")
    assert result.exit_code == 1
    assert words in result.stderr


def command(*words: str) -> Result:
    """The command without the tests' broker."""
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def test_deployment_and_home_region_can_be_named(aws: FakeAws) -> None:
    """Without any broker's address."""
    assert (
        command("region", "--deployment", "team", "--home-region", "eu-north-1", "add", "gcp", "us-east1").exit_code
        == 0
    )
    assert set(aws.values) == {"/spotferry/team/regions/gcp/us-east1"}
    assert aws.asked == [("ssm", "eu-north-1")]


def test_the_address_tells_the_home_region(aws: FakeAws) -> None:
    """It has the region of the API in it."""
    url = "https://abc.execute-api.ap-south-1.amazonaws.com"
    assert command("--url", url, "region", "list").exit_code == 0
    assert aws.asked == [("ssm", "ap-south-1")]


def test_without_a_region_or_a_broker_it_asks_for_one(aws: FakeAws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked of anybody."""
    assert "spotferry local up" in command("region", "list").stderr
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    result = command("--url", "https://broker.example", "region", "list")
    assert (result.exit_code, aws.asked) == (2, [])
    assert "--home-region" in result.stderr


def test_the_local_cloud_is_spoken_to_where_one_runs(aws: FakeAws, tmp_path: Path) -> None:
    """Its own endpoints are in force for the time of a call, and not after it."""
    folder = tmp_path / ".spotferry"
    folder.mkdir()
    record = {
        "state_dir": str(folder), "api_url": "http://api.example", "emulator_url": "http://emulator.example",
        "cloud_url": "http://cloud.example", "region": "us-east-1", "bucket": "b", "outputs": {},
    }  # fmt: skip
    (folder / "stack.json").write_text(json.dumps(record))
    assert command("region", "add", "gcp", "europe-west4").exit_code == 0
    assert set(aws.values) == {"/spotferry/local/regions/gcp/europe-west4"}
    assert aws.endpoints == ["http://emulator.example"]
    assert "AWS_ENDPOINT_URL" not in os.environ
