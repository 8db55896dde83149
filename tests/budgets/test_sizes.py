"""Small files, small functions: what a reader can hold."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("layers/shared/spotferry", "functions", "cli", "local")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
HANDLER_LINES = 60
FILE_LINES = 300
FUNCTION_LINES = 30


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name and length of each function, from its first line to its last, without its docstring."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            lines -= (first.end_lineno or first.lineno) - first.lineno + 1
        yield node.name, lines


def test_there_is_something_to_measure() -> None:
    """Every room has files, so that a moved folder does not pass unseen."""
    for room in ROOMS:
        assert any(_name(path).startswith(room) for path in FILES), room


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_file_is_small(path: Path) -> None:
    """An entry point has 60 lines at most, any other file 300."""
    limit = HANDLER_LINES if _name(path).startswith("functions/") else FILE_LINES
    assert len(path.read_text().splitlines()) <= limit


@pytest.mark.parametrize("path", FILES, ids=_name)
def test_a_function_is_small(path: Path) -> None:
    """A function has 30 lines at most, its docstring apart."""
    long = [(name, lines) for name, lines in _functions(ast.parse(path.read_text())) if lines > FUNCTION_LINES]
    assert long == []
