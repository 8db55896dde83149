"""The next catalogue: made beside the one in force, which stays until the next is whole."""

import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from spotferry.catalog.catalogue_file import offers_in
from spotferry.catalog.drafts import BucketCatalogues
from spotferry.catalog.source import POINTER_KEY, BucketObject, publish
from spotferry.catalog.starter import READ_AT, starter_offers
from spotferry.ports.prices import RegionSource
from spotferry.types import Offer
from tests.fakes import FakeObjects

THEN = datetime(2026, 5, 4, tzinfo=UTC)
NOW = THEN + timedelta(hours=3)
OLD = Offer(
    provider="aws",
    region="us-east-1",
    zone="use1-az1",
    instance_type="m5.large",
    vcpus=2,
    memory_gib=8,
    spot_usd_hour=Decimal("0.030"),
    read_at=THEN,
)
FAR = OLD.model_copy(update={"region": "eu-west-1", "zone": "euw1-az1"})
FRESH = OLD.model_copy(update={"spot_usd_hour": Decimal("0.025"), "read_at": NOW})


class CountingObjects(FakeObjects):
    """A bucket that keeps which keys were read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[str] = []

    def get(self, key: str) -> bytes:
        """The object."""
        self.reads.append(key)
        return super().get(key)


def in_force(objects: FakeObjects) -> list[Offer]:
    """The offers that readers get."""
    current = BucketObject(objects).current()
    assert current is not None
    return offers_in(current[0], "x")


def test_taken_regions_are_new_and_kept_ones_are_as_they_were() -> None:
    """A kept region's offers keep their prices and the time when those were read, and say why."""
    objects = FakeObjects()
    publish(objects, [OLD, FAR], THEN)
    catalogues = BucketCatalogues(objects)
    with catalogues.draft() as draft:
        assert draft.previous().built_at == THEN
        draft.take("aws", "us-east-1", [FRESH], NOW)
        draft.keep("aws", "eu-west-1", NOW, "AccessDenied: no")
        info = draft.publish(NOW)
    assert in_force(objects) == [FAR, FRESH]
    assert info.regions == {
        ("aws", "eu-west-1"): RegionSource(1, THEN, THEN, NOW, "AccessDenied: no"),
        ("aws", "us-east-1"): RegionSource(1, NOW, NOW, NOW, ""),
    }
    assert catalogues.info() == info
    assert info.built_at == NOW


def test_a_region_that_was_never_read_is_there_with_its_problem() -> None:
    """Nothing to keep is said too."""
    objects = FakeObjects()
    publish(objects, [OLD], THEN)
    with BucketCatalogues(objects).draft() as draft:
        draft.take("aws", "us-east-1", [FRESH], NOW)
        draft.keep("gcp", "us-central1", NOW, "down")
        info = draft.publish(NOW)
    assert info.regions["gcp", "us-central1"] == RegionSource(0, None, None, NOW, "down")


def test_starter_offers_are_kept_until_their_region_was_read() -> None:
    """Before the first refresh the starter offers are in force; a region that fails at the first one keeps them."""
    objects = FakeObjects()
    catalogues = BucketCatalogues(objects)
    assert catalogues.info().built_at == READ_AT
    with catalogues.draft() as draft:
        draft.keep("aws", "us-east-1", NOW, "down")
        draft.publish(NOW)
    assert {offer.zone for offer in in_force(objects)} == {o.zone for o in starter_offers() if o.region == "us-east-1"}


@pytest.mark.parametrize("damage", ["pointer", "object"])
def test_a_damaged_catalogue_is_healed_by_the_next(damage: str, caplog: pytest.LogCaptureFixture) -> None:
    """What cannot be read cannot be kept: it counts as none, and the refresh goes on."""
    objects = FakeObjects()
    pointer = publish(objects, [OLD], THEN)
    objects.stored[POINTER_KEY if damage == "pointer" else pointer.key] = b"{"
    with caplog.at_level(logging.WARNING), BucketCatalogues(objects).draft() as draft:
        assert draft.previous().built_at == READ_AT
        draft.take("aws", "us-east-1", [FRESH], NOW)
        draft.publish(NOW)
    assert "cannot be used" in caplog.text
    assert in_force(objects) == [FRESH]


def test_a_draft_that_is_given_up_changes_nothing() -> None:
    """Whatever ends the block before `publish`, the bucket is as it was."""
    objects = FakeObjects()
    publish(objects, [OLD], THEN)
    before = dict(objects.stored)
    with suppress(RuntimeError), BucketCatalogues(objects).draft() as draft:
        draft.take("aws", "us-east-1", [FRESH], NOW)
        raise RuntimeError("power")
    assert objects.stored == before


def test_the_object_is_whole_before_the_pointer_names_it() -> None:
    """Readers never see half a file."""
    objects = FakeObjects()
    with BucketCatalogues(objects).draft() as draft:
        draft.take("aws", "us-east-1", [FRESH], NOW)
        draft.publish(NOW)
    assert objects.puts[-1] == POINTER_KEY
    assert objects.puts[0].endswith(".db")


def test_the_order_of_answers_does_not_change_the_file() -> None:
    """Regions come as their clouds answer; the same content is the same object."""
    first, second = FakeObjects(), FakeObjects()
    for objects, regions in ((first, [FRESH, FAR]), (second, [FAR, FRESH])):
        with BucketCatalogues(objects).draft() as draft:
            for offer in regions:
                draft.take(offer.provider, offer.region, [offer], NOW)
            draft.publish(NOW)
    assert first.stored == second.stored


def test_the_file_is_read_again_only_when_the_pointer_changed() -> None:
    """Asking what is in force costs one small read, until there is another catalogue."""
    objects = CountingObjects()
    publish(objects, [OLD], THEN)
    catalogues = BucketCatalogues(objects)
    for _ in range(3):
        assert catalogues.info().built_at == THEN
    assert [key == POINTER_KEY for key in objects.reads] == [True, True, False, True, True]
    publish(objects, [FRESH], NOW)
    assert catalogues.info().built_at == NOW
