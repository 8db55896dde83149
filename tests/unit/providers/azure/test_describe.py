"""What is seen of machines, a few and many."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from spotferry.providers.azure.sweep import FEW, MOST_CONFIRMED
from spotferry.types.errors import (
    InvalidInput,
    ProviderError,
    ProviderUnavailable,
)
from spotferry.types.instance import Attempt, Instance
from tests.unit.providers.azure.rig import (
    BASE,
    GET,
    GROUP,
    LIST,
    NOW,
    REGION,
    TAGS,
    TOKEN,
    VM,
    Answer,
    Json,
    Rig,
    a_vm,
    accepting_rig,
    an_attempt,
    failed,
    refused,
)


@pytest.fixture
def rig() -> Rig:
    """An adapter whose launches are accepted and go on."""
    return accepting_rig()


def test_an_address_is_read_once_a_machine_runs(rig: Rig) -> None:
    """The public one where there is one; a machine whose address is known is not asked about again."""
    nic = f"/subscriptions/sub/resourceGroups/{GROUP}/providers/Microsoft.Network/networkInterfaces/x"
    interfaces = {"networkInterfaces": [{"id": nic}]}
    place: Json = {"privateIPAddress": "10.0.0.4", "publicIPAddress": {"properties": {"ipAddress": "20.0.0.1"}}}
    rig.script.answer(GET, Answer(200, a_vm(networkProfile=interfaces)))
    rig.script.answer(nic, Answer(200, {"properties": {"ipConfigurations": [{"properties": place}]}}))
    assert rig.provider.describe_instance([an_attempt()], "")[0].ip_address == "20.0.0.1"
    found = rig.provider.find_instance(an_attempt())
    assert found is not None
    assert found.ip_address == "20.0.0.1"
    before = len(rig.script.asked)
    assert rig.provider.describe_instance([found], "")[0].ip_address == "20.0.0.1"
    assert len(rig.script.asked) == before + 1
    rig.script.answer(nic, refused(403, "AuthorizationFailed"))
    assert rig.provider.describe_instance([an_attempt()], "running")[0].ip_address == ""


# Any: of any field.
def many(count: int, **changes: Any) -> list[Attempt]:
    """Attempts by number."""
    return [an_attempt(cedana_id=f"i-{n}", allocated_id=f"i-{n}", **changes) for n in range(count)]


def listed(*numbers: int) -> Json:
    """A page of run states."""
    return {"value": [{**a_vm(), "name": f"i-{n}", "id": VM.replace(TOKEN, f"I-{n}")} for n in numbers]}


def test_many_are_seen_by_the_list_and_the_missing_one_by_one(rig: Rig) -> None:
    """Pages are followed; a machine that the list misses is gone only when its own address says so."""
    link = f"{BASE}/subscriptions/sub/providers/Microsoft.Compute/virtualMachines?page=2"
    rig.script.answer(LIST, Answer(200, {**listed(0, 1, 2), "nextLink": link}), Answer(200, listed(3)))
    rig.script.answer("GET .*/i-4$", Answer(200, {**a_vm("Creating", ""), "name": "i-4"}))
    seen = rig.provider.describe_instance(many(FEW + 2), "")
    assert [s.state for s in seen] == ["running"] * 4 + ["pending", "terminated"]
    assert rig.script.asked[0].query["statusOnly"] == "true"
    assert len(rig.script.asked) == 4
    gone = seen[-1]
    assert isinstance(gone, Attempt)
    assert gone.cloud_reason.startswith("ResourceNotFound: ")


def test_of_very_many_missing_some_are_left_for_the_next_look(rig: Rig) -> None:
    """They come back as they are known, so that one look does not take for ever."""
    rig.script.answer(LIST, Answer(200, listed()))
    seen = rig.provider.describe_instance(many(MOST_CONFIRMED + 5), "")
    assert [s.state for s in seen] == ["terminated"] * MOST_CONFIRMED + ["pending"] * 5
    assert len(rig.script.asked) == 1 + MOST_CONFIRMED


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"requested_at": NOW}, "pending"),
        ({"requested_at": NOW, "ending": True}, "terminated"),
        ({"requested_at": NOW, "arrived_at": NOW}, "terminated"),
        ({"launched_at": NOW - timedelta(seconds=40)}, "terminated"),
    ],
)
def test_missing_is_not_gone_while_a_machine_is_new(rig: Rig, changes: Json, state: str) -> None:
    """One that nobody saw yet and that nobody ordered to end may come; alone and among many."""
    assert rig.provider.describe_instance([an_attempt(allocated_id=TOKEN, **changes)], "")[0].state == state
    rig.script.answer(LIST, Answer(200, listed()))
    assert {s.state for s in rig.provider.describe_instance(many(FEW + 1, **changes), "")} == {state}


@pytest.mark.parametrize(
    ("changes", "by"),
    [
        ({}, ""),
        ({"taken_back": True, "ending": True}, "cloud"),
        ({"ending": True}, "us"),
        ({"ended_by": "launch"}, "launch"),
    ],
)
def test_who_ended_what_is_gone(rig: Rig, changes: Json, by: str) -> None:
    """A notice said that Azure takes it, or we ordered its end; else nobody knows yet."""
    [seen] = rig.provider.describe_instance([an_attempt(allocated_id=TOKEN, **changes)], "")
    assert isinstance(seen, Attempt)
    assert (seen.state, seen.ended_by) == ("terminated", by)


def test_a_list_without_machines_proves_nothing(rig: Rig) -> None:
    """An answer that has no list is no empty list; and a list that never ends is an error."""
    rig.script.answer(LIST, Answer(200, {"message": "hello"}))
    with pytest.raises(ProviderUnavailable):
        rig.provider.describe_instance(many(FEW + 1), "")
    link = f"{BASE}/subscriptions/sub/providers/Microsoft.Compute/virtualMachines?page=1"
    rig.script.answer(LIST, Answer(200, {"value": [], "nextLink": link}))
    with pytest.raises(ProviderError, match="does not end"):
        list(rig.provider.owned_instances(REGION))


def test_no_state_is_no_filter(rig: Rig) -> None:
    """A filter that is no state is refused."""
    with pytest.raises(InvalidInput, match="filter"):
        rig.provider.describe_instance([], "deallocated")
    assert rig.provider.describe_instance([], "running") == []


def owned_list(rig: Rig, *models: Json, states: Json | None = None) -> list[Instance]:
    """What the reaper is shown."""
    rig.script.answer(LIST, Answer(200, {"value": list(models)}), Answer(200, states or {"value": []}))
    return list(rig.provider.owned_instances(REGION))


def test_the_owned_list_is_by_tag_and_region(rig: Rig) -> None:
    """With the run state of the other list; Azure writes regions and groups in ways of its own."""
    model = {**a_vm(), "location": "East US"}
    model["properties"] = {"provisioningState": "Succeeded", "timeCreated": "2026-05-04T11:50:00Z"}
    model["properties"]["hardwareProfile"] = {"vmSize": "Standard_D2s_v5"}
    others = [
        {**model, "id": VM + "x", "tags": {}},
        {**model, "id": VM + "y", "tags": {**TAGS, "spotferry:deployment": "other"}},
        {**model, "id": VM + "z", "location": "westeurope"},
    ]
    states = {"value": [{**a_vm("Succeeded", "stopped"), "id": VM.replace(GROUP, GROUP.upper())}]}
    [owned] = owned_list(rig, model, *others, states=states)
    assert (owned.cedana_id, owned.allocated_id, owned.state) == (TOKEN, TOKEN, "stopping")
    assert (owned.region, owned.instance_type, owned.tag) == (REGION, "Standard_D2s_v5", VM)
    assert owned.created_at == datetime.fromisoformat("2026-05-04T11:50:00+00:00")
    assert rig.script.asked[0].query.get("statusOnly") is None


def test_what_came_to_nothing_is_still_owned(rig: Rig) -> None:
    """Its disk and address bill until somebody deletes it."""
    [owned] = owned_list(rig, failed())
    assert owned.state == "stopping"
    rig.provider.destroy_instance(owned)
    assert rig.script.lines()[-1].lower() == f"delete {VM}".lower()


def test_nothing_owned_is_one_call(rig: Rig) -> None:
    """No run states are asked for when there is nothing to know them of."""
    assert owned_list(rig) == []
    assert len(rig.script.asked) == 1


LOG = "GET .*eventtypes/management/values"


def logged(*rows: tuple[str, str, str]) -> Answer:
    """Rows of the activity log: operation, status, time."""
    return Answer(
        200,
        {
            "value": [
                {
                    "operationName": {"value": f"Microsoft.Compute/virtualMachines/{operation}"},
                    "status": {"value": status},
                    "eventTimestamp": at,
                }
                for operation, status, at in rows
            ]
        },
    )


def test_who_ended_a_machine_is_in_the_activity_log(rig: Rig) -> None:
    """An eviction counts before the deletion that follows it, with its time; orders are ours."""
    gone = an_attempt(allocated_id=TOKEN, state="terminated", launched_at=NOW - timedelta(minutes=9))
    evicted = ("evictSpotVM/action", "Succeeded", "2026-05-04T11:55:00.5Z")
    deleted = ("delete", "Succeeded", "2026-05-04T11:56:00Z")
    rig.script.answer(LOG, logged(deleted, evicted, ("start/action", "Succeeded", "2026-05-04T11:51:00Z")))
    event = rig.provider.get_instance_statuses([gone])[TOKEN]
    assert (event.marked_for_termination, event.termination_time) == (True, 1777895700)
    assert event.fault_code == "Microsoft.Compute/virtualMachines/evictSpotVM/action"
    question = rig.script.asked[-1].query["$filter"]
    assert question == f"eventTimestamp ge '2026-05-04T11:51:00Z' and resourceUri eq '{VM}'"
    rig.script.answer(LOG, logged(deleted, ("evictSpotVM/action", "Failed", "2026-05-04T11:55:00Z")))
    assert not rig.provider.get_instance_statuses([gone])[TOKEN].marked_for_termination
    rig.script.answer(LOG, logged())
    event = rig.provider.get_instance_statuses([gone])[TOKEN]
    assert (event.fault_code, event.marked_for_termination) == ("terminated", False)


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "running"},
        {"state": "stopping"},
        {"state": "terminated", "ending": True},
        {"state": "terminated", "taken_back": True},
        {"state": "terminated", "ended_by": "launch"},
    ],
)
def test_what_is_known_or_lives_is_not_asked_about(rig: Rig, changes: Json) -> None:
    """The log is asked for machines alone that are gone for an unknown cause."""
    rig.provider.get_instance_statuses([an_attempt(allocated_id=TOKEN, **changes)])
    assert rig.script.asked == []


def test_a_log_that_may_not_be_read_is_an_error(rig: Rig) -> None:
    """The operator learns what is missing; the poll has the end itself all the same."""
    rig.script.answer(LOG, refused(403, "AuthorizationFailed"))
    with pytest.raises(ProviderError):
        rig.provider.get_instance_statuses([an_attempt(allocated_id=TOKEN, state="terminated")])
