"""Two catalogues beside one another: what is cheaper, dearer, new, gone, and the same."""

from decimal import Decimal

from spotferry.catalog.comparison import compare
from spotferry.types import Offer

BASE = Offer(
    provider="aws",
    region="us-east-1",
    zone="use1-az1",
    instance_type="m5.large",
    vcpus=2,
    memory_gib=8,
    spot_usd_hour=Decimal("0.04"),
    on_demand_usd_hour=Decimal("0.10"),
)


def at(spot: str | None, listed: str | None = "0.10", **changes: object) -> Offer:
    """The offer at other prices."""
    prices = {"spot_usd_hour": spot and Decimal(spot), "on_demand_usd_hour": listed and Decimal(listed)}
    return BASE.model_copy(update={**prices, **changes})


def test_each_market_is_compared_by_itself() -> None:
    """A spot price that fell is cheaper; the list price beside it stays the same."""
    found = compare([at("0.04")], [at("0.03")])
    (change,) = found.changes
    assert (change.kind, change.market, change.before, change.after) == (
        "cheaper",
        "spot",
        Decimal("0.04"),
        Decimal("0.03"),
    )
    assert found.counts() == {"aws": {"cheaper": 1, "dearer": 0, "new": 0, "gone": 0, "same": 1}}


def test_a_market_that_opened_or_closed_is_new_or_gone() -> None:
    """A price that is there in one of the two only is no change of price."""
    opened = compare([at(None)], [at("0.03")])
    closed = compare([at("0.03")], [at(None)])
    assert [change.kind for change in (*opened.changes, *closed.changes)] == ["new", "gone"]


def test_the_largest_moves_come_first() -> None:
    """A price that doubled stands before one that fell by a tenth; what came and went stands last, by name."""
    before = [at("0.10", None), at("0.02", None, zone="b"), at("0.5", None, zone="gone")]
    after = [at("0.09", None), at("0.04", None, zone="b"), at("0.5", None, zone="new")]
    found = compare(before, after)
    assert [(change.kind, change.zone) for change in found.changes] == [
        ("dearer", "b"),
        ("cheaper", "use1-az1"),
        ("new", "new"),
        ("gone", "gone"),
    ]


def test_a_machine_with_an_accelerator_is_another_machine() -> None:
    """One type with and without a GPU is two things."""
    found = compare([at("0.04")], [at("0.04"), at("0.15", gpu_name="T4", gpu_count=1)])
    assert [(change.kind, change.gpu_name) for change in found.changes] == [("new", "T4"), ("new", "T4")]


def test_catalogues_that_are_alike_have_no_changes() -> None:
    """The same prices, written differently, are the same."""
    found = compare([at("0.040")], [at("0.04")])
    assert found.changes == ()
    assert found.counts()["aws"]["same"] == 2
