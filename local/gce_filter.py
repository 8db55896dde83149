"""The filters of Compute Engine's listings: `field eq pattern`, whole values by regular expression, one or several.

Several stand in parentheses and must all hold. `field = value` compares for equality; its conditions are joined by AND.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from local.json_face import Json, RestError

_CONDITION = re.compile(
    r'(?P<open>\(\s*)?(?P<field>[\w.-]+)\s+(?P<operator>eq|ne|!=|=)\s+(?P<value>"[^"]*"|[^\s"]+)(?:\s*\))?(?:\s+AND)?\s*'
)


def parse(text: str) -> Callable[[Json], bool]:
    """What tells whether a resource is meant.

    Raises:
        RestError: it is no filter of those forms.
    """
    conditions: list[tuple[str, str, str]] = []
    rest = text.strip()
    while rest:
        found = _CONDITION.match(rest)
        if found is None:
            words = f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."
            raise RestError(400, "invalid", words)
        value = found["value"].removesuffix(")") if found["open"] and found["value"][0] != '"' else found["value"]
        conditions.append((found["field"], found["operator"], value.strip('"')))
        rest = rest[found.end() :]
    return lambda resource: all(_holds(resource, *condition) for condition in conditions)


def _holds(resource: Json, field: str, operator: str, value: str) -> bool:
    said = _value(resource, field)
    if operator in {"eq", "ne"}:
        return (re.fullmatch(value, said) is not None) is (operator == "eq")
    return (said == value) is (operator == "=")


def _value(resource: Json, field: str) -> str:
    found: object = resource
    for part in field.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return "" if found is None else str(found)
