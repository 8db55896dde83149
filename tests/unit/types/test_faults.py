"""Every fault that a value of ours can have is said in words, by the field's own path."""

import importlib
import pkgutil
import time
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, StringConstraints, ValidationError

import local
import spotferry
from spotferry.runtime.parameters import _COMMANDS
from spotferry.types import InvalidInput, NotFound, Problem
from spotferry.types.base import SHA256, Sha256, Time, Value
from spotferry.types.faults import _MEMBER, _form, message_of, problems_of, sentence_of, words_of

NOT_TOLD = "is not what it should be"
TWO: Mapping[str, object] = {
    "expected": "'a' or 'b'",
    "error": ValueError("must be said"),
    "pattern": SHA256,
    **dict.fromkeys(("gt", "ge", "lt", "le", "max_length", "min_length"), 2),
}

SENTENCES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "model_type": "must be a JSON object",
    "dict_type": "must be a JSON object",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "too_long": "must have at most 2 entries",
    "too_short": "must have at least 2 entries",
    "string_type": "must be text",
    "string_unicode": "holds half of a character",
    "string_too_long": "must have at most 2 characters",
    "string_too_short": "must have at least 2 characters",
    "string_pattern_mismatch": "must be a SHA-256 digest: 64 digits 0-9 and a-f",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "has too many digits",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be above 2",
    "greater_than_equal": "must be at least 2",
    "less_than": "must be below 2",
    "less_than_equal": "must be at most 2",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "datetime_type": "must be a time (RFC 3339)",
    "datetime_parsing": "must be a time (RFC 3339)",
    "datetime_from_date_parsing": "must be a time (RFC 3339)",
    "datetime_object_invalid": "is no time that there can be",
    "timezone_naive": "must be a time with its zone (RFC 3339)",
    "literal_error": "must be 'a' or 'b'",
    "enum": "must be 'a' or 'b'",
    "value_error": "must be said",
    "json_invalid": "must be JSON",
    "json_type": "must be JSON",
}
"""All kinds of faults that values of ours can have, and what is said of each."""

NUMBERS = {"ge": "greater_than_equal", "gt": "greater_than", "le": "less_than_equal", "lt": "less_than"}
LENGTHS = {"max_length": "too_long", "min_length": "too_short"}
LIMITS: Mapping[str, Mapping[str, str]] = {
    "str": {"max_length": "string_too_long", "min_length": "string_too_short", "pattern": "string_pattern_mismatch"},
    "int": NUMBERS,
    "float": NUMBERS,
    "decimal": NUMBERS,
    "tuple": LENGTHS,
    "list": LENGTHS,
    "dict": LENGTHS,
    "datetime": {"tz_constraint": "timezone_naive"},
}
"""What the fault of each limit is called, by the kind of value."""

PLAIN: Mapping[str, tuple[str, ...]] = {
    "model": ("model_type", "json_invalid", "json_type"),
    "model-fields": ("missing", "extra_forbidden"),
    "dict": ("dict_type",),
    "tuple": ("tuple_type",),
    "list": ("list_type",),
    "str": ("string_type", "string_unicode"),
    "int": ("int_type", "int_parsing", "int_from_float", "int_parsing_size", "finite_number"),
    "float": ("float_type", "float_parsing", "finite_number"),
    "decimal": ("decimal_type", "decimal_parsing", "finite_number"),
    "bool": ("bool_type", "bool_parsing"),
    "datetime": ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "datetime_object_invalid"),
    "literal": ("literal_error",),
    "enum": ("enum",),
    "function-after": ("value_error",),
    "function-before": ("value_error",),
    **dict.fromkeys(("nullable", "default", "any", "union", "definitions", "definition-ref", "model-field"), ()),
}
"""The faults of a kind of value without limits; those that hold others have none of their own."""

NO_LIMITS = {"type", "schema", "strict", "allow_inf_nan", "ref", "metadata", "serialization"}
SCALARS = ("str", "int", "float", "decimal", "datetime")

Schema = Mapping[str, Any]  # Any: the library's description of a type


def _models(model: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    for below in model.__subclasses__():
        if below.__module__.startswith(("spotferry.", "local.")):
            yield below
        yield from _models(below)


def _schemas(found: object) -> Iterator[Schema]:
    """Every part of a description that is one itself."""
    if isinstance(found, Mapping):
        if isinstance(found.get("type"), str):
            yield found
        for key, inner in found.items():
            if key not in {"metadata", "serialization", "function", "default"}:
                yield from _schemas(inner)
    elif isinstance(found, list | tuple):
        for inner in found:
            yield from _schemas(inner)


def _all_schemas() -> Iterator[Schema]:
    for package in (spotferry, local):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith("spotferry.agent") and not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for model in set(_models()):
        model.model_rebuild()
        yield from _schemas(model.__pydantic_core_schema__)


SCHEMAS = list(_all_schemas())


def _kinds() -> set[str]:
    kinds = set()
    for schema in SCHEMAS:
        kind = str(schema["type"])
        kinds |= set(PLAIN[kind])
        if kind in SCALARS:
            kinds |= {LIMITS[kind][limit] for limit in schema if limit not in NO_LIMITS | {"microseconds_precision"}}
        elif kind in LIMITS:
            kinds |= {LIMITS[kind][limit] for limit in schema if limit in LIMITS[kind]}
    return kinds


def test_every_fault_that_our_values_can_have_has_a_sentence() -> None:
    """The list holds them all: a kind of value or a limit that is new to it has to be put in words first."""
    assert _kinds() <= set(SENTENCES)


@pytest.mark.parametrize("kind", SENTENCES)
def test_a_fault_is_said_in_words(kind: str) -> None:
    """Of each kind, with what is wanted."""
    assert message_of(kind, {"ctx": TWO}) == SENTENCES[kind]
    assert SENTENCES[kind] != NOT_TOLD


def test_no_pattern_is_shown_to_a_person() -> None:
    """Each of ours is put in words; one that is not yet is not shown either."""
    patterns = {schema["pattern"] for schema in SCHEMAS if "pattern" in schema}
    assert SHA256 in patterns
    assert [pattern for pattern in patterns if "not allowed" in _form({"pattern": pattern})] == []
    assert _form({"pattern": "^[xyz]$"}) == "has a form that is not allowed here"


def test_a_field_takes_several_kinds_of_plain_values_only() -> None:
    """What the library calls them is told from keys by these names; a union of types of ours would show theirs."""
    members = {str(inner["type"]) for schema in SCHEMAS if schema["type"] == "union" for inner in schema["choices"]}
    assert members
    assert members <= {"bool", "int", "float", "str", "literal", "dict"}


class Inner(Value):
    """What a value may hold."""

    number: int = Field(default=1, ge=1)


class Every(Value):
    """A field of each kind that bodies have, or might have."""

    text: str = Field(default="", max_length=3)
    letter: str = Field(default="a", max_length=1)
    some: str = Field(default="a", min_length=1)
    digest: Sha256 = ""
    form: str = Field(default="ab", pattern="^[a-f]+$")
    whole: int = Field(default=1, ge=1, le=9)
    even: int = Field(default=2, multiple_of=2)
    above: float = Field(default=1, gt=0, lt=9.5)
    money: Decimal = Field(default=Decimal(1), max_digits=4, decimal_places=2)
    truth: bool = False
    word: Literal["a", "b"] = "a"
    many: tuple[str, ...] = Field(default=(), max_length=2)
    one: tuple[str, ...] = Field(default=("a",), min_length=1)
    pairs: dict[str, str] = Field(default_factory=dict)
    keys: dict[Literal["a", "b"], str] = Field(default_factory=dict)
    inner: Inner | None = None
    at: Time | None = None
    day: date | None = None
    takes: timedelta | None = None
    either: int | str | None = None
    spot: bool | Literal["fallback"] = True
    lines: Annotated[str, StringConstraints(min_length=2)] | list[int] = "ab"


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        ({"text": 1}, "text", "must be text"),
        ({"text": LONG}, "text", "must have at most 3 characters"),
        ({"letter": LONG}, "letter", "must have at most 1 character"),
        ({"some": ""}, "some", "must have at least 1 character"),
        ({"digest": LONG}, "digest", "must be a SHA-256 digest: 64 digits 0-9 and a-f"),
        ({"form": LONG}, "form", "has a form that is not allowed here"),
        ({"whole": LONG}, "whole", "must be a whole number"),
        ({"whole": 1.5}, "whole", "must be a whole number"),
        ({"whole": "1" * 5000}, "whole", "has too many digits"),
        ({"whole": 0}, "whole", "must be at least 1"),
        ({"whole": 10}, "whole", "must be at most 9"),
        ({"even": 3}, "even", "must be a multiple of 2"),
        ({"above": "x"}, "above", "must be a number"),
        ({"above": 0}, "above", "must be above 0"),
        ({"above": 10}, "above", "must be below 9.5"),
        ({"money": "x"}, "money", "must be a number"),
        ({"money": "nan"}, "money", "must be a finite number"),
        ({"money": "12345"}, "money", "must have at most 4 digits"),
        ({"money": "1.234"}, "money", "must have at most 2 digits after the point"),
        ({"money": "123"}, "money", "must have at most 2 digits before the point"),
        ({"truth": "x"}, "truth", "must be true or false"),
        ({"word": LONG}, "word", "must be 'a' or 'b'"),
        ({"many": 1}, "many", "must be a list"),
        ({"many": ["a"] * 3}, "many", "must have at most 2 entries"),
        ({"many": ["a", 1]}, "many.1", "must be text"),
        ({"one": []}, "one", "must have at least 1 entry"),
        ({"pairs": 1}, "pairs", "must be a JSON object"),
        ({"pairs": {"int": 1}}, "pairs.int", "must be text"),
        ({"keys": {"c": "x"}}, "keys.c", "must be 'a' or 'b'"),
        ({"inner": 1}, "inner", "must be a JSON object"),
        ({"inner": {"number": "x"}}, "inner.number", "must be a whole number"),
        ({"at": "yesterday"}, "at", "must be a time (RFC 3339)"),
        ({"at": "2026-01-01T00:00:00"}, "at", "must be a time with its zone (RFC 3339)"),
        ({"day": "yesterday"}, "day", "must be a date (2026-11-01)"),
        ({"takes": "long"}, "takes", "must be a duration (ISO 8601, such as PT90S)"),
        ({"either": []}, "either", "must be a whole number or text"),
        ({"spot": "x"}, "spot", "must be true or false or 'fallback'"),
        ({"lines": 1}, "lines", "must be text or a list"),
        ({"party": 1}, "party", "is not known here"),
    ],
)
def test_a_body_is_refused_field_by_field(given: dict[str, object], field: str, message: str) -> None:
    """By the field's own path, and by what it must be; a field that may be of several kinds is one field."""
    with pytest.raises(ValidationError) as refused:
        Every.model_validate(given)
    assert problems_of(refused.value) == [Problem(field, message)]
    assert problems_of(refused.value, "data") == [Problem(f"data.{field}", message)]
    assert sentence_of(refused.value) == f"{field}: {message}"


def test_keys_that_are_called_as_kinds_are_keep_their_names() -> None:
    """Beside others: nobody is told of a field that is not the one."""
    with pytest.raises(ValidationError) as refused:
        Every.model_validate({"pairs": {"int": 1, "size": 2}})
    assert [problem.field for problem in problems_of(refused.value)] == ["pairs.int", "pairs.size"]
    assert not _MEMBER.fullmatch("size")


def test_very_many_faults_are_told_in_no_time() -> None:
    """A list of outputs may have a hundred thousand files, each of them wrong."""
    with pytest.raises(ValidationError) as refused:
        Every.model_validate({"pairs": {str(number): 1 for number in range(50_000)}})
    began = time.process_time()
    assert len(problems_of(refused.value)) == 50_000
    assert time.process_time() - began < 10


def test_a_key_that_is_wrong_is_named() -> None:
    """As in the deployment's lines around every job."""
    with pytest.raises(ValidationError) as refused:
        _COMMANDS.validate_python({"pre_setup": ["x"], "post_setup": [""]})
    assert sentence_of(refused.value) == (
        "pre_setup: must be 'post_setup', 'pre_checkpoint', 'post_checkpoint', 'pre_restore' or 'post_restore';"
        " post_setup.0: must have at least 1 character"
    )


def test_a_field_that_is_missing_is_named() -> None:
    """And text that is no JSON is said to be none."""

    class Needs(BaseModel):
        name: str

    with pytest.raises(ValidationError) as refused:
        Needs.model_validate({})
    assert sentence_of(refused.value) == "name: is missing"
    with pytest.raises(ValidationError) as refused:
        Needs.model_validate_json("{")
    assert sentence_of(refused.value) == "must be JSON"


def test_errors_of_others_name_their_kind() -> None:
    """Ours are sentences already."""
    assert words_of(NotFound("there is no job x")) == "there is no job x"
    assert words_of(InvalidInput([Problem("a", "is missing")])) == "a: is missing"
    assert words_of(OSError("away")) == "OSError: away"
