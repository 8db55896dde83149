"""Errors over HTTP: one table, one form."""

import json
from http import HTTPStatus

import pytest

from spotferry.runtime.http import Malformed, parse_json, problem, status_of
from spotferry.types import (
    CapacityError,
    Conflict,
    IdempotencyConflict,
    IllegalTransition,
    ImpossibleSpecs,
    InvalidInput,
    InvalidJobFile,
    Misconfigured,
    NotFound,
    NotPossibleNow,
    Problem,
    ProviderUnavailable,
    SpotferryError,
    StaleAttempt,
    TooLarge,
    Unauthenticated,
)

ONE = [Problem("task.run", "is missing", 3)]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInput(ONE), 422),
        (InvalidJobFile("job.yml", ONE), 422),
        (ImpossibleSpecs(ONE), 422),
        (Malformed(ONE), 400),
        (TooLarge("x"), 413),
        (NotFound("x"), 404),
        (IdempotencyConflict("x"), 409),
        (NotPossibleNow("x"), 409),
        (IllegalTransition("DONE", "task_started"), 409),
        (Unauthenticated("x"), 401),
        (StaleAttempt("x"), 410),
        (Conflict("x"), 503),
        (ProviderUnavailable("c", "m"), 502),
        (CapacityError("c", "m"), 502),
        (Misconfigured("x"), 500),
        (SpotferryError("x"), 500),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_every_error_has_its_status(error: SpotferryError, status: int) -> None:
    """A subclass is what its nearest ancestor is; the document repeats the status and its phrase."""
    answer = problem(error)
    document = json.loads(answer.body or "")
    assert answer.status_code == document["status"] == status == status_of(error)
    assert document["title"] == HTTPStatus(status).phrase
    assert document["kind"] == type(error).__name__
    assert document["detail"] == str(error)
    assert answer.content_type == "application/problem+json"


def test_every_problem_names_field_message_and_line() -> None:
    """All that is wrong is in one answer, so that a person mends it in one go."""
    error = InvalidJobFile("job.yml", [*ONE, Problem("name", "is too long")])
    assert json.loads(problem(error).body or "")["errors"] == [
        {"field": "task.run", "message": "is missing", "line": 3},
        {"field": "name", "message": "is too long"},
    ]


@pytest.mark.parametrize(
    "text",
    ["", "{", "NaN", '{"a": Infinity}', '{"a": -Infinity}', "{'a': 1}", "[" * 100_000 + "]" * 100_000, "9" * 5000],
    ids=["nothing", "half", "NaN", "Infinity", "-Infinity", "Python", "nested", "digits"],
)
def test_what_is_not_strict_json_is_none(text: str) -> None:
    """Numbers that no database takes are no numbers."""
    with pytest.raises(ValueError, match=r".+"):
        parse_json(text)


def test_a_number_that_is_too_long_is_told_in_words() -> None:
    """Not in Python's own."""
    with pytest.raises(ValueError, match=r"^a number of 5,000 digits is too long$"):
        parse_json(f'{{"a": {"9" * 5000}}}')
    assert parse_json("9" * 1000) == int("9" * 1000)


def test_half_a_character_is_malformed() -> None:
    """A lone surrogate could be stored nowhere; a pair is one character."""
    with pytest.raises(Malformed, match="half of a character"):
        parse_json('{"a": ["\\uD83D"]}')
    assert parse_json('"\\ud83d\\ude00 \\\\ud800"') == "\U0001f600 \\ud800"
