"""Reads template.yaml for the local cloud, and changes in it what no local deployment can take as it is.

That is: where the code of functions and layer lies (zips in a bucket, as the SAM CLI would have packed them), and the
API's id, which has to be known before the stack is made because the machines' address of the broker holds it.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

# A template or a part of one: CloudFormation's own schema is far too wide to be written down here.
Template = dict[str, Any]

API_ID_TAG = "ms-custom-id"
CODE_KEYS: Mapping[str, str] = {
    "AWS::Serverless::Function": "CodeUri",
    "AWS::Serverless::LayerVersion": "ContentUri",
}


class _Loader(yaml.SafeLoader):
    """Safe YAML, CloudFormation's short forms as their long ones, and no words as booleans but true and false."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false)$"), list("tf"))


def _intrinsic(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> Template:
    value: Any  # whatever YAML holds there
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    else:
        raise yaml.constructor.ConstructorError(None, None, f"!{tag} of an unknown kind of node", node.start_mark)
    if tag in ("Ref", "Condition"):
        return {tag: value}
    if tag == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{tag}": value}


_Loader.add_multi_constructor("!", _intrinsic)


def parse_template(text: str) -> Template:
    """A template's text as data, in the long form that JSON takes."""
    template: Template = yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a SafeLoader
    return template


def read_template(path: Path) -> Template:
    """The template of this file."""
    return parse_template(path.read_text(encoding="utf-8"))


def localize(template: Template, upload: Callable[[str, str], str], api_id: str) -> Template:
    """A copy whose code lies where `upload(resource type, folder)` says, and whose HTTP API has this id."""
    resources = {name: dict(resource) for name, resource in template["Resources"].items()}
    for resource in resources.values():
        key = CODE_KEYS.get(resource["Type"])
        if key is not None:
            folder = resource["Properties"][key]
            resource["Properties"] = {**resource["Properties"], key: upload(resource["Type"], folder)}
        elif resource["Type"] == "AWS::ApiGatewayV2::Api":
            resource["Properties"] = {**resource["Properties"], "Tags": {API_ID_TAG: api_id}}
    return {**template, "Resources": resources}
