"""Inputs of a job file: where they are, how large they are, and where they go."""

from decimal import Decimal

import pytest

from spotferry.types import InvalidJobFile, JobFile, read_job_file

TASK = "task: {run: ls}\n"
S3 = "uri: s3://data/set.tar, location: aws/us-east-1, size_gb: 500"


def test_inputs_are_read() -> None:
    """All three kinds of addresses, with and without a path of their own; sizes keep their digits."""
    job = read_job_file(
        TASK
        + """inputs:
- {uri: s3://data/a/set.tar, location: aws/us-east-1, size_gb: 500, path: train/set.tar}
- {uri: gs://other/model.bin, location: gcp/us-central1, size_gb: 0.1}
- {uri: "https://example.org/x%20y.csv?sig=1", size_gb: 2}
"""
    )
    assert [given.place for given in job.inputs] == ["train/set.tar", "model.bin", "x y.csv"]
    assert [given.size_gb for given in job.inputs] == [Decimal(500), Decimal("0.1"), Decimal(2)]
    assert job.inputs[2].location == ""
    assert JobFile.model_validate_json(job.model_dump_json()) == job


def test_objective_fallback_and_expected_hours_are_read() -> None:
    """Without them: the price, spot only, and nobody knows how long."""
    plain = read_job_file(TASK)
    assert (plain.objective, plain.expected_hours, plain.instance_specs.spot) == ("price", Decimal(0), True)
    assert not plain.inputs
    asked = read_job_file(TASK + "objective: expected_cost\nexpected_hours: 7.5\ninstance_specs: {spot: fallback}\n")
    assert (asked.objective, asked.expected_hours, asked.instance_specs.spot) == (
        "expected_cost",
        Decimal("7.5"),
        "fallback",
    )
    assert JobFile.model_validate_json(asked.model_dump_json()) == asked


@pytest.mark.parametrize(
    ("inputs", "field", "words"),
    [
        ("{a: b}", "inputs", "must be a list"),
        ("[s3://a/b]", "inputs.0", "must be a mapping"),
        ("[{uri: s3://data/set, location: aws/us-east-1}]", "inputs.0.size_gb", "size_gb above 0"),
        ("[{size_gb: 3}]", "inputs.0.uri", "is missing"),
        ("[{uri: https://e.org/x, size_gb: 0}]", "inputs.0.size_gb", "above 0"),
        ("[{uri: https://e.org/x, size_gb: -1}]", "inputs.0.size_gb", "from 0 to"),
        ("[{uri: https://e.org/x, size_gb: big}]", "inputs.0.size_gb", "a number"),
        ("[{uri: http://e.org/x, size_gb: 1}]", "inputs.0.uri", "say https://"),
        ("[{uri: file:///etc/passwd, size_gb: 1}]", "inputs.0.uri", "none of"),
        ("[{uri: data/x, size_gb: 1}]", "inputs.0.uri", "none of"),
        ("[{uri: https://me:word@e.org/x, size_gb: 1}]", "inputs.0.uri", "without a user"),
        ("[{uri: 'https://e.org/x#y', size_gb: 1}]", "inputs.0.uri", "behind #"),
        ("[{uri: 'https:///x', size_gb: 1}]", "inputs.0.uri", "host"),
        ("[{uri: 'https://[::1/x', size_gb: 1}]", "inputs.0.uri", "is not an address"),
        ("[{uri: 'https://e.org/a b', size_gb: 1}]", "inputs.0.uri", "blanks"),
        ("[{uri: 's3://data/x/', location: aws/us-east-1, size_gb: 1}]", "inputs.0.uri", "one object"),
        ("[{uri: 's3://data', location: aws/us-east-1, size_gb: 1}]", "inputs.0.uri", "one object"),
        ("[{uri: 's3://Data_/x', location: aws/us-east-1, size_gb: 1}]", "inputs.0.uri", "bucket"),
        ("[{uri: s3://data/x, size_gb: 1}]", "inputs.0.location", "aws/REGION"),
        ("[{uri: gs://data/x, location: aws/us-east-1, size_gb: 1}]", "inputs.0.location", "gcp/REGION"),
        ("[{uri: s3://data/x, location: us-east-1, size_gb: 1}]", "inputs.0.location", "provider/region"),
        ("[{uri: s3://data/x, location: awss/us-east-1, size_gb: 1}]", "inputs.0.location", "did you mean aws?"),
        ("[{uri: https://e.org/, size_gb: 1}]", "inputs.0.path", "say where it goes"),
        ("[{uri: https://e.org/%2e%2e, size_gb: 1}]", "inputs.0.path", "say where it goes"),
        ("[{uri: https://e.org/x, size_gb: 1, path: ../x}]", "inputs.0.path", ". or .."),
        ("[{uri: https://e.org/x, size_gb: 1, path: /etc/x}]", "inputs.0.path", "below the directory"),
        ("[{uri: https://e.org/x, size_gb: 1, path: a//b}]", "inputs.0.path", "empty"),
        (f"[{{{S3}}}, {{{S3}}}]", "inputs.1", "gets in the way of inputs.0"),
        (f"[{{{S3}}}, {{{S3}, path: set.tar/a}}]", "inputs.1", "say another path"),
        (f"[{{{S3}, pth: x}}]", "inputs.0.pth", "did you mean path?"),
    ],
)
def test_what_is_wrong_with_an_input_is_named(inputs: str, field: str, words: str) -> None:
    """One fault is one problem, with its key and its line."""
    with pytest.raises(InvalidJobFile) as caught:
        read_job_file(f"{TASK}inputs: {inputs}\n", "job.yml")
    (problem,) = caught.value.problems
    assert (problem.field, problem.line) == (field, 2)
    assert words in problem.message


def test_too_many_inputs_are_refused() -> None:
    """A hundred are allowed, one more is not."""
    inputs = ", ".join(f"{{uri: https://e.org/{n}, size_gb: 1}}" for n in range(101))
    with pytest.raises(InvalidJobFile, match="the limit is 100"):
        read_job_file(f"{TASK}inputs: [{inputs}]\n")
