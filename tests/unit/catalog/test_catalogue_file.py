"""The catalogue's file keeps offers exactly, and is read whole or refused."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pydantic import ValidationError

from spotferry.catalog.catalogue_file import (
    SCHEMA_VERSION,
    RegionSource,
    Source,
    describe_catalogue,
    offers_in,
    read_catalogue,
    read_contents,
    write_catalogue,
)
from spotferry.catalog.starter import starter_offers
from spotferry.types import InvalidInput, Offer
from spotferry.types.provider import PoolRate

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EARLIER = datetime(2025, 12, 1, tzinfo=UTC)
BARE = Offer(provider="gcp", region="r", zone="", instance_type="t", vcpus=0.5, memory_gib=1)
FULL = Offer(
    provider="aws",
    region="us-east-1",
    zone="us-east-1a",
    instance_type="g4dn.xlarge",
    vcpus=4,
    memory_gib=16,
    gpu_name="T4",
    gpu_maker="NVIDIA",
    gpu_count=1,
    vram_mib=16_384,
    spot_usd_hour=Decimal("0.1578000"),
    on_demand_usd_hour=Decimal("0.526"),
    disk_usd_gib_month=Decimal("0.08"),
    read_at=NOW,
)


def test_offers_come_back_as_they_went_in(tmp_path: Path) -> None:
    """Every field survives, prices to the last digit, in an order that does not depend on the writer's."""
    path = tmp_path / "offers.db"
    write_catalogue(path, [BARE, FULL], NOW)
    assert read_catalogue(path) == [FULL, BARE]
    assert str(read_catalogue(path)[0].spot_usd_hour) == "0.1578000"


def test_rates_come_back_as_they_went_in(tmp_path: Path) -> None:
    """Every field survives, to the last digit, sorted; a repeat writes the same bytes."""
    path = tmp_path / "offers.db"
    first = PoolRate(
        provider="azure",
        region="eastus",
        instance_type="standard_d2s_v5",
        per_hour=Decimal("0.0250"),
        source="azure_eviction_rate",
        read_at=EARLIER,
    )
    second = first.model_copy(update={"zone": "1", "per_hour": Decimal(1) / 3})
    write_catalogue(path, [BARE], NOW, [second, first])
    contents = read_contents(path)
    assert (contents.offers, contents.rates) == ([BARE], [first, second])
    assert str(contents.rates[0].per_hour) == "0.0250"
    before = path.read_bytes()
    write_catalogue(path, [BARE], NOW, [first, second])
    assert path.read_bytes() == before


def test_a_rate_that_is_none_makes_a_catalogue_corrupt(tmp_path: Path) -> None:
    """As a price does that is none."""
    path = tmp_path / "offers.db"
    write_catalogue(path, [BARE], NOW)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO rates VALUES ('aws', 'r', '', 't', 'often', 'x', '2026-01-01T00:00:00+00:00')")
        connection.commit()
    with pytest.raises(InvalidInput, match="corrupt"):
        read_contents(path)


def test_offers_read_are_as_good_as_validated_ones(tmp_path: Path) -> None:
    """They are built without validation, and still equal, hash, print, copy and refuse changes as others do."""
    path = tmp_path / "offers.db"
    write_catalogue(path, [BARE, FULL], NOW)
    for offer, validated in zip(read_catalogue(path), (FULL, BARE), strict=True):
        complete = Offer.model_validate(validated.model_dump())
        assert (offer, hash(offer), repr(offer)) == (complete, hash(complete), repr(complete))
        assert offer.model_dump_json() == complete.model_dump_json()
        assert offer.model_fields_set == complete.model_fields_set
        assert Offer.model_validate_json(offer.model_dump_json()) == offer
        assert offer.model_copy(update={"zone": "x"}).zone == "x"
        assert offer == complete
        with pytest.raises(ValidationError):
            offer.zone = "x"  # type: ignore[misc]  # the promise is that this fails


def test_starter_offers_survive_the_file(tmp_path: Path) -> None:
    """A whole list goes in and out unchanged."""
    path = tmp_path / "offers.db"
    write_catalogue(path, starter_offers(), NOW)
    assert set(read_catalogue(path)) == set(starter_offers())


def test_same_offers_write_the_same_bytes(tmp_path: Path) -> None:
    """A file is named by its digest, so the same content must be the same bytes."""
    first, second = tmp_path / "a.db", tmp_path / "b.db"
    write_catalogue(first, [BARE, FULL], NOW)
    write_catalogue(second, [FULL, BARE], NOW)
    assert first.read_bytes() == second.read_bytes()


def test_file_says_what_it_holds(tmp_path: Path) -> None:
    """Version, time of building, and for each cloud its offers and the age of their prices."""
    path = tmp_path / "offers.db"
    write_catalogue(path, [BARE, FULL, FULL.model_copy(update={"zone": "b", "read_at": EARLIER})], NOW)
    info = describe_catalogue(path)
    assert (info.version, info.built_at) == (SCHEMA_VERSION, NOW)
    assert info.sources == {"aws": Source(2, EARLIER, NOW), "gcp": Source(1, None, None)}
    assert info.regions == {
        ("aws", FULL.region): RegionSource(2, EARLIER, NOW),
        ("gcp", BARE.region): RegionSource(1, None, None),
    }


def test_old_file_stays_when_writing_fails(tmp_path: Path) -> None:
    """A write that fails leaves the file before as it was, and no rubbish beside it."""
    path = tmp_path / "offers.db"
    write_catalogue(path, [FULL], NOW)
    broken = FULL.model_copy(update={"vcpus": "many"})
    with pytest.raises(sqlite3.Error):
        write_catalogue(path, [broken], NOW)
    assert read_catalogue(path) == [FULL]
    assert list(tmp_path.iterdir()) == [path]


def test_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    """A missing file is told as such."""
    with pytest.raises(InvalidInput, match=r"nowhere\.db: cannot be read: No such file"):
        read_catalogue(tmp_path / "nowhere.db")


def test_other_file_is_refused() -> None:
    """What is no SQLite file is no catalogue."""
    with pytest.raises(InvalidInput, match="x: is not a catalogue"):
        offers_in(b"InstanceType,Price\n", "x")


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_file_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    """A catalogue of an older or newer schema is refused and both versions are named."""
    path = tmp_path / "offers.db"
    write_catalogue(path, [FULL], NOW)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    for read in (read_catalogue, describe_catalogue):
        with pytest.raises(InvalidInput, match=f"version {version}; this program reads version {SCHEMA_VERSION}"):
            read(path)


def test_corrupt_file_is_refused(tmp_path: Path) -> None:
    """A file that was cut short, or overwritten in the middle, is refused; no half of it is used."""
    path = tmp_path / "offers.db"
    write_catalogue(path, starter_offers(), NOW)
    whole = path.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:middle], whole[:200], whole[:middle] + b"\xff" * 8192 + whole[middle + 8192 :]):
        with pytest.raises(InvalidInput, match="is a corrupt catalogue"):
            offers_in(damaged, "x")
        path.write_bytes(damaged)


@pytest.mark.parametrize("change", ["spot_usd_hour = 'free'", "spot_usd_hour = 'NaN'", "read_at = 'yesterday'"])
def test_value_that_cannot_be_true_makes_the_file_corrupt(tmp_path: Path, change: str) -> None:
    """A price that is no number, or a time that is none, is never read as an offer."""
    path = tmp_path / "offers.db"
    write_catalogue(path, [FULL], NOW)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE offers SET {change}")  # noqa: S608 (the test's own text)
    with pytest.raises(InvalidInput, match="is a corrupt catalogue"):
        read_catalogue(path)


def test_description_of_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """Metadata that is missing or no time makes the file corrupt."""
    path = tmp_path / "offers.db"
    for damage in ("DELETE FROM metadata", "UPDATE metadata SET value = 'once'"):
        write_catalogue(path, [FULL], NOW)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(damage)
        with pytest.raises(InvalidInput, match="is a corrupt catalogue"):
            describe_catalogue(path)
