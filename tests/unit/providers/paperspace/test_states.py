"""Paperspace's states, line by line, and what is read of a machine."""

from datetime import UTC, datetime

import pytest

from spotferry.providers.paperspace.machines import as_seen, time_of
from spotferry.providers.paperspace.states import LOST, STATES
from spotferry.types.instance import INSTANCE_STATES
from tests.unit.providers.paperspace.rig import an_attempt, seen

EXPECTED = {
    "provisioning": "pending",
    "starting": "pending",
    "restarting": "pending",
    "upgrading": "pending",
    "serviceready": "pending",
    "ready": "running",
    "stopping": "stopping",
    "off": "stopping",
    "failed": "stopping",
}


def test_the_states_are_those_of_the_api() -> None:
    """Each documented state has one of ours, and nothing else is in the table."""
    assert dict(STATES) == EXPECTED
    assert set(EXPECTED.values()) <= set(INSTANCE_STATES)
    assert {state for state, ours in STATES.items() if ours == "stopping"} == set(LOST)


@pytest.mark.parametrize(("said", "ours"), EXPECTED.items())
def test_a_machine_in_each_state(said: str, ours: str) -> None:
    """The state is ours; one that means the end says so in words."""
    shown = as_seen(an_attempt(state="pending"), seen(state=said))
    assert (shown.state, shown.allocated_id, shown.ip_address) == (ours, "ps1", "172.83.0.1")
    assert shown.launched_at == datetime(2026, 11, 30, 11, 0, tzinfo=UTC)
    assert shown.cloud_reason.startswith(f"{said}: ") == (said in LOST)


def test_a_state_that_nobody_knows_changes_nothing() -> None:
    """What Paperspace does not document leaves the state that was known."""
    assert as_seen(an_attempt(state="running"), seen(state="dreaming")).state == "running"


def test_a_machine_without_a_public_address() -> None:
    """The private one is shown, and the one that was known where there is none at all."""
    assert as_seen(an_attempt(), seen(publicIp=None)).ip_address == "10.0.0.1"
    assert as_seen(an_attempt(ip_address="1.2.3.4"), seen(publicIp=None, privateIp=None)).ip_address == "1.2.3.4"


@pytest.mark.parametrize("said", [None, "", "yesterday", 5])
def test_a_time_that_cannot_be_read(said: object) -> None:
    """It is none; a time without a zone is UTC."""
    assert time_of({"dtCreated": said}, "dtCreated") is None
    assert time_of({"dtCreated": "2026-11-30T11:00:00"}, "dtCreated") == datetime(2026, 11, 30, 11, 0, tzinfo=UTC)
