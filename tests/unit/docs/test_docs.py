"""The documents say what the code does."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from local.docs import DOCS, PARTS, generated, stale
from local.template import parse_template


def test_generated_parts_are_fresh() -> None:
    """State diagram, no-ops and API reference are what the code and the definition say: `make docs` writes them."""
    assert stale() == {}


@pytest.mark.parametrize("name", PARTS)
def test_a_stale_part_is_noticed(name: str) -> None:
    """Whatever stands in a generated part is replaced by what the code says."""
    text = f"before\n<!-- generated: {name} -->\nold\n<!-- end -->\nafter\n"
    fresh = generated(text)
    assert "\nold\n" not in fresh
    assert fresh.startswith("before\n")
    assert fresh.endswith("<!-- end -->\nafter\n")


def test_openapi_has_the_templates_routes() -> None:
    """The API's definition lists exactly the user routes that the template deploys."""
    document = YAML(typ="safe").load((DOCS / "openapi.yaml").read_text(encoding="utf-8"))
    documented = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    resources = parse_template((Path(DOCS).parent / "template.yaml").read_text(encoding="utf-8"))["Resources"].values()
    deployed = {r["Properties"]["RouteKey"] for r in resources if r["Type"] == "AWS::ApiGatewayV2::Route"}
    assert documented == {route for route in deployed if "/agent/" not in route}
