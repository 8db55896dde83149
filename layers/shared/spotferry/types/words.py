"""How refusals put values and faults: short, and in the words of the person who wrote them."""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from spotferry.types.errors import Problem

MOST_SHOWN = 80
"""Characters of a value that a message repeats: enough to find it by."""

MOST_FIELD = 200
"""Characters of a field's path; keys that somebody made up may be of any length."""


def cut(text: str, most: int = MOST_SHOWN) -> str:
    """The text, or as much of its beginning as a message may hold."""
    return text if len(text) <= most else f"{text[:most]}..."


def shown(text: str) -> str:
    """A value in quotes, of a length that a person reads."""
    return repr(cut(text))


def problem_at(field: str, message: str, line: int | None = None) -> Problem:
    """A problem with a field whose name is of any length."""
    return Problem(cut(field, MOST_FIELD), message, line)


def problems_of(error: ValidationError) -> list[Problem]:
    """What is wrong with a value that is not what it should be, field by field."""
    return [problem_at(".".join(map(str, fault["loc"])), _message(fault)) for fault in error.errors()]


def sentence_of(error: ValidationError) -> str:
    """The same as one text."""
    return "; ".join(f"{p.field}: {p.message}" if p.field else p.message for p in problems_of(error))


_Limits = Mapping[str, Any]  # Any: what the library says beside the kind of a fault

_WORDS: Mapping[str, Callable[[_Limits], str]] = {
    "missing": lambda _: "is missing",
    "extra_forbidden": lambda _: "is not known here",
    "literal_error": lambda said: f"must be {said['expected']}",
    "enum": lambda said: f"must be {said['expected']}",
    "greater_than": lambda said: f"must be above {said['gt']}",
    "greater_than_equal": lambda said: f"must be at least {said['ge']}",
    "less_than": lambda said: f"must be below {said['lt']}",
    "less_than_equal": lambda said: f"must be at most {said['le']}",
    "string_too_long": lambda said: f"must have at most {said['max_length']} characters",
    "string_too_short": lambda said: f"must have at least {said['min_length']} characters",
    "string_pattern_mismatch": lambda said: f"must be of the form {said['pattern']}",
    "too_long": lambda said: f"must have at most {said['max_length']} entries",
    "too_short": lambda said: f"must have at least {said['min_length']} entries",
    "value_error": lambda said: str(said["error"]),
    "json_invalid": lambda _: "must be JSON",
}
"""What a kind of fault is in words; the kinds below are told by what was wanted instead."""

_WANTED: Mapping[str, str] = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "decimal": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "a JSON object",
    "mapping": "a JSON object",
    "model": "a JSON object",
    "datetime": "a time (RFC 3339)",
    "timezone": "a time with its zone (RFC 3339)",
}
"""What was wanted, by how the name of the fault's kind begins."""


def _message(fault: Mapping[str, Any]) -> str:  # Any: as the library has it
    kind = str(fault["type"])
    if kind in _WORDS:
        return cut(_WORDS[kind](fault.get("ctx", {})), MOST_FIELD)
    wanted = _WANTED.get(kind.partition("_")[0])
    return f"must be {wanted}" if wanted else "is not what it should be"
