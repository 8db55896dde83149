"""A release reaches the functions: whatever of it changed, each publishes a version, and the alias moves to it."""

import copy
import json

import pytest
from samtranslator.translator.transform import transform  # type: ignore[import-untyped]  # it ships no types

from local.template import Template

CODE = "s3://somewhere/code-{}.zip"


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    """The transform asks for the region that it deploys to."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


class Policies:
    """The managed policies that the transform may name."""

    def load(self) -> dict[str, str]:
        """Names and ARNs."""
        names = ("AWSLambdaSQSQueueExecutionRole", "AWSLambdaBasicExecutionRole")
        return {name: f"arn:aws:iam::aws:policy/service-role/{name}" for name in names}


def _versions(template: Template, layer: str) -> set[str]:
    """Logical ids of the functions' versions, for one content of the layer."""
    packed: Template = copy.deepcopy(template)
    for resource in packed["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = CODE.format("function")
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            resource["Properties"]["ContentUri"] = CODE.format(layer)
    parameters = {name: p["Default"] for name, p in packed["Parameters"].items() if "Default" in p}
    made = json.loads(json.dumps(transform(packed, parameters, Policies())))
    return {name for name, r in made["Resources"].items() if r["Type"] == "AWS::Lambda::Version"}


def test_a_new_layer_makes_a_new_version_of_every_function(template: Template) -> None:
    """All logic is in the layer: a release of it alone must not leave the functions on the old one."""
    before, after = _versions(template, "1"), _versions(template, "2")
    functions = [r for r in template["Resources"].values() if r["Type"] == "AWS::Serverless::Function"]
    assert len(before) == len(after) == len(functions)
    assert not before & after


def test_the_same_release_makes_no_new_version(template: Template) -> None:
    """Deploying again what is deployed changes nothing."""
    assert _versions(template, "1") == _versions(template, "1")
