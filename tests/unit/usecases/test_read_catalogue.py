"""The catalogue as people see it, and their orders for a newer one."""

from datetime import datetime

from spotferry.catalog.drafts import BucketCatalogues
from spotferry.catalog.source import publish
from spotferry.usecases.read_catalogue import ReadCatalogue
from tests.builders import NOW
from tests.fakes import OFFERS, FakeClock, FakeObjects


class FakeTrigger:
    """Keeps the orders."""

    def __init__(self) -> None:
        self.orders: list[tuple[datetime, str]] = []

    def __call__(self, asked_at: datetime, asked_by: str) -> None:
        """Keep it."""
        self.orders.append((asked_at, asked_by))


def read(objects: FakeObjects, trigger: FakeTrigger) -> ReadCatalogue:
    """The use case."""
    return ReadCatalogue(BucketCatalogues(objects), trigger, FakeClock())


def test_the_catalogue_is_told_by_cloud_and_region() -> None:
    """Offers and age of prices of each, in plain JSON."""
    objects = FakeObjects()
    publish(objects, OFFERS, NOW)
    told = read(objects, FakeTrigger())()
    time = NOW.isoformat()
    assert told["built_at"] == time
    assert told["sources"] == {"aws": {"offers": 5, "oldest": time, "newest": time}}
    assert [(r["provider"], r["region"], r["offers"], r["oldest"], r["tried_at"]) for r in told["regions"]] == [
        ("aws", "eu-west-1", 2, time, None),
        ("aws", "us-east-1", 3, time, None),
    ]


def test_an_order_is_passed_on_and_says_when_it_will_be_done() -> None:
    """The answer's time is the one that the catalogue's is to be compared with."""
    trigger = FakeTrigger()
    assert read(FakeObjects(), trigger).refresh("mary") == {"asked_at": NOW.isoformat()}
    assert trigger.orders == [(NOW, "mary")]
