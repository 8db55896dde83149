"""What EC2 asked for a machine at its launch, and what it tells of the machine's beginning and end."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

import pytest

from spotferry.ports.cloud import TellsLaunchPrice
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Attempt
from tests.unit.providers.aws.rig import LONG_AGO, NOW, REGION, Rig, an_attempt, machine, reservations

ID = "i-0000000a"


def reading(price: str, at: timedelta = timedelta(0)) -> Mapping[str, object]:
    """One line of the price history, so long before the launch."""
    return {
        "AvailabilityZone": "us-east-1a",
        "InstanceType": "m5.large",
        "SpotPrice": price,
        "Timestamp": LONG_AGO - at,
    }


def asked(zone: str = "us-east-1a", name: str = "AvailabilityZone", **more: object) -> Mapping[str, object]:
    """The question for the price in force at the launch."""
    window = {"StartTime": LONG_AGO, "EndTime": LONG_AGO}
    return {"InstanceTypes": ["m5.large"], "ProductDescriptions": ["Linux/UNIX"], name: zone, **window, **more}


def launched(**changes: object) -> Attempt:
    """An attempt whose machine was launched an hour ago."""
    return an_attempt(**{"launched_at": LONG_AGO, "allocated_id": ID, **changes})


def test_the_price_in_force_at_the_launch_is_told() -> None:
    """Of several readings the last before the launch counts, over all pages, empty ones among them."""
    rig = Rig()
    pages: tuple[list[str], ...] = (["0.0300"], [], ["0.0353"])
    for number, prices in enumerate(pages):
        lines = [reading(p, timedelta(hours=2 - number)) for p in prices]
        more = {"NextToken": f"t{number}"} if number < len(pages) - 1 else {"NextToken": ""}
        token = {"NextToken": f"t{number - 1}"} if number else {}
        rig.stub().add_response("describe_spot_price_history", {"SpotPriceHistory": lines, **more}, asked(**token))
    assert isinstance(rig.provider, TellsLaunchPrice)
    assert rig.provider.launch_price(launched()) == Decimal("0.0353")
    rig.done()


@pytest.mark.parametrize("price", ["", "0", "-1", "NaN", "free"])
def test_a_reading_that_is_no_price_is_none(price: str) -> None:
    """A missing, zero, negative or odd price never becomes a machine's."""
    rig = Rig()
    rig.stub().add_response("describe_spot_price_history", {"SpotPriceHistory": [reading(price)]}, asked())
    assert rig.provider.launch_price(launched()) is None


def test_a_zone_known_by_its_id_is_asked_for_by_it() -> None:
    """Price lists have ids of zones where accounts have names."""
    rig = Rig()
    params = asked("use1-az1", "AvailabilityZoneId")
    rig.stub().add_response("describe_spot_price_history", {"SpotPriceHistory": [reading("0.03")]}, params)
    assert rig.provider.launch_price(launched(availability_zone="use1-az1")) == Decimal("0.03")


def test_machines_at_list_price_and_unlaunched_ones_are_not_asked_about() -> None:
    """Only a spot price moves between two readings."""
    rig = Rig()
    assert rig.provider.launch_price(launched(market="on_demand")) is None
    assert rig.provider.launch_price(an_attempt()) is None  # a call would find no answer and raise


def test_a_refusal_is_an_error_of_ours() -> None:
    """Whoever may not read prices hears so."""
    rig = Rig()
    rig.stub().add_client_error("describe_spot_price_history", "UnauthorizedOperation", "no", 403)
    with pytest.raises(ProviderError):
        rig.provider.launch_price(launched())


@pytest.mark.parametrize(
    ("code", "transition", "ended_by", "at"),
    [
        ("Client.UserInitiatedShutdown", "User initiated (2026-05-04 11:59:58 GMT)", "us", NOW - timedelta(seconds=2)),
        ("Client.InstanceInitiatedShutdown", "", "us", None),
        ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination", "cloud", None),
        ("Server.ScheduledStop", "Service initiated (2026-05-04 12:00:00 UTC)", "cloud", NOW),
        ("Server.InternalError", "Server.InternalError", "launch", None),
        ("Server.Unheard", "(yesterday)", "", None),
    ],
)
def test_the_end_is_told_with_its_time_and_whose_doing_it_was(
    code: str, transition: str, ended_by: str, at: object
) -> None:
    """What EC2 bills depends on who ended the machine and when."""
    rig = Rig()
    said = {"StateReason": {"Code": code, "Message": "words"}, "StateTransitionReason": transition}
    gone = machine(ID, "terminated", LaunchTime=LONG_AGO - timedelta(hours=1), **said)
    rig.stub().add_response("describe_instances", reservations(gone), {"InstanceIds": [ID]})
    [seen] = rig.provider.describe_instance([launched(region=REGION)], "")
    assert isinstance(seen, Attempt)
    assert (seen.ended_by, seen.billed_until) == (ended_by, at)
    assert seen.launched_at == LONG_AGO - timedelta(hours=1)
