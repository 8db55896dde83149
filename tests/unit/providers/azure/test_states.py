"""Azure's words for states and operations, line by line."""

import pytest

from spotferry.providers.azure.describe import condition
from spotferry.providers.azure.states import FAILED, OPERATIONS, POWER, PROVISIONING, state_of
from spotferry.providers.ends import Cause
from spotferry.types.instance import INSTANCE_STATES
from tests.unit.providers.azure.rig import a_vm

TABLE = [
    ("Creating", "", "pending"),
    ("Creating", "starting", "pending"),
    ("Creating", "running", "pending"),
    ("Updating", "running", "pending"),
    ("Migrating", "running", "pending"),
    ("Deleting", "running", "shutting-down"),
    ("Deleting", "", "shutting-down"),
    ("Succeeded", "starting", "pending"),
    ("Succeeded", "running", "running"),
    ("Succeeded", "stopping", "stopping"),
    ("Succeeded", "stopped", "stopping"),
    ("Succeeded", "deallocating", "stopping"),
    ("Succeeded", "deallocated", "stopping"),
    ("Succeeded", "", None),
    ("Succeeded", "unknown", None),
    ("Failed", "", "terminated"),
    ("Failed", "deallocated", "terminated"),
    ("Failed", "unknown", "terminated"),
    ("Failed", "running", "stopping"),
    ("Failed", "stopped", "stopping"),
    ("Canceled", "", "terminated"),
    ("Canceled", "running", "stopping"),
    ("Dreaming", "running", None),
]


@pytest.mark.parametrize(("provisioning", "power", "state"), TABLE)
def test_states(provisioning: str, power: str, state: str | None) -> None:
    """Both of Azure's states together say one of ours; unknown words say nothing."""
    assert state_of(provisioning.lower(), power) == state
    assert state is None or state in INSTANCE_STATES
    assert condition(a_vm(provisioning, power)).state == state


def test_no_line_is_untested() -> None:
    """Each state of the tables is met above."""
    met = {(p.lower(), w) for p, w, _ in TABLE}
    assert {p for p, _ in met} >= set(PROVISIONING) | FAILED
    assert {w for _, w in met} >= set(POWER)


@pytest.mark.parametrize(
    ("operation", "cause"),
    [
        ("Microsoft.Compute/virtualMachines/evictSpotVM/action", Cause.TAKEN_BACK),
        ("Microsoft.Compute/virtualMachines/simulateEviction/action", Cause.TAKEN_BACK),
        ("Microsoft.Compute/virtualMachines/delete", Cause.ORDERED),
        ("Microsoft.Compute/virtualMachines/deallocate/action", Cause.ORDERED),
        ("Microsoft.Compute/virtualMachines/powerOff/action", Cause.ORDERED),
    ],
)
def test_operations(operation: str, cause: Cause) -> None:
    """Who ended a machine, by the activity log's word for it."""
    assert OPERATIONS[operation.lower()] is cause


def test_a_failure_is_told_in_azures_words() -> None:
    """The code behind the state, and the words with it; where Azure has neither, that it failed."""
    seen = a_vm("Failed/ZonalAllocationFailed", "")
    seen["properties"]["instanceView"]["statuses"][0] = {
        "code": "ProvisioningState/failed/ZonalAllocationFailed",
        "message": "No room.",
    }
    assert condition(seen)[1:] == ("ZonalAllocationFailed: No room.", True)
    assert condition(a_vm("Failed", ""))[1:] == ("ProvisioningFailed: Azure says no more", True)


def test_a_state_without_its_detail_is_read_all_the_same() -> None:
    """A machine of a list without run states has its provisioning state alone."""
    seen = a_vm("Creating")
    del seen["properties"]["instanceView"]
    assert condition(seen).state == "pending"
    assert condition({"id": "x", "properties": {}}).state is None


@pytest.mark.parametrize(
    ("provisioning", "power", "reason"),
    [("Succeeded", "stopped", "PowerState/stopped"), ("Deleting", "running", "ProvisioningState/deleting")],
)
def test_an_end_has_a_reason(provisioning: str, power: str, reason: str) -> None:
    """What ends says why, with Azure's own code in front."""
    assert condition(a_vm(provisioning, power)).reason.partition(":")[0] == reason
    assert not condition(a_vm(provisioning, power)).failed
