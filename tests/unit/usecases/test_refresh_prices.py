"""A refresh of prices: whole regions, each new or as it was, and no cloud's trouble is another's."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from threading import Event

import pytest

from spotferry.catalog.catalogue_file import offers_in
from spotferry.catalog.drafts import BucketCatalogues
from spotferry.catalog.source import BucketObject, publish
from spotferry.types import Misconfigured, Offer, ProviderError, ProviderUnavailable
from spotferry.usecases.refresh_prices import STALE_AFTER, Refreshed, RefreshPrices
from tests.builders import NOW
from tests.fake_prices import FakePricing, FakeSources
from tests.fakes import FakeClock, FakeObjects, FakeRegions

BEFORE = NOW - timedelta(hours=3)
PLACES = (("aws", "us-east-1"), ("aws", "eu-west-1"), ("gcp", "us-central1"))


def offer(provider: str, region: str, spot: str = "0.03", name: str = "m", **changes: object) -> Offer:
    """An offer in the region's first zone."""
    made = Offer(
        provider=provider,
        region=region,
        zone=f"{region}-a",
        instance_type=name,
        vcpus=2,
        memory_gib=8,
        spot_usd_hour=Decimal(spot),
        read_at=NOW,
    )
    return made.model_copy(update=changes)


class World:
    """A bucket with a catalogue of three hours ago, and clouds."""

    def __init__(self, *places: tuple[str, str], **clouds: FakePricing | Exception) -> None:
        self.objects = FakeObjects()
        self.clock = FakeClock()
        self.sources = FakeSources(**clouds)
        self.regions = FakeRegions(*(places or PLACES))
        publish(self.objects, [offer(*place, spot="0.09", read_at=BEFORE) for place in PLACES], BEFORE)

    def refresh(self, *, everywhere: bool = False, patience: timedelta = timedelta(seconds=20)) -> Refreshed:
        """One refresh."""
        done = self.use_case(everywhere=everywhere, patience=patience)()
        assert done is not None
        return done

    def use_case(self, *, everywhere: bool = False, patience: timedelta = timedelta(seconds=20)) -> RefreshPrices:
        """The use case over this world."""
        catalogues = BucketCatalogues(self.objects)
        return RefreshPrices(self.regions, self.sources, catalogues, self.clock, everywhere, patience)

    def prices(self) -> dict[str, str]:
        """The spot price of each region in the catalogue in force."""
        current = BucketObject(self.objects).current()
        assert current is not None
        return {found.region: str(found.spot_usd_hour) for found in offers_in(current[0], "x")}


def all_well() -> dict[str, FakePricing]:
    """Clouds that answer for the regions that are open, and for one more."""
    aws = {name: [offer("aws", name)] for name in ("us-east-1", "eu-west-1", "us-west-2")}
    return {"aws": FakePricing(aws), "gcp": FakePricing({"us-central1": [offer("gcp", "us-central1", "0.02")]})}


def test_open_regions_get_new_prices() -> None:
    """All regions that are set up are read, and no other."""
    world = World(**all_well())
    done = world.refresh()
    assert world.prices() == {"us-east-1": "0.03", "eu-west-1": "0.03", "us-central1": "0.02"}
    assert (done.problems, done.oddities, done.stale) == ([], {}, [])
    assert done.catalogue.built_at == NOW


def test_all_regions_of_open_clouds_can_be_read() -> None:
    """With `everywhere` a cloud's other regions are in the catalogue too; a cloud that is not open stays unasked."""
    clouds = all_well()
    world = World(("aws", "us-east-1"), **clouds)
    world.refresh(everywhere=True)
    assert set(world.prices()) == {"us-east-1", "eu-west-1", "us-west-2"}
    assert clouds["gcp"].asked == []


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (ProviderError("AccessDenied", "no", "eu-west-1"), "AccessDenied: no (eu-west-1)"),
        (ProviderUnavailable("Throttling", "slow down"), "Throttling: slow down"),
        (KeyError("Prices"), "KeyError: 'Prices'"),
        ([], "NoOffers: the cloud named no price that can be used (eu-west-1)"),
    ],
)
def test_a_region_that_fails_keeps_its_prices(trouble: Exception | list[Offer], words: str) -> None:
    """Its offers of before stay, with their age; the other regions of its cloud are new."""
    world = World(
        aws=FakePricing({"us-east-1": [offer("aws", "us-east-1")], "eu-west-1": trouble}), gcp=all_well()["gcp"]
    )
    done = world.refresh()
    assert world.prices() == {"us-east-1": "0.03", "eu-west-1": "0.09", "us-central1": "0.02"}
    assert done.problems == [f"aws eu-west-1: {words}"]
    kept = done.catalogue.regions["aws", "eu-west-1"]
    assert (kept.oldest, kept.tried_at, kept.offers) == (BEFORE, NOW, 1)


def test_no_region_is_half_new() -> None:
    """A region whose second page fails keeps all of its old prices."""

    def half() -> Iterator[Offer]:
        yield offer("aws", "eu-west-1")
        raise ProviderUnavailable("Throttling", "page 2")

    world = World(aws=FakePricing({"us-east-1": [offer("aws", "us-east-1")], "eu-west-1": half}), gcp=all_well()["gcp"])
    world.refresh()
    assert world.prices()["eu-west-1"] == "0.09"


def test_a_cloud_that_cannot_be_asked_keeps_all_its_prices() -> None:
    """Missing credentials of one cloud do not keep the others from being read."""
    world = World(aws=all_well()["aws"], gcp=Misconfigured("there are no credentials"))
    done = world.refresh()
    assert world.prices()["us-central1"] == "0.09"
    assert done.problems == ["gcp us-central1: there are no credentials"]


def test_a_cloud_that_does_not_name_its_regions_keeps_those_it_had() -> None:
    """With `everywhere` also the regions that are not open stay, since nobody said that they are gone."""
    world = World(("aws", "us-east-1"), aws=Misconfigured("no credentials"))
    world.refresh(everywhere=True)
    assert set(world.prices()) == {"us-east-1", "eu-west-1"}


def test_a_region_that_hangs_is_not_waited_for() -> None:
    """After the patience is over the others' prices come into force, and the late answer is dropped."""
    release = Event()

    def hang() -> Iterator[Offer]:
        yield offer("aws", "eu-west-1")
        release.wait(20)
        yield offer("aws", "eu-west-1", name="late")

    world = World(aws=FakePricing({"us-east-1": [offer("aws", "us-east-1")], "eu-west-1": hang}), gcp=all_well()["gcp"])
    try:
        done = world.refresh(patience=timedelta(seconds=0.5))
    finally:
        release.set()
    assert world.prices() == {"us-east-1": "0.03", "eu-west-1": "0.09", "us-central1": "0.02"}
    assert done.problems == ["aws eu-west-1: no whole answer within 0:00:00.500000"]


def test_when_every_cloud_fails_the_old_prices_stay_and_are_said_to_be_old() -> None:
    """Nothing is lost, and a day later it is a failure."""
    world = World(aws=Misconfigured("x"), gcp=Misconfigured("y"))
    assert world.refresh().stale == []
    world.clock.now = BEFORE + STALE_AFTER + timedelta(seconds=1)
    done = world.refresh()
    assert set(world.prices().values()) == {"0.09"}
    time = BEFORE.isoformat()
    assert done.stale == [
        f"aws eu-west-1: prices of {time}, x",
        f"aws us-east-1: prices of {time}, x",
        f"gcp us-central1: prices of {time}, y",
    ]


def test_prices_of_an_old_list_that_was_just_read_are_no_failure() -> None:
    """A cloud that publishes a dated list says how old it is; reading it went well."""
    listed = offer("gcp", "us-central1", read_at=NOW - timedelta(days=400))
    world = World(("gcp", "us-central1"), gcp=FakePricing({"us-central1": [listed]}))
    assert world.refresh().stale == []


def test_a_region_without_any_price_is_a_failure_at_once() -> None:
    """A region that was just opened and cannot be read is told without a day's delay."""
    world = World(*PLACES, ("azure", "eastus"), azure=Misconfigured("z"), **all_well())
    assert world.refresh().stale == ["azure eastus: prices of no time, z"]


def test_regions_that_are_closed_again_leave_the_catalogue() -> None:
    """What no job can be placed on is not carried along for ever."""
    world = World(("aws", "us-east-1"), **all_well())
    world.refresh()
    assert set(world.prices()) == {"us-east-1"}


def test_without_open_regions_nothing_changes() -> None:
    """Settings that were lost do not cost the catalogue."""
    world = World(**all_well())
    world.regions.settings = []
    before = dict(world.objects.stored)
    with pytest.raises(Misconfigured, match="no launch region is set up"):
        world.refresh()
    assert world.objects.stored == before


def test_an_order_that_was_met_already_asks_nobody() -> None:
    """A repeated order finds a catalogue that is newer than itself."""
    clouds = all_well()
    world = World(**clouds)
    assert world.use_case()(BEFORE) is None
    assert clouds["aws"].asked == []
    assert world.use_case()(BEFORE + timedelta(seconds=1)) is not None


def test_oddities_are_counted_with_examples() -> None:
    """What pricing models find odd, and what is left out here, is told by cloud: how often, and about what."""
    odd = [("spot above on-demand", f"m{number} in z") for number in range(5)]
    bad = [offer("aws", "us-east-1"), offer("aws", "us-east-1", name="free", spot_usd_hour=Decimal(0))]
    world = World(("aws", "us-east-1"), aws=FakePricing({"us-east-1": bad}, odd))
    assert world.refresh().oddities == {
        "aws": {
            "spot above on-demand": "5, such as m0 in z, m1 in z, m2 in z",
            "no price": "1, such as free in us-east-1-a",
        }
    }
