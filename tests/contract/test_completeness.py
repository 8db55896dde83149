"""No cloud without its contract."""

import ast
from pathlib import Path

import pytest

from spotferry.providers import registry

_HERE = Path(__file__).parent


@pytest.mark.parametrize("name", registry.names())
def test_every_provider_folder_has_its_contract_test(name: str) -> None:
    """A folder under providers/ owes tests/contract/test_provider_<name>.py with a subclass of ProviderContract."""
    path = _HERE / f"test_provider_{name}.py"
    assert path.exists(), f"providers/{name} has no contract test: write {path.name}, see docs/adding-a-provider.md"
    classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    bases = {
        base.id for node in classes if node.name.startswith("Test") for base in node.bases if isinstance(base, ast.Name)
    }
    assert "ProviderContract" in bases, f"{path.name} has no test class that is a ProviderContract"


def test_every_contract_test_has_its_provider() -> None:
    """A contract test of a cloud that is gone is deleted with it."""
    tested = {path.stem.removeprefix("test_provider_") for path in _HERE.glob("test_provider_*.py")}
    assert tested == set(registry.names())
