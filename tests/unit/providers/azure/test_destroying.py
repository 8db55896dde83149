"""Ends over the real client, and what they leave behind."""

import pytest

from spotferry.types.errors import (
    ProviderError,
)
from spotferry.types.instance import Instance
from tests.unit.providers.azure.rig import (
    DELETE,
    GROUP,
    LIST,
    REGION,
    TOKEN,
    VM,
    Answer,
    Rig,
    a_vm,
    accepting_rig,
    an_attempt,
    refused,
)


@pytest.fixture
def rig() -> Rig:
    """An adapter whose launches are accepted and go on."""
    return accepting_rig()


def test_what_is_gone_has_its_parts_deleted(rig: Rig) -> None:
    """Interface first, then its address, then the disk; what is not there is no error."""
    rig.script.answer(DELETE, Answer(204))
    rig.script.answer("DELETE .*publicIPAddresses", Answer(202, None))
    rig.provider.destroy_instance(an_attempt(allocated_id=TOKEN))
    group = f"/subscriptions/sub/resourceGroups/{GROUP}/providers"
    assert rig.script.lines()[1:] == [
        f"DELETE {group}/Microsoft.Network/networkInterfaces/{TOKEN}-nic",
        f"DELETE {group}/Microsoft.Network/publicIPAddresses/{TOKEN}-ip",
        f"DELETE {group}/Microsoft.Compute/disks/{TOKEN}-disk",
    ]


def test_a_part_that_cannot_be_deleted_yet_is_ordered_again(rig: Rig) -> None:
    """The order fails, so that its message comes back."""
    rig.script.answer(DELETE, Answer(204))
    rig.script.answer("DELETE .*publicIPAddresses", refused(409, "PublicIPAddressCannotBeDeleted"))
    with pytest.raises(ProviderError, match="PublicIPAddressCannotBeDeleted"):
        rig.provider.destroy_instance(an_attempt())


def test_a_group_that_is_gone_holds_nothing(rig: Rig) -> None:
    """Destroying what was in it succeeds."""
    rig.script.answer("DELETE", refused(404, "ResourceGroupNotFound"))
    rig.provider.destroy_instance(an_attempt())


def test_an_order_that_is_refused_is_an_error(rig: Rig) -> None:
    """The broker orders again."""
    rig.script.answer(DELETE, refused(409, "OperationNotAllowed", "Another operation is in progress."))
    with pytest.raises(ProviderError):
        rig.provider.destroy_instance(an_attempt())


def test_a_machine_whose_record_tells_no_group_is_found_by_its_name(rig: Rig) -> None:
    """Groups of lists are in capitals; what is not listed is not there."""
    listed = {**a_vm(), "id": VM.replace(GROUP, GROUP.upper())}
    rig.script.answer(LIST, Answer(200, {"value": [listed]}))
    rig.script.answer("DELETE", Answer(202, None))
    rig.provider.destroy_instance(Instance(provider="azure", region=REGION, allocated_id=TOKEN))
    assert rig.script.lines()[-1].lower() == f"delete {VM}".lower()
    rig.provider.destroy_instance(Instance(provider="azure", region=REGION, allocated_id="i-other"))
    assert rig.script.lines()[-1].startswith("GET")
    rig.provider.destroy_instance(Instance(provider="azure", region=REGION, tag=VM, allocated_id=TOKEN))
    assert rig.script.lines()[-1] == f"DELETE {VM.replace(GROUP, GROUP.lower())}"
