"""Azure's offers over replayed answers: paging quirks, joins, and everything that can be wrong with an answer."""

from decimal import Decimal

import pytest

from spotferry.providers.context import DEAREST_DISK_USD_GIB_MONTH
from spotferry.providers.pricing import ABOVE_ON_DEMAND, BAD_PRICE, NO_DISK_PRICE, NO_PRICE, UNKNOWN_TYPE
from spotferry.types.errors import ProviderUnavailable
from tests.unit.providers.azure.azure_answers import (
    D4,
    DISK_METERS,
    LOCATIONS,
    MACHINE_METERS,
    NOW,
    SKUS,
    Azure,
    cloud,
    disk,
    meter,
    page,
    sku,
)
from tests.unit.providers.replay import Answer, refused

BOTH = (meter(D4, 0.192), meter(D4, 0.0384, "Spot"))


def test_an_offer_says_all_that_placement_needs() -> None:
    """Each zone has an offer with the size, the region's prices, the disk and the time of reading."""
    first, second = cloud(sku(), rows=BOTH).offers()
    assert (first.zone, second.zone) == ("1", "2")
    assert first == second.model_copy(update={"zone": "1"})
    assert (first.provider, first.region, first.instance_type) == ("azure", "eastus", D4)
    assert (first.arch, first.vcpus, first.memory_gib, first.gpu_count) == ("x86_64", 4, 16, 0)
    assert (first.spot_usd_hour, first.on_demand_usd_hour) == (Decimal("0.0384"), Decimal("0.192"))
    assert (first.disk_usd_gib_month, first.read_at) == (Decimal("0.075"), NOW)


def test_arm_and_gpus() -> None:
    """Architecture comes from the SKU, the GPU's model from the name."""
    arm = sku("Standard_D4ps_v5", ("",), CpuArchitectureType="Arm64")
    gpu = sku("Standard_NC4as_T4_v3", ("1",), GPUs="1", MemoryGB="28")
    found = cloud(arm, gpu, rows=[meter("Standard_D4ps_v5", 0.154), meter("Standard_NC4as_T4_v3", 0.526)]).offers()
    assert [(o.arch, o.gpu_name, o.gpu_maker, o.gpu_count, o.vram_mib) for o in found] == [
        ("arm64", "", "", 0, 0),
        ("x86_64", "T4", "NVIDIA", 1, 16_384),
    ]


def test_no_spot_where_the_type_cannot_be_spot() -> None:
    """A spot price of a type that the spot market does not have is no offer's price."""
    (offer,) = cloud(sku(zones=(), LowPriorityCapable="False"), rows=BOTH).offers()
    assert (offer.spot_usd_hour, offer.on_demand_usd_hour) == (None, Decimal("0.192"))


def rows_of(count: int, first: int = 0) -> list[dict[str, object]]:
    """So many rows for as many types."""
    return [meter(f"Standard_T{number}", 0.1) for number in range(first, first + count)]


@pytest.mark.parametrize("size", [100, 1000])
def test_an_empty_next_link_does_not_end_a_full_page(size: int) -> None:
    """The list is read by its count: a full page without a link is followed, a page that is not full is the last."""
    azure = Azure()
    azure.pool.answer(MACHINE_METERS, page(rows_of(size), ""), page([*rows_of(3, size), *BOTH], None))
    azure.pool.answer(DISK_METERS, page([disk()]))
    azure.has(sku(zones=()))
    assert [o.on_demand_usd_hour for o in azure.offers()] == [Decimal("0.192")]
    skips = [a.parameters["$skip"] for a in azure.pool.asked if "Virtual Machines" in a.parameters.get("$filter", "")]
    assert skips == ["0", str(size)]


def test_a_short_page_with_a_link_is_followed() -> None:
    """A link says that there is more, also after a page that is not full."""
    azure = Azure()
    azure.pool.answer(MACHINE_METERS, page(rows_of(7), "https://prices.example:443/api?$skip=7"), page(BOTH))
    azure.pool.answer(DISK_METERS, page([disk()]))
    azure.has(sku(zones=()))
    assert len(azure.offers()) == 1


def test_a_full_last_page_costs_one_question_more() -> None:
    """A list whose length is a multiple of the page ends with an empty page."""
    azure = Azure()
    azure.pool.answer(MACHINE_METERS, page([*rows_of(98), *BOTH]), page([]))
    azure.pool.answer(DISK_METERS, page([disk()]))
    azure.has(sku(zones=()))
    assert len(azure.offers()) == 1


def test_a_list_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that repeats itself for ever is an error."""
    monkeypatch.setattr("spotferry.providers.azure.pricing_api._MOST_ROWS", 3000)
    azure = Azure()
    azure.pool.answer(MACHINE_METERS, page(rows_of(1000), "https://prices.example/again"))
    with refused("EndlessPages"):
        azure.offers()


def test_what_is_asked_of_the_list() -> None:
    """The filter names service, kind and region in the case that the list wants, and the currency."""
    azure = cloud(sku(), rows=BOTH)
    azure.offers()
    asked = azure.pool.asked[0]
    assert asked.parameters["$filter"] == (
        "serviceName eq 'Virtual Machines' and priceType eq 'Consumption' and armRegionName eq 'eastus'"
    )
    assert asked.parameters["currencyCode"] == "'USD'"
    assert "Authorization" not in asked.headers


def test_pages_of_skus_are_followed_with_the_token() -> None:
    """The resource manager's links are followed on its own host; an empty link ends the list."""
    azure = Azure()
    azure.prices(*BOTH)
    link = "https://manager.example/subscriptions/s1/providers/Microsoft.Compute/skus?$skiptoken=2"
    azure.pool.answer(SKUS, Answer({"value": [], "nextLink": link}), Answer({"value": [sku(zones=())], "nextLink": ""}))
    assert len(azure.offers()) == 1
    asked = [a for a in azure.pool.asked if "skus" in a.path]
    assert asked[1].parameters == {"$skiptoken": "2"}
    assert {a.headers["Authorization"] for a in asked} == {"Bearer secret"}


@pytest.mark.parametrize(
    ("link", "code"),
    [
        ("https://elsewhere.example/skus?$skiptoken=2", "ForeignLink"),
        ("https://manager.example/skus/Microsoft.Compute/skus", "EndlessPages"),
    ],
)
def test_links_that_lead_nowhere(link: str, code: str) -> None:
    """A link to another host never gets our token, and one that repeats itself is given up."""
    azure = Azure()
    azure.prices(*BOTH)
    azure.pool.answer(SKUS, Answer({"value": [], "nextLink": link}))
    with refused(code):
        azure.offers()


def test_zero_and_missing_prices_win_nothing() -> None:
    """A zero spot price closes spot; a type without any price makes no offer; a price without a type is noted."""
    azure = cloud(
        sku(zones=()),
        sku("Standard_X1", zones=("1",)),
        rows=[meter(D4, 0.192), meter(D4, 0, "Spot"), meter("Standard_Gone", 0.1)],
    )
    (offer,) = azure.offers()
    assert offer.spot_usd_hour is None
    assert azure.oddities() == {BAD_PRICE: 1, NO_PRICE: 1, UNKNOWN_TYPE: 1}
    assert ("eastus", UNKNOWN_TYPE, "standard_gone in eastus") in azure.noted


def test_a_spot_price_above_on_demand_is_kept_and_noted() -> None:
    """The offer says what was read, and the report counts it."""
    azure = cloud(sku(zones=()), rows=[meter(D4, 0.192), meter(D4, 0.2, "Spot")])
    (offer,) = azure.offers()
    assert offer.spot_usd_hour == Decimal("0.2")
    assert azure.oddities() == {ABOVE_ON_DEMAND: 1}


def test_an_unknown_disk_does_not_make_a_machine_look_cheap() -> None:
    """Where the list has no disk, the context's price is taken, and it is noted."""
    azure = Azure()
    azure.pool.answer(MACHINE_METERS, page(BOTH))
    azure.pool.answer(DISK_METERS, page([]))
    azure.has(sku(zones=()))
    assert azure.offers()[0].disk_usd_gib_month == DEAREST_DISK_USD_GIB_MONTH
    assert azure.oddities() == {NO_DISK_PRICE: 1}


@pytest.mark.parametrize(
    "row",
    [
        sku(vCPUs="many", vCPUsAvailable=""),
        sku(vCPUs="0", vCPUsAvailable="0"),
        sku(MemoryGB=""),
        sku(GPUs="1"),
        {**sku(), "capabilities": "none"},
    ],
    ids=["vcpus are no number", "no vcpus", "no memory", "a gpu without a model", "malformed"],
)
def test_a_machine_whose_size_is_not_known_makes_no_offer(row: dict[str, object]) -> None:
    """Nothing is guessed; it is noted."""
    known = sku("Standard_E4s_v5", zones=())
    azure = cloud(row, known, rows=[*BOTH, meter("Standard_E4s_v5", 0.252)])
    assert [offer.instance_type for offer in azure.offers()] == ["Standard_E4s_v5"]
    assert azure.oddities()[UNKNOWN_TYPE] >= 1


def test_other_resources_are_no_machines() -> None:
    """Disks and snapshots stand in the same list."""
    azure = cloud({"resourceType": "disks", "name": "Premium_LRS"}, sku(zones=()), rows=BOTH)
    assert len(azure.offers()) == 1
    assert not azure.noted


def denied() -> Answer:
    """A 403 of the resource manager."""
    return Answer({"error": {"code": "AuthorizationFailed", "message": "no"}}, 403)


def test_a_region_that_is_denied_leaves_the_others_alone() -> None:
    """A 403 in one region is that region's error, and get_prices gives the other region's offers first."""
    azure = Azure()
    azure.pool.answer(LOCATIONS, Answer({"value": [{"name": "westus"}, {"name": "eastus"}]}))
    azure.prices(*BOTH)
    azure.pool.answer(r"skus\?.*westus", denied())
    azure.has(sku())
    assert azure.model.regions() == ["eastus", "westus"]
    with refused("AuthorizationFailed"):
        azure.offers("westus")
    given: list[str] = []
    with refused("AuthorizationFailed"):
        given.extend(instance.region for instance in azure.model.get_prices())
    assert given == ["eastus"] * 4


def test_throttling_is_waited_out() -> None:
    """A throttled page of the list is asked again."""
    azure = Azure()
    azure.pool.answer(MACHINE_METERS, Answer(status=429), Answer(status=429, headers={"Retry-After": "1"}), page(BOTH))
    azure.pool.answer(DISK_METERS, page([disk()]))
    azure.has(sku(zones=()))
    assert len(azure.offers()) == 1


def test_a_list_that_does_not_answer_is_unavailable() -> None:
    """Errors of the server are no verdict."""
    azure = Azure()
    azure.pool.answer(MACHINE_METERS, Answer(status=500))
    with refused("500", ProviderUnavailable):
        azure.offers()


def test_half_an_answer_is_a_failure() -> None:
    """Machines without any price, or prices without any machine, are no news; a region may have neither."""
    with refused("EmptyListing"):
        cloud(sku(), rows=[]).offers()
    with refused("EmptyListing"):
        cloud(rows=BOTH).offers()
    assert cloud(rows=[]).offers() == []


def test_logical_regions_are_none() -> None:
    """Groups of regions, and rows without a name, are left out."""
    azure = Azure()
    rows = [
        {"name": "eastus", "metadata": {"regionType": "Physical"}},
        {"name": "unitedstates", "metadata": {"regionType": "Logical"}},
        {"displayName": "?"},
    ]
    azure.pool.answer(LOCATIONS, Answer({"value": rows}))
    assert azure.model.regions() == ["eastus"]


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        (MACHINE_METERS, Answer({"Items": None})),
        (MACHINE_METERS, Answer({"Items": [1]})),
        (DISK_METERS, Answer({})),
        (SKUS, Answer({"value": {}})),
    ],
)
def test_an_answer_that_breaks_its_promise_is_an_error(target: str, answer: Answer) -> None:
    """An answer of another shape is the cloud's error, never an exception of ours."""
    azure = Azure()
    azure.pool.answer(target, answer)
    azure.prices(*BOTH)
    azure.has(sku())
    with refused("InvalidAnswer"):
        azure.offers()
