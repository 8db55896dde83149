"""What is wrong with a value of ours, as problems that name the field: in words for people, not in the library's."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from spotferry.types.base import SHA256
from spotferry.types.errors import InvalidInput, Problem, SpotferryError
from spotferry.types.words import MOST_FIELD, counted, cut


def problem_at(field: str, message: str, line: int | None = None) -> Problem:
    """A problem with a field whose name is of any length."""
    return Problem(cut(field, MOST_FIELD), message, line)


def problems_of(error: ValidationError, within: str = "") -> list[Problem]:
    """What is wrong with a value that is not what it should be, field by field; `within` is the field that holds it."""
    faults = error.errors(include_url=False)
    choices = _choices(fault["loc"] for fault in faults)
    told: dict[str, list[str]] = {}
    for fault in faults:
        place = fault["loc"]
        path = [str(part) for at, part in enumerate(place) if part != _KEY and place[:at] not in choices]
        told.setdefault(".".join([within, *path] if within else path), []).append(message_of(fault["type"], fault))
    return [problem_at(field, _either(messages)) for field, messages in told.items()]


def sentence_of(error: ValidationError) -> str:
    """The same as one text."""
    return str(InvalidInput(problems_of(error)))


def words_of(error: Exception) -> str:
    """Any error in words: those of ours speak for themselves, of others the kind is told too."""
    return str(error) if isinstance(error, SpotferryError) else f"{type(error).__name__}: {error}"


Place = tuple[int | str, ...]

_KEY = "[key]"
"""What the library adds to the place of a key that is wrong itself."""

_MEMBER = re.compile(r"(?:constrained-)?(?:bool|int|float|str|decimal|datetime)|[a-z-]+\[.*\]", re.DOTALL)


def _choices(places: Iterable[Place]) -> set[Place]:
    """The places of fields that may be of several kinds.

    The library tells a fault for each kind and calls each a part of the place: `spot.bool`, `spot.literal['fallback']`.
    A key that somebody called `int` stands beside others that are called otherwise.
    """
    below: dict[Place, set[str]] = defaultdict(set)
    for place in places:
        for at, part in enumerate(place):
            below[place[:at]].add(str(part))
    return {place for place, parts in below.items() if len(parts) > 1 and all(map(_MEMBER.fullmatch, parts))}


def _either(messages: Sequence[str]) -> str:
    """One sentence of what a field may be."""
    alike = list(dict.fromkeys(messages))
    if all(message.startswith(_MUST_BE) for message in alike):
        return _MUST_BE + " or ".join(message.removeprefix(_MUST_BE) for message in alike)
    return "; ".join(alike)


_MUST_BE = "must be "

_FORMS: Mapping[str, str] = {SHA256: "a SHA-256 digest: 64 digits 0-9 and a-f"}
"""What text must be that has a pattern: nobody is to read a regular expression."""

_Limits = Mapping[str, Any]  # Any: what the library says beside the kind of a fault


def _form(said: _Limits) -> str:
    form = _FORMS.get(str(said["pattern"]))
    return f"must be {form}" if form else "has a form that is not allowed here"


_WORDS: Mapping[str, Callable[[_Limits], str]] = {
    "missing": lambda _: "is missing",
    "extra_forbidden": lambda _: "is not known here",
    "literal_error": lambda said: f"must be {said['expected']}",
    "enum": lambda said: f"must be {said['expected']}",
    "greater_than": lambda said: f"must be above {_number(said['gt'])}",
    "greater_than_equal": lambda said: f"must be at least {_number(said['ge'])}",
    "less_than": lambda said: f"must be below {_number(said['lt'])}",
    "less_than_equal": lambda said: f"must be at most {_number(said['le'])}",
    "multiple_of": lambda said: f"must be a multiple of {_number(said['multiple_of'])}",
    "finite_number": lambda _: "must be a finite number",
    "int_parsing_size": lambda _: "has too many digits",
    "decimal_max_digits": lambda said: f"must have at most {counted(said['max_digits'], 'digit')}",
    "decimal_max_places": lambda said: f"must have at most {counted(said['decimal_places'], 'digit')} after the point",
    "decimal_whole_digits": lambda said: f"must have at most {counted(said['whole_digits'], 'digit')} before the point",
    "string_too_long": lambda said: f"must have at most {counted(said['max_length'], 'character')}",
    "string_too_short": lambda said: f"must have at least {counted(said['min_length'], 'character')}",
    "string_unicode": lambda _: "holds half of a character",
    "string_pattern_mismatch": _form,
    "too_long": lambda said: f"must have at most {counted(said['max_length'], 'entry', 'entries')}",
    "too_short": lambda said: f"must have at least {counted(said['min_length'], 'entry', 'entries')}",
    "value_error": lambda said: str(said["error"]),
    "json_invalid": lambda _: "must be JSON",
    "json_type": lambda _: "must be JSON",
    "datetime_object_invalid": lambda _: "is no time that there can be",
    "timezone_naive": lambda _: "must be a time with its zone (RFC 3339)",
}
"""What a kind of fault is in words; the kinds below are told by what was wanted instead."""

_WANTED: Mapping[str, str] = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "a JSON object",
    "mapping": "a JSON object",
    "model": "a JSON object",
    "datetime": "a time (RFC 3339)",
    "timezone": "a time with its zone (RFC 3339)",
    "date": "a date (2026-11-01)",
    "time_delta": "a duration (ISO 8601, such as PT90S)",
}
"""What was wanted, by how the name of the fault's kind begins."""


def message_of(kind: str, fault: Mapping[str, Any]) -> str:  # Any: as the library has it
    """What is wrong in words, by the library's name of the kind of fault and what it says beside."""
    if kind in _WORDS:
        return cut(_WORDS[kind](fault.get("ctx", {})), MOST_FIELD)
    wanted = next((words for begin, words in _WANTED.items() if kind.startswith(f"{begin}_")), "")
    return f"must be {wanted}" if wanted else "is not what it should be"


def _number(limit: object) -> str:
    """A limit as people write it: 0, not 0.0."""
    return f"{limit:.12g}" if isinstance(limit, float) else str(limit)
