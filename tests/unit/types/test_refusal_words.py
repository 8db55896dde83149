"""Refusals are short, name the field as its author wrote it, and no library or type of ours, whatever was handed in."""

import json
import re
from collections.abc import Iterator, Mapping

import pytest

from spotferry.types import InvalidInput, InvalidJobFile, Problem
from spotferry.types.job_file_keys import JobFileKeys
from spotferry.types.job_file_reader import read_job_file
from spotferry.types.words import counted, cut, shown

LONG = "x" * 5000
JOB: Mapping[str, object] = {"task": {"run": "true"}}
VALUES: tuple[object, ...] = (
    LONG,
    "\u00e9" * 5000,
    "\x7f" + LONG,
    "a\nb",
    "",
    ["a", LONG],
    [[1]],
    [{LONG: 1}],
    [],
    {LONG: LONG},
    {"a": {"b": 1}},
    {},
    True,
    -1,
    1e40,
    10**30,
    None,
)
"""One of each kind, most of them of the wrong one, some of them long."""

NO_YAML = (
    "task:\n\trun: x\n",
    "{",
    "[1, 2",
    "{a: 1}}",
    "a: b: c",
    "a: 'x",
    'a: "\\q"',
    "a: *" + LONG,
    "&a [&a x]",
    "a: !" + LONG + " b",
    "a: !!binary " + LONG,
    "%" + LONG,
    "%YAML 9.9\n---\n",
    "@x",
    "---\na\n---\nb",
    "? [a]\n: b",
    "- - a\n b:",
    "a:\n  - b\n c: d",
    "\x01",
    "x: " + "[" * 50,
    LONG,
    "",
    "null",
)

FORBIDDEN = re.compile(
    r"pydantic|ruamel|Input should|Value error|instance of|JobFile|Envelope|Upload\b|<[a-z ]+>|Decimal"
    r"|\bstr\b|\bdict|[a-z]Error\b|^:[0-9]|\('"
)
MOST_MESSAGE = 450
MOST_DETAIL = 20_000


def _job_files() -> Iterator[Mapping[str, object]]:
    keys = JobFileKeys()
    sections = {"instance_specs": keys._specs, "checkpoint": keys._checkpoint, "retry": keys._retry}
    whole = {"uri": "s3://bucket/key", "location": "aws/us-east-1", "size_gb": 1}
    for value in VALUES:
        yield from ({**JOB, key: value} for key in keys._root)
        yield from ({**JOB, "setup": {"run": value}}, {**JOB, "labels": {"a": value}}, {**JOB, "env": {"A": value}})
        yield from ({**JOB, section: {key: value}} for section, known in sections.items() for key in known)
        yield from ({**JOB, "inputs": [{**whole, key: value}]} for key in keys._input)
    yield {**JOB, "inputs": [{"uri": "https://h/" + LONG[:2000], "size_gb": 1}] * 2}
    yield {**JOB, LONG: 1, "instance_specs": {LONG: 1}, "env": {LONG: "a", "1": "b"}, "labels": {LONG: LONG}}


def check(error: InvalidInput) -> None:
    """A refusal is what a person reads."""
    for problem in error.problems:
        assert len(problem.field) <= 210
        assert len(problem.message) <= MOST_MESSAGE
        assert not FORBIDDEN.search(problem.message), problem.message
        assert not FORBIDDEN.search(problem.field), problem.field
    assert len(str(error)) <= MOST_DETAIL
    assert not re.search(r"^:", str(error), re.MULTILINE)


def test_every_wrong_value_of_every_key_is_refused_in_short_words() -> None:
    """Whatever is wrong with a job file, and however long it is."""
    refused = 0
    for job_file in _job_files():
        try:
            read_job_file(json.dumps(job_file))
        except InvalidJobFile as error:
            refused += 1
            check(error)
    assert refused > len(VALUES) * 20


@pytest.mark.parametrize("text", NO_YAML, ids=lambda text: repr(text[:20]))
def test_what_is_no_job_file_is_refused_in_short_words(text: str) -> None:
    """In the words of somebody who writes YAML, not of the library that reads it."""
    with pytest.raises(InvalidJobFile) as refused:
        read_job_file(text)
    check(refused.value)


@pytest.mark.parametrize(
    ("count", "rest"),
    [(51, "and 1 more problem; mend these first"), (5000, "and 4,950 more problems; mend these first")],
)
def test_very_many_problems_are_counted(count: int, rest: str) -> None:
    """The first are told, and how many there are: nobody mends five thousand in one go, and no answer has room."""
    with pytest.raises(InvalidJobFile) as refused:
        read_job_file(json.dumps({**JOB, **{f"k{number}": 1 for number in range(count)}}))
    problems = refused.value.problems
    assert (len(problems), problems[-1].message) == (51, rest)
    assert len(str(refused.value)) < MOST_DETAIL * 2


@pytest.mark.parametrize(
    ("path", "line", "text"),
    [
        ("job.yml", 3, "job.yml:3: task: is wrong"),
        ("job.yml", None, "job.yml: task: is wrong"),
        ("", 3, "line 3: task: is wrong"),
        ("", None, "task: is wrong"),
    ],
)
def test_a_problem_says_where_it_is(path: str, line: int | None, text: str) -> None:
    """File and line as far as they are known, and no rest of one that is not."""
    assert str(InvalidJobFile(path, [Problem("task", "is wrong", line)])) == text


def test_values_are_cut_where_they_are_long() -> None:
    """Short ones are whole, and control characters are shown as such."""
    assert shown("a\nb") == r"'a\nb'"
    assert cut("abc", 3) == "abc"
    assert cut("abcd", 3) == "abc..."


def test_things_are_counted_as_people_do() -> None:
    """One of them, or several, also of those whose plural is another word."""
    assert [counted(n, "file") for n in (0, 1, 2, 12_345)] == ["0 files", "1 file", "2 files", "12,345 files"]
    assert [counted(n, "entry", "entries") for n in (1, 2)] == ["1 entry", "2 entries"]
