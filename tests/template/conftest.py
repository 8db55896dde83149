"""The template, read once."""

import pytest

from local.packaging import ROOT
from local.template import Template, read_template


@pytest.fixture(scope="session")
def template() -> Template:
    """template.yaml as data; tests only read it."""
    return read_template(ROOT / "template.yaml")


@pytest.fixture(scope="session")
def region_template() -> Template:
    """template-region.yaml as data; tests only read it."""
    return read_template(ROOT / "template-region.yaml")
