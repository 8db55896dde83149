"""Rates of interruptions in a refresh: new or as they were, and never at the cost of prices."""

import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from spotferry.catalog.catalogue_file import Contents, contents_of, write_catalogue
from spotferry.catalog.drafts import BucketCatalogues
from spotferry.catalog.source import BucketObject, CatalogueFile, publish_file
from spotferry.types import Misconfigured, ProviderError, ProviderUnavailable
from spotferry.types.provider import PoolRate
from spotferry.usecases.refresh_prices import NO_RATES, PATIENCE, RATES_PATIENCE, Refreshed, RefreshPrices
from tests.builders import NOW
from tests.fake_prices import Answer, FakePricing, FakeSources, FakeTelling
from tests.fakes import FakeClock, FakeObjects, FakeRegions
from tests.unit.usecases.test_refresh_prices import BEFORE, offer

EAST, WEST = ("azure", "eastus"), ("azure", "westus")


def rate(per_hour: str = "0.075", read_at: datetime = NOW, region: str = "eastus", provider: str = "azure") -> PoolRate:
    """What the cloud tells of its one type."""
    return PoolRate(
        provider=provider,
        region=region,
        instance_type="m",
        per_hour=Decimal(per_hour),
        source="azure_eviction_rate",
        read_at=read_at,
    )


OLD = [rate("0.025", BEFORE), rate("0.025", BEFORE, "westus")]


class World:
    """A bucket with a catalogue of three hours ago, rates in it, and one cloud."""

    def __init__(self, folder: Path, cloud: FakePricing | Exception) -> None:
        self.objects = FakeObjects()
        self.cloud = cloud
        path = folder / "before.db"
        write_catalogue(path, [offer(*place, read_at=BEFORE) for place in (EAST, WEST)], BEFORE, OLD)
        publish_file(self.objects, path.read_bytes())

    def refresh(self) -> Refreshed:
        """One refresh of both regions."""
        regions, catalogues = FakeRegions(EAST, WEST), BucketCatalogues(self.objects)
        done = RefreshPrices(regions, FakeSources(azure=self.cloud), catalogues, FakeClock())()
        assert done is not None
        return done

    def contents(self) -> Contents:
        """The catalogue in force."""
        current = BucketObject(self.objects).current()
        assert current is not None
        return contents_of(current[0], "x")


def prices() -> dict[str, Answer]:
    """Offers of both regions."""
    return {region: [offer(name, region)] for name, region in (EAST, WEST)}


def test_rates_are_kept_beside_the_prices(tmp_path: Path) -> None:
    """What is told now replaces what was told before, and placement gets it."""
    rates = {"eastus": [rate()], "westus": [rate("0.225", region="westus")]}
    world = World(tmp_path, FakeTelling(prices(), rates=rates))
    done = world.refresh()
    assert (done.problems, done.oddities) == ([], {})
    assert world.contents().rates == [rate(), rate("0.225", region="westus")]
    told = CatalogueFile.in_bucket(world.objects, FakeClock()).offers().told
    assert [found.per_hour for found in told["azure", "m"]] == [Decimal("0.075"), Decimal("0.225")]


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (ProviderError("AuthorizationFailed", "no"), "AuthorizationFailed: no"),
        (ProviderUnavailable("RateLimiting", "slow down"), "RateLimiting: slow down"),
        (KeyError("data"), "KeyError: 'data'"),
        ([], "NoRates: the cloud told no rate that can be used (eastus)"),
        ([rate(region="westus"), rate(provider="gcp")], "NoRates: the cloud told no rate that can be used (eastus)"),
    ],
)
def test_rates_that_fail_stay_and_fail_no_price(
    tmp_path: Path, trouble: Exception | list[PoolRate], words: str
) -> None:
    """The region's rates keep the time when they were read; its prices are new, and no region has a problem."""
    rates: dict[str, list[PoolRate] | Exception] = {"eastus": trouble, "westus": [rate(region="westus")]}
    world = World(tmp_path, FakeTelling(prices(), rates=rates))
    done = world.refresh()
    assert world.contents().rates == [OLD[0], rate(region="westus")]
    assert {found.read_at for found in world.contents().offers} == {NOW}
    assert done.problems == []
    assert done.oddities == {"azure": {NO_RATES: f"1, such as eastus: {words}"}}


def test_prices_that_fail_keep_no_rate_from_being_new(tmp_path: Path) -> None:
    """Each is read by itself."""
    offers: dict[str, Answer] = prices() | {"eastus": ProviderError("Nope", "no")}
    rates = {"eastus": [rate()], "westus": [rate(region="westus")]}
    world = World(tmp_path, FakeTelling(offers, rates=rates))
    assert world.refresh().problems == ["azure eastus: Nope: no"]
    assert world.contents().rates == [rate(), rate(region="westus")]


@pytest.mark.parametrize("cloud", [Misconfigured("no credentials"), ProviderError("Down", "all of it")])
def test_a_cloud_that_cannot_be_had_keeps_its_rates(tmp_path: Path, cloud: Exception) -> None:
    """As it keeps its prices."""
    world = World(tmp_path, cloud)
    world.refresh()
    assert world.contents().rates == OLD


def test_a_cloud_that_tells_none_has_none(tmp_path: Path) -> None:
    """What it told once is not carried along for ever."""
    world = World(tmp_path, FakePricing(prices()))
    assert world.refresh().oddities == {}
    assert world.contents().rates == []


def test_a_catalogue_without_a_table_of_rates_is_as_good(tmp_path: Path) -> None:
    """One that was written before there was one is read, and refreshed."""
    world = World(tmp_path, FakeTelling(prices(), rates={"eastus": ProviderError("Nope", "no")}))
    publish_file(world.objects, _without_rates(tmp_path / "before.db"))
    assert world.contents().rates == []
    assert len(world.contents().offers) == 2
    world.refresh()
    assert world.contents().rates == []


def test_patience_for_rates_is_bounded() -> None:
    """The function's fifteen minutes hold the patience for prices and the one for rates."""
    assert timedelta(minutes=14) > PATIENCE + RATES_PATIENCE


def _without_rates(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE rates")
        connection.commit()
    return path.read_bytes()
