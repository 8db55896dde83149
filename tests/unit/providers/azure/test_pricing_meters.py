"""Azure's price list: which rows are a Linux machine's price, and which one of several counts."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.providers.azure.pricing_meters import PriceSheet, disk_usd_gib_month
from tests.unit.providers.azure.azure_answers import D4, NOW, Json, disk, meter


def sheet(*rows: Json) -> tuple[PriceSheet, list[str]]:
    """The price sheet of these rows, and what was odd."""
    read = PriceSheet(NOW)
    return read, [subject for row in rows for subject in read.add(row)]


def test_both_markets_are_read() -> None:
    """A type has the price of its spot meter and of its plain one; case does not count."""
    read, odd = sheet(meter(D4, 0.192), meter(D4, 0.0384, "Spot"))
    assert read.quotes(D4.upper()) == (Decimal("0.0384"), Decimal("0.192"))
    assert odd == []


@pytest.mark.parametrize(
    "row",
    [
        meter(productName="Virtual Machines Dsv5 Series Windows"),
        meter(productName="Dsv5 Series Cloud Services"),
        meter(productName="Dsv5 Series CloudServices"),
        meter(productName="Virtual Machines Dsv5 Series Dedicated Host"),
        meter(skuName="D4s v5 Low Priority", meterName="D4s v5 Low Priority"),
        meter(meterName="D4s v5/D4s Expired"),
        meter(type="Reservation", reservationTerm="1 Year"),
        meter(type="DevTestConsumption"),
        meter(unitOfMeasure="1 GB/Month"),
        meter(tierMinimumUnits=100),
        meter(armSkuName=""),
        meter(effectiveStartDate="2027-01-01T00:00:00Z"),
    ],
    ids=lambda row: f"{row['productName']} {row['meterName']} {row['type']} {row['unitOfMeasure']}",
)
def test_other_rows_price_no_machine_of_ours(row: Json) -> None:
    """Windows, Low Priority, cloud services, hosts, reservations, tiers and the future are passed over in silence."""
    read, odd = sheet(row)
    assert (read.machine_types(), odd) == (set(), [])


@pytest.mark.parametrize("price", [0, 0.0, -1, None, "NaN", "Infinity"])
def test_no_price_closes_the_market(price: object) -> None:
    """What is no price above zero closes that market alone, and is told."""
    read, odd = sheet(meter(D4, price, "Spot"), meter(D4, 0.192))
    assert read.quotes(D4) == (None, Decimal("0.192"))
    assert odd == ["Standard_D4s_v5 (D4s v5 Spot)"]


def test_another_currency_is_no_price() -> None:
    """A price that is not in dollars is never taken for one."""
    read, odd = sheet(meter(currencyCode="EUR"))
    assert read.machine_types() == set()
    assert len(odd) == 1


@pytest.mark.parametrize("row", [{"retailPrice": "cheap", "meterName": "x"}, {"productName": 7, "meterName": "x"}])
def test_a_malformed_row_is_told(row: Json) -> None:
    """A row of another shape stops nothing."""
    assert sheet(row)[1] == ["x"]


def test_the_primary_and_newest_row_counts() -> None:
    """Of several rows the primary meter's newest one that is in force counts, in whatever order they come."""
    rows = [
        meter(D4, 0.1, isPrimaryMeterRegion=False, effectiveStartDate="2026-11-01T00:00:00Z"),
        meter(D4, 0.2, effectiveStartDate="2024-01-01T00:00:00Z"),
        meter(D4, 0.3, effectiveStartDate="2026-01-01T00:00:00Z"),
        meter(D4, 0.4, effectiveStartDate="2026-12-24T00:00:00Z"),
    ]
    for order in (rows, rows[::-1]):
        assert sheet(*order)[0].quotes(D4).on_demand == Decimal("0.3")


def test_a_secondary_row_is_better_than_none() -> None:
    """Where there is no primary meter, another one counts."""
    assert sheet(meter(D4, 0.1, isPrimaryMeterRegion=False))[0].quotes(D4).on_demand == Decimal("0.1")


def test_a_gib_of_disk() -> None:
    """A GiB costs the tier's price divided by its size; mounts, operations and other tiers are no disk."""
    rows = [
        disk(),
        disk(0.96, meterName="E10 LRS Disk Mount"),
        disk(0.002, unitOfMeasure="10K"),
        disk(19.2, meterName="E15 LRS Disk"),
    ]
    assert disk_usd_gib_month(iter(rows), NOW) == Decimal("0.075")


@pytest.mark.parametrize(
    "row", [disk(0), disk(currencyCode="EUR"), disk(effectiveStartDate="2027-01-01T00:00:00Z"), {"productName": 7}]
)
def test_no_disk_price(row: Json) -> None:
    """What is no price of the disk gives none."""
    assert disk_usd_gib_month(iter([row]), datetime(2026, 12, 1, tzinfo=UTC)) is None
