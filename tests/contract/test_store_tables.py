"""The models and the template describe the same tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotferry.store.models import TableNames, bind
from tests.contract.emulated_tables import models_of

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"
NAMES = TableNames("JobsTable", "InstancesTable", "CheckpointsTable", "TimelineTable", "BansTable")

# Any: a resource's properties, as CloudFormation has them.
Properties = dict[str, Any]


@pytest.fixture(scope="module")
def resources() -> dict[str, Any]:
    """The template's resources."""
    loaded: Properties = YAML(typ="rt").load(TEMPLATE)
    return dict(loaded["Resources"])


def keys_in_template(keys: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Names and kinds of a key's parts."""
    return [(key["AttributeName"], key["KeyType"]) for key in keys]


def keys_in_model(keys: Sequence[Mapping[str, object]]) -> list[tuple[str, str]]:
    """Names and kinds of a key's parts."""
    return sorted(((str(key["AttributeName"]), str(key["KeyType"])) for key in keys), key=lambda part: part[1])


@pytest.mark.parametrize("index", range(5), ids=lambda n: ["jobs", "instances", "checkpoints", "timeline", "bans"][n])
def test_template_and_model_agree(index: int, resources: dict[str, Any]) -> None:
    """A table that is deployed has the keys, the indexes and the projections that the store relies on, and no more."""
    model = models_of(bind(NAMES, "us-east-1", None))[index]
    schema, table = model._get_schema(), resources[model.Meta.table_name]["Properties"]
    assert keys_in_template(table["KeySchema"]) == keys_in_model(schema["key_schema"])
    in_template = {
        i["IndexName"]: (keys_in_template(i["KeySchema"]), i["Projection"]["ProjectionType"])
        for i in table.get("GlobalSecondaryIndexes", [])
    }
    in_model = {
        i["index_name"]: (keys_in_model(i["key_schema"]), i["projection"]["ProjectionType"])
        for i in schema["global_secondary_indexes"]
    }
    assert in_template == in_model
    types = {a["AttributeName"]: a["AttributeType"] for a in table["AttributeDefinitions"]}
    assert types == {a["AttributeName"]: a["AttributeType"] for a in schema["attribute_definitions"]}


def test_the_bans_expire_by_the_stores_attribute(resources: dict[str, Any]) -> None:
    """The table sweeps up bans by the attribute that the store writes."""
    ttl = resources["BansTable"]["Properties"]["TimeToLiveSpecification"]
    assert ttl["Enabled"]
    assert ttl["AttributeName"] in bind(NAMES, "us-east-1", None).bans.get_attributes()
