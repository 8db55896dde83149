"""docs/api.md from docs/openapi.yaml: one section a path."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

Json = Mapping[str, Any]  # Any: an OpenAPI document

_METHODS = ("get", "post", "put", "delete", "options")


def api_reference(path: Path) -> str:
    """The reference in Markdown."""
    document: Json = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return "\n".join(_lines(document)).strip()


def _lines(document: Json) -> Iterator[str]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield from _operation(f"{method.upper()} {path}", item[method])


def _operation(title: str, operation: Json) -> Iterator[str]:
    yield f"### `{title}`"
    yield ""
    yield str(operation["summary"])
    if "description" in operation:
        yield ""
        yield str(operation["description"]).strip()
    yield ""
    for parameter in operation.get("parameters", ()):
        yield f"- {parameter['in']} `{parameter['name']}`: {parameter['description']}"
    if "requestBody" in operation:
        yield f"- body: {operation['requestBody']['description']}"
    for status, response in operation["responses"].items():
        yield f"- {status}: {response['description']}"
    yield ""
