"""Inputs: refused where they are known not to be there, and handed to the machine with an address."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from spotferry.types import InvalidInput, NotFound
from spotferry.types.job_file import Input
from spotferry.usecases.inputs import own_key, public_url
from tests.unit.usecases.world import World

OWN = {"uri": "s3://bucket/inputs/set.tar", "location": "aws/us-east-1", "size_gb": "0.001"}
WEB = {"uri": "https://e.org/x.csv", "size_gb": 1}


def refused(world: World, *inputs: Mapping[str, object]) -> list[tuple[str, str]]:
    """Fields and messages that a job with these inputs is refused with; nothing is written."""
    with pytest.raises(InvalidInput) as caught:
        world.submit("key", inputs=list(inputs))
    assert list(world.store.unsettled_jobs()) == []
    return [(problem.field, problem.message) for problem in caught.value.problems]


def test_job_whose_inputs_are_there_is_taken(world: World) -> None:
    """The bucket has it, the web does not say that it is missing, and other buckets only the machine can ask."""
    world.objects.put("inputs/set.tar", b"x" * 1000)
    elsewhere = {"uri": "s3://other/x", "location": "aws/eu-west-1", "size_gb": 1}
    job = world.submit(inputs=[OWN, WEB, elsewhere])
    assert len(job.spec.inputs) == 3
    assert world.probe.asked == ["https://e.org/x.csv"]


def test_input_that_is_not_there_is_refused_at_once(world: World) -> None:
    """Every one that is missing is named, as its author wrote it."""
    world.probe.missing["https://e.org/x.csv"] = "e.org answers 404"
    assert refused(world, OWN, WEB) == [
        ("inputs.0.uri", "s3://bucket/inputs/set.tar is not there: put it there first, or mend the path"),
        ("inputs.1.uri", "https://e.org/x.csv cannot be fetched: e.org answers 404"),
    ]


def test_input_larger_than_said_is_refused(world: World) -> None:
    """Machine, disk and transfer are chosen by the size in the job file."""
    world.objects.put("inputs/set.tar", bytes(12_000_000))
    ((field, message),) = refused(world, OWN)
    assert field == "inputs.0.size_gb"
    assert "has 12000000 bytes" in message


@pytest.mark.parametrize("key", ["uploads/ab.tar.gz", "checkpoints/j-1/1", "inputs", "logs/j-1/x"])
def test_no_job_reads_what_is_not_an_input(world: World, key: str) -> None:
    """Other people's uploads, checkpoints and logs are in the same bucket."""
    world.objects.put(key, b"secret")
    ((field, message),) = refused(world, {**OWN, "uri": f"s3://bucket/{key}"})
    assert field == "inputs.0.uri"
    assert "inputs/ only" in message


def test_job_that_was_refused_can_be_handed_in_again(world: World) -> None:
    """Once the input is there the same submission is a job."""
    refused(world, OWN)
    world.objects.put("inputs/set.tar", b"x")
    job = world.submit("key", inputs=[OWN])
    assert world.job(job).job_id == job.job_id
    with pytest.raises(NotFound):
        world.store.get_job("j-other")


def test_the_plan_has_an_address_for_each_input(world: World) -> None:
    """In the broker's bucket one that needs no credentials; elsewhere the public one, and whose credentials help."""
    world.objects.put("inputs/set.tar", b"x")
    others: list[dict[str, Any]] = [
        {"uri": "s3://other/a b/x", "location": "aws/eu-west-1", "size_gb": 2, "path": "deep/x"},
        {"uri": "gs://other/y", "location": "gcp/us-central1", "size_gb": 3},
        WEB,
    ]
    _, attempt = world.launched(inputs=[OWN, *others])
    assert world.hello(attempt)["plan"]["inputs"] == [
        {
            "path": "set.tar",
            "uri": "s3://bucket/inputs/set.tar",
            "region": "us-east-1",
            "size_gb": 0.001,
            "url": "memory:get:inputs/set.tar?3600",
            "access": "broker",
        },
        {
            "path": "deep/x",
            "uri": "s3://other/a b/x",
            "region": "eu-west-1",
            "size_gb": 2.0,
            "url": "https://other.s3.eu-west-1.amazonaws.com/a%20b/x",
            "access": "aws",
        },
        {
            "path": "y",
            "uri": "gs://other/y",
            "region": "us-central1",
            "size_gb": 3.0,
            "url": "https://storage.googleapis.com/other/y",
            "access": "gcp",
        },
        {
            "path": "x.csv",
            "uri": "https://e.org/x.csv",
            "region": "",
            "size_gb": 1.0,
            "url": "https://e.org/x.csv",
            "access": "",
        },
    ]


def test_bucket_with_dots_goes_into_the_path() -> None:
    """The certificate of S3 covers one label only."""
    dotted = Input(uri="s3://my.data/x", location="aws/eu-west-1", size_gb=Decimal(1))
    assert public_url(dotted) == "https://s3.eu-west-1.amazonaws.com/my.data/x"
    assert own_key("s3://my.data/x", "my.data") == "x"
    assert own_key("s3://my.data-2/x", "my.data") is None
    assert own_key("s3:///x", "") is None
