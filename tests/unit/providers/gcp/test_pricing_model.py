"""Google Cloud's offers over replayed answers: paging, joins, and everything that can be wrong with an answer."""

from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.providers.context import DEAREST_DISK_USD_GIB_MONTH
from spotferry.providers.gcp.pricing_model import FAILURE_LASTS, RATES_LAST
from spotferry.providers.pricing import ABOVE_ON_DEMAND, BAD_PRICE, NO_DISK_PRICE, NO_PRICE, UNKNOWN_TYPE
from spotferry.types.errors import ProviderUnavailable
from tests.unit.providers.gcp.gcp_answers import (
    NOW,
    SKUS,
    USUAL_SKUS,
    ZONES,
    Gcp,
    family_skus,
    machine,
    one_zone,
    sku,
    with_gpus,
    zone,
)
from tests.unit.providers.replay import Answer, refused

N1 = machine("n1-standard-4", 4, 15)


def test_an_offer_says_all_that_placement_needs() -> None:
    """Zone, size, prices in both markets, disk and the time of reading are as the APIs have them."""
    (offer,) = one_zone(*USUAL_SKUS, machines=[N1]).offers()
    assert (offer.provider, offer.region, offer.zone) == ("gcp", "us-central1", "us-central1-a")
    assert (offer.instance_type, offer.arch, offer.vcpus, offer.memory_gib) == ("n1-standard-4", "x86_64", 4, 15)
    assert (offer.on_demand_usd_hour, offer.spot_usd_hour) == (Decimal("0.18"), Decimal("0.039"))
    assert (offer.disk_usd_gib_month, offer.read_at) == (Decimal("0.1"), NOW)


def test_gpus_are_joined_to_the_hosts_that_take_them() -> None:
    """An N1 host is offered alone and with every number of T4 that the zone allows; other families are left alone."""
    cloud = one_zone(
        *USUAL_SKUS, machines=[N1, machine("c4a-standard-4", 4, 16)], gpus=[("nvidia-tesla-t4", 2), ("nvidia-l4", 8)]
    )
    found = {(o.instance_type, o.gpu_name, o.gpu_count): o for o in cloud.offers()}
    assert set(found) == {
        ("n1-standard-4", "", 0),
        ("n1-standard-4", "T4", 1),
        ("n1-standard-4", "T4", 2),
        ("c4a-standard-4", "", 0),
    }
    two = found["n1-standard-4", "T4", 2]
    assert (two.on_demand_usd_hour, two.spot_usd_hour) == (Decimal("0.88"), Decimal("0.259"))
    assert (two.gpu_maker, two.vram_mib) == ("NVIDIA", 32_768)
    assert found["c4a-standard-4", "", 0].arch == "arm64"


def test_gpus_that_come_with_a_machine_are_counted_once() -> None:
    """An A2 is one offer: its GPUs, their memory and their price are in it."""
    row = with_gpus("a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 1)
    (offer,) = one_zone(*USUAL_SKUS, machines=[row], gpus=[("nvidia-tesla-a100", 16)]).offers()
    assert (offer.gpu_name, offer.gpu_count, offer.vram_mib) == ("A100", 1, 40_960)
    assert (offer.on_demand_usd_hour, offer.spot_usd_hour) == (Decimal("3.6"), Decimal("1.093"))


def test_all_pages_are_read() -> None:
    """Pages of SKUs and of machine types are followed by their tokens; an empty token ends them."""
    cloud = Gcp()
    cloud.pool.answer(
        SKUS,
        Answer({"skus": USUAL_SKUS[:1], "nextPageToken": "t1"}),
        Answer({"skus": USUAL_SKUS[1:], "nextPageToken": ""}),
    )
    cloud.has_zones(zone("us-central1-a"))
    cloud.pool.answer("acceleratorTypes", Answer({}))
    cloud.pool.answer(
        "machineTypes",
        Answer({"items": [N1], "nextPageToken": "t2"}),
        Answer({"nextPageToken": "t3"}),
        Answer({"items": [machine("n1-standard-8", 8, 30)], "nextPageToken": ""}),
    )
    assert [o.instance_type for o in cloud.offers()] == ["n1-standard-4", "n1-standard-8"]
    tokens = [asked.parameters.get("pageToken") for asked in cloud.pool.asked]
    assert tokens == [None, "t1", None, None, None, "t2", "t3"]
    assert cloud.pool.asked[0].parameters["currencyCode"] == "USD"


def test_a_page_that_follows_itself_is_an_error() -> None:
    """A listing that would never end is given up."""
    cloud = Gcp()
    cloud.pool.answer(SKUS, Answer({"skus": [], "nextPageToken": "again"}))
    with refused("EndlessPages"):
        cloud.model.regions()


def test_regions_have_rates_and_a_zone_that_is_up() -> None:
    """A region that is down, or that nothing is priced in, is none."""
    cloud = Gcp()
    cloud.sells(*USUAL_SKUS, sku("N2 Instance Core running in Iowa", "0.03", regions=["us-east1", "us-west1"]))
    cloud.has_zones(zone("us-central1-a"), zone("us-east1-b", "DOWN"), zone("us-east1-c"), zone("asia-east1-a"))
    assert cloud.model.regions() == ["us-central1", "us-east1"]


def test_the_catalogue_is_read_once_for_all_regions() -> None:
    """Offers use the rates that `regions` read, until they are old; `regions` reads anew."""
    cloud = one_zone(*USUAL_SKUS, machines=[N1])
    cloud.model.regions()
    cloud.offers()
    cloud.offers()
    assert sum("skus" in path for path in cloud.pool.paths()) == 1
    cloud.pass_time(RATES_LAST + timedelta(seconds=1))
    assert cloud.offers()[0].read_at == cloud.now
    cloud.model.regions()
    assert sum("skus" in path for path in cloud.pool.paths()) == 3


def test_zero_and_missing_prices_win_nothing() -> None:
    """A zero spot rate closes the spot market, and a machine without any price makes no offer; both are noted."""
    cloud = one_zone(
        *family_skus("N1 Predefined Instance", "0.03", "0.004"),
        *family_skus("N1 Predefined Instance", "0", "0.001", spot=True),
        machines=[N1, machine("x9-standard-4", 4, 16)],
    )
    (offer,) = cloud.offers()
    assert (offer.instance_type, offer.spot_usd_hour) == ("n1-standard-4", None)
    assert cloud.oddities()[BAD_PRICE] == 1
    assert ("us-central1", NO_PRICE, "x9-standard-4 in us-central1-a") in cloud.noted


def test_a_spot_price_above_on_demand_is_kept_and_noted() -> None:
    """The offer says what was read, and the report counts it."""
    cloud = one_zone(
        *family_skus("N1 Predefined Instance", "0.03", "0.004"),
        *family_skus("N1 Predefined Instance", "0.05", "0.004", spot=True),
        machines=[N1],
    )
    (offer,) = cloud.offers()
    assert (offer.spot_usd_hour, offer.on_demand_usd_hour) == (Decimal("0.26"), Decimal("0.18"))
    assert cloud.oddities()[ABOVE_ON_DEMAND] == 1


def test_an_unknown_disk_does_not_make_a_machine_look_cheap() -> None:
    """Where the catalogue has no disk, the context's price is taken, and it is noted."""
    cloud = one_zone(*family_skus("N1 Predefined Instance", "0.03", "0.004"), machines=[N1])
    assert cloud.offers()[0].disk_usd_gib_month == DEAREST_DISK_USD_GIB_MONTH
    assert cloud.oddities()[NO_DISK_PRICE] == 2


def test_what_is_not_for_sale_or_not_known_makes_no_offer() -> None:
    """Deprecated types are passed over; an unknown accelerator and a malformed row are noted."""
    cloud = one_zone(
        *USUAL_SKUS,
        machines=[
            machine("n1-standard-1", 1, 3.75, deprecated={"state": "DEPRECATED"}),
            with_gpus("ct5lp-hightpu-1t", 24, 48, "ct5lp", 1),
            {"name": "n1-broken", "guestCpus": "many"},
            N1,
        ],
    )
    assert [o.instance_type for o in cloud.offers()] == ["n1-standard-4"]
    assert cloud.oddities() == {UNKNOWN_TYPE: 2}


def forbidden() -> Answer:
    """A 403 of the compute API."""
    return Answer({"error": {"code": 403, "message": "no", "errors": [{"reason": "forbidden"}]}}, 403)


def test_a_region_that_is_denied_leaves_the_others_alone() -> None:
    """A 403 in one region is that region's error; the other one's offers are whole, and get_prices gives them, too."""
    cloud = Gcp()
    cloud.sells(*USUAL_SKUS, *(row | {"serviceRegions": ["europe-west4"]} for row in USUAL_SKUS))
    cloud.has_zones(zone("us-central1-a"), zone("europe-west4-a"))
    cloud.pool.answer("/zones/europe-west4-a/", forbidden())
    cloud.has_machines("us-central1-a", N1)
    assert cloud.model.regions() == ["europe-west4", "us-central1"]
    with refused("forbidden"):
        cloud.offers("europe-west4")
    given: list[str] = []
    with refused("forbidden"):
        given.extend(instance.region for instance in cloud.model.get_prices())
    assert given == ["us-central1", "us-central1"]


def test_throttling_is_waited_out() -> None:
    """A throttled page is asked again and nothing of the region is lost."""
    cloud = Gcp()
    cloud.sells(*USUAL_SKUS)
    cloud.has_zones(zone("us-central1-a"))
    cloud.pool.answer("acceleratorTypes", Answer(status=429), Answer({}))
    limit = Answer({"error": {"code": 403, "message": "no", "errors": [{"reason": "rateLimitExceeded"}]}}, 403)
    cloud.pool.answer("machineTypes", limit, Answer({"items": [N1]}))
    assert len(cloud.offers()) == 1


def test_a_cloud_that_does_not_answer_is_unavailable() -> None:
    """Errors of the server are no verdict."""
    cloud = Gcp()
    cloud.pool.answer(SKUS, Answer(status=503))
    with refused("503", ProviderUnavailable):
        cloud.model.regions()


def test_waiting_regions_share_a_failure() -> None:
    """A catalogue that fails is not asked again for each region, but a minute later it is."""
    cloud = one_zone(*USUAL_SKUS, machines=[N1])
    cloud.pool.answer_first(SKUS, forbidden())
    for _ in range(3):
        with refused("forbidden"):
            cloud.offers()
    assert len(cloud.pool.asked) == 1
    cloud.pool.answer_first(SKUS, Answer({"skus": USUAL_SKUS}))
    cloud.pass_time(FAILURE_LASTS + timedelta(seconds=1))
    assert len(cloud.offers()) == 1


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        (SKUS, Answer({"skus": "all"})),
        (ZONES, Answer({"items": [{"name": "us-central1-a"}]})),
        ("acceleratorTypes", Answer({"items": [{"maximumCardsPerInstance": 4}]})),
        ("machineTypes", Answer({"items": {"a": 1}})),
    ],
)
def test_an_answer_that_breaks_its_promise_is_an_error(target: str, answer: Answer) -> None:
    """An answer of another shape is the cloud's error, never an exception of ours or of a library's."""
    cloud = Gcp()
    cloud.pool.answer(target, answer)
    cloud.sells(*USUAL_SKUS)
    cloud.has_zones(zone("us-central1-a"))
    cloud.has_machines("us-central1-a", N1)
    with refused("InvalidAnswer"):
        cloud.offers()


def test_an_empty_listing_is_a_failure() -> None:
    """A catalogue without rates, and a region without machine types, are no news: the last good prices stay."""
    with refused("EmptyListing"):
        one_zone(sku("Balanced PD Capacity in Iowa", "0.1", "GiBy.mo"), machines=[N1]).model.regions()
    with refused("EmptyListing"):
        one_zone(*USUAL_SKUS, machines=[]).offers()


def test_a_region_without_zones_is_refused() -> None:
    """A region that went away is an error, not an empty list: its last good prices stay."""
    with refused("NoSuchRegion"):
        one_zone(*USUAL_SKUS, machines=[N1]).offers("us-west9")
