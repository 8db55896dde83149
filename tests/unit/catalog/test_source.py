"""The broker's catalogue: read once, looked at again every minute, never half of one."""

import json
import logging
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from spotferry.catalog.catalogue_file import read_catalogue, write_catalogue
from spotferry.catalog.source import POINTER_KEY, CatalogueFile, publish
from spotferry.catalog.starter import starter_offers
from spotferry.types import Offer
from tests.fakes import FakeObjects

START = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = Offer(
    provider="aws", region="r", zone="z", instance_type="a.large", vcpus=1, memory_gib=1, spot_usd_hour=Decimal(1)
)
SECOND = FIRST.model_copy(update={"instance_type": "b.large"})


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """The time that the test set."""
        return self.now

    def after(self, seconds: float) -> None:
        """Move it on."""
        self.now += timedelta(seconds=seconds)


class Bucket(FakeObjects):
    """A bucket that counts reads by key."""

    def __init__(self) -> None:
        super().__init__()
        self.objects = self.stored
        self.reads: list[str] = []

    def get(self, key: str) -> bytes:
        """The object."""
        self.reads.append(key)
        return super().get(key)


def types_of(catalogue: CatalogueFile) -> list[str]:
    """The types on offer now."""
    return [offer.instance_type for offer in catalogue.offers().offers]


def test_starter_offers_serve_until_a_catalogue_is_published() -> None:
    """Without a pointer the starter offers are in force; within a minute of the first one it is."""
    bucket, clock = Bucket(), Clock()
    catalogue = CatalogueFile.in_bucket(bucket, clock)
    assert catalogue.offers().offers == starter_offers()
    publish(bucket, [FIRST], START)
    clock.after(60)
    assert types_of(catalogue) == ["a.large"]


def test_pointer_is_looked_at_once_a_minute_and_the_object_read_once() -> None:
    """Warm calls read nothing; the object is read again only when the pointer changed."""
    bucket, clock = Bucket(), Clock()
    pointer = publish(bucket, [FIRST], START)
    catalogue = CatalogueFile.in_bucket(bucket, clock)
    first = catalogue.offers()
    for _ in range(3):
        clock.after(19)
        assert catalogue.offers() is first
    assert bucket.reads == [POINTER_KEY, pointer.key]
    clock.after(3)
    assert catalogue.offers() is first
    assert bucket.reads == [POINTER_KEY, pointer.key, POINTER_KEY]


def test_new_catalogue_is_noticed_within_a_minute() -> None:
    """A published catalogue is in force a minute later at most, and not read before it is looked for."""
    bucket, clock = Bucket(), Clock()
    publish(bucket, [FIRST], START)
    catalogue = CatalogueFile.in_bucket(bucket, clock)
    assert types_of(catalogue) == ["a.large"]
    publish(bucket, [SECOND], START)
    clock.after(59)
    assert types_of(catalogue) == ["a.large"]
    clock.after(1)
    assert types_of(catalogue) == ["b.large"]


@pytest.mark.parametrize(
    "damage",
    ["no pointer", "pointer is no JSON", "pointer of version 2", "object is missing", "object is another", "no sqlite"],
)
def test_catalogue_that_cannot_be_used_leaves_the_one_before_in_force(
    damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A corrupt or missing catalogue changes nothing but the log, and the next good one is taken."""
    bucket, clock = Bucket(), Clock()
    publish(bucket, [FIRST], START)
    catalogue = CatalogueFile.in_bucket(bucket, clock)
    catalogue.offers()
    pointer = publish(bucket, [SECOND], START)
    _break(bucket, damage, pointer.key)
    clock.after(60)
    with caplog.at_level(logging.WARNING):
        assert types_of(catalogue) == ["a.large"]
    assert bool(caplog.records) == (damage != "no pointer")
    publish(bucket, [SECOND], START)
    clock.after(60)
    assert types_of(catalogue) == ["b.large"]


def _break(bucket: Bucket, damage: str, key: str) -> None:
    pointer = json.loads(bucket.objects[POINTER_KEY])
    if damage == "no pointer":
        del bucket.objects[POINTER_KEY]
    elif damage == "pointer is no JSON":
        bucket.objects[POINTER_KEY] = b"\xff{"
    elif damage == "pointer of version 2":
        bucket.objects[POINTER_KEY] = json.dumps({**pointer, "version": 2}).encode()
    elif damage == "object is missing":
        del bucket.objects[key]
    elif damage == "object is another":
        bucket.objects[key] += b"x"
    else:
        bad = {"version": 1, "key": "catalog/x.db", "sha256": "a9993e364706816aba3e25717850c26c9cd0d89d" + 24 * "0"}
        bucket.objects["catalog/x.db"] = b"abc"
        bucket.objects[POINTER_KEY] = json.dumps(bad).encode()


def test_publishing_writes_the_object_before_the_pointer() -> None:
    """The pointer never names an object that is not there; the same offers make the same object."""
    bucket = Bucket()
    pointer = publish(bucket, [FIRST], START)
    assert list(bucket.objects) == [pointer.key, POINTER_KEY]
    assert pointer.key == f"catalog/{pointer.sha256}.db"
    assert publish(bucket, [FIRST], START) == pointer


def test_local_file_is_noticed_when_it_changes(tmp_path: Path) -> None:
    """A catalogue in a file serves, is replaced within a minute, and stays when the file goes."""
    path, clock = tmp_path / "offers.db", Clock()
    catalogue = CatalogueFile.at(path, clock)
    assert catalogue.offers().offers == starter_offers()
    for offer in (FIRST, SECOND):
        write_catalogue(path, [offer], clock())
        clock.after(60)
        assert types_of(catalogue) == [offer.instance_type]
    path.unlink()
    clock.after(60)
    assert types_of(catalogue) == ["b.large"]


def test_published_object_is_a_catalogue_file(tmp_path: Path) -> None:
    """What is in the bucket is the file that commands read."""
    bucket = Bucket()
    pointer = publish(bucket, [FIRST], START)
    path = tmp_path / "fetched.db"
    path.write_bytes(bucket.objects[pointer.key])
    assert read_catalogue(path) == [FIRST]
