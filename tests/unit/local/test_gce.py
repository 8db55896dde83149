"""The local Compute Engine, as it differs from a store of machines: operations, policies, what it refuses."""

from typing import Any

import pytest

from local.gce_filter import parse
from local.json_face import RestError
from local.market_faults import Fault
from tests.unit.local.gce_world import REGION, ZONE, World, a_resource


@pytest.fixture
def world() -> World:
    """A cloud of this test's own."""
    return World()


def test_a_launch_is_an_operation_first(world: World) -> None:
    """It is under way, then done; its machine is being provisioned, then runs, with an address outside."""
    operation = world.insert("r-1").get_json()
    assert (operation["status"], operation["operationType"]) == ("RUNNING", "insert")
    assert world.get(f"zones/{ZONE}/instances/i-1")["status"] == "PROVISIONING"
    world.wait()
    done = world.get(f"zones/{ZONE}/operations/{operation['name']}")
    assert (done["status"], done["clientOperationId"], "error" in done) == ("DONE", "r-1", False)
    machine = world.get(f"zones/{ZONE}/instances/i-1")
    assert machine["status"] == "RUNNING"
    assert machine["networkInterfaces"][0]["accessConfigs"][0]["natIP"]
    assert world.insert("r-1").get_json()["name"] == operation["name"]
    assert len(world.market.everything()) == 1


def test_a_name_is_given_once(world: World) -> None:
    """Another request for the same name is refused, also when its machine has ended."""
    world.made()
    assert world.refusal(world.insert("another")) == (409, "alreadyExists")


def test_a_stockout_fails_the_operation(world: World) -> None:
    """The launch is accepted; the next look at it says why it failed, and there is no machine."""
    world.faults.inject(Fault("gcp.instances.insert.operation", "*", 1, "ODD", "odd words", 400))
    operation = world.insert().get_json()
    assert "error" not in operation
    done = world.get(f"zones/{ZONE}/operations/{operation['name']}")
    assert done["error"] == {"errors": [{"code": "ODD", "message": "odd words"}]}
    assert world.ask("GET", f"zones/{ZONE}/instances/i-1").status_code == 404


def test_a_machine_that_switches_itself_off_is_stopped_and_not_gone(world: World) -> None:
    """Spot or not: it is TERMINATED, which means stopped, by the guest's own operation, until it is deleted."""
    world.made()
    world.market.os_shutdown("i-1")
    world.wait()
    assert world.get(f"zones/{ZONE}/instances/i-1")["status"] == "TERMINATED"
    assert len(world.operations("compute.instances.guestTerminate")) == 1
    assert world.ask("DELETE", f"zones/{ZONE}/instances/i-1").status_code == 200
    world.wait()
    assert world.ask("GET", f"zones/{ZONE}/instances/i-1").status_code == 404
    assert world.refusal(world.ask("DELETE", f"zones/{ZONE}/instances/i-1")) == (404, "notFound")


def test_what_the_cloud_does_is_an_operation_of_the_systems(world: World) -> None:
    """A preemption is one from its notice on, a false notice is none, and an end without a word is the host's."""
    for name in ("i-1", "i-2", "i-3"):
        world.made(name=name, **({} if name != "i-3" else {"scheduling": {}}))
    world.market.interrupt("i-1")
    world.market.interrupt("i-2", false_notice=True)
    world.market.kill("i-3")
    [preempted] = world.operations("compute.instances.preempted")
    assert (preempted["user"], preempted["status"]) == ("system@google.com", "DONE")
    assert preempted["targetLink"].endswith("/instances/i-1")
    [failed] = world.operations("compute.instances.hostError")
    assert failed["targetLink"].endswith("/instances/i-3")
    world.wait(60)
    assert len(world.operations("compute.instances.preempted")) == 1


def test_waiting_for_an_operation_ends_with_it(world: World) -> None:
    """One that is done answers at once."""
    operation = world.insert().get_json()
    world.wait()
    answer = world.ask("POST", f"zones/{ZONE}/operations/{operation['name']}/wait")
    assert answer.get_json()["status"] == "DONE"


def test_listings_have_pages(world: World) -> None:
    """Every machine once, in each kind of listing; a zone without any says so."""
    for number in range(5):
        world.made(name=f"i-{number}")
    names: list[str] = []
    token = ""
    while token or not names:
        page = world.get("aggregated/instances", maxResults="2", pageToken=token)
        names += [row["name"] for row in page["items"][f"zones/{ZONE}"]["instances"]]
        token = page["nextPageToken"]
    assert names == [f"i-{number}" for number in range(5)]
    assert page["items"]["zones/europe-west4-a"]["warning"]["code"] == "NO_RESULTS_ON_PAGE"
    listed = world.get(f"zones/{ZONE}/instances", filter='name eq "i-(1|3)"')["items"]
    assert [row["name"] for row in listed] == ["i-1", "i-3"]
    operations = world.get(f"zones/{ZONE}/operations", maxResults="4")
    assert (len(operations["items"]), bool(operations["nextPageToken"])) == (4, True)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"machineType": "zones/z/machineTypes/x9-mega"}, "invalid"),
    ({"disks": []}, "invalid"),
    ({"disks": [{"boot": True, "initializeParams": {"sourceImage": "no-path"}}]}, "invalid"),
    ({"disks": [{"boot": True, "initializeParams": {"sourceImage": "projects/p/global/images/none"}}]}, "notFound"),
    ({"machineType": f"zones/{ZONE}/machineTypes/t2a-standard-1"}, "invalid"),
    ({"metadata": {"items": [{"key": "startup-script", "value": "x" * 262_145}]}}, "invalid"),
    ({"scheduling": {"provisioningModel": "SPOT", "automaticRestart": True}}, "invalid"),
    ({"scheduling": {"provisioningModel": "SPOT"}}, "invalid"),
    ({"scheduling": {"maxRunDuration": {"seconds": "60"}}}, "invalid"),
]


@pytest.mark.parametrize(("changes", "reason"), WRONG)
def test_what_compute_engine_would_not_take(world: World, changes: dict[str, Any], reason: str) -> None:
    """A wrong machine is refused before anything is sold."""
    assert world.refusal(world.insert(**changes))[1] == reason
    assert world.market.everything() == []


def test_a_policy_about_locations_forbids_launches_there_and_nothing_else(world: World) -> None:
    """Its words name the constraint; another code is a plain denial."""
    world.made()
    world.faults.deny_region(REGION, "UnauthorizedOperation")
    answer = world.insert(name="i-2")
    assert world.refusal(answer) == (412, "conditionNotMet")
    assert "constraints/gcp.resourceLocations" in answer.text
    assert world.get(f"zones/{ZONE}/instances/i-1")["status"] == "RUNNING"
    world.faults.deny_region(REGION, "forbidden")
    assert world.refusal(world.insert(name="i-2")) == (403, "forbidden")


def test_what_this_face_has_not(world: World) -> None:
    """An unknown path, zone, operation or page size is refused; so is a body that is no JSON."""
    assert world.ask("PUT", f"zones/{ZONE}/instances/i-1").status_code == 404
    assert world.refusal(world.ask("GET", "zones/mars-1-a/instances/i-1")) == (404, "notFound")
    assert world.refusal(world.ask("GET", f"zones/{ZONE}/operations/none")) == (404, "notFound")
    assert world.refusal(world.ask("GET", f"zones/{ZONE}/instances", maxResults="501")) == (400, "invalid")
    assert world.refusal(world.ask("GET", "global/images/family/none")) == (404, "notFound")
    broken = world.client.post(
        f"/_gcp/compute/v1/projects/local/zones/{ZONE}/instances", data="{", headers={"Authorization": "Bearer no"}
    )
    assert broken.status_code == 401


ROW = a_resource(zone="https://x/zones/us-central1-a", status="RUNNING")


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("", True),
        ('(labels.spotferry-deployment eq "test") (zone eq ".*/zones/us-central1-[a-z0-9]+")', True),
        ('(labels.spotferry-deployment eq "tes") (zone eq ".*")', False),
        ("status = RUNNING AND name = i-1", True),
        ("status != RUNNING", False),
        ('name ne "i-.*"', False),
        ("labels.none eq .*", True),
        ("labels.none = x", False),
    ],
)
def test_filters(text: str, is_meant: bool) -> None:  # noqa: FBT001 (a case's answer)
    """Regular expressions match whole values; all conditions must hold; what is not there is empty."""
    assert parse(text)(ROW) is is_meant


@pytest.mark.parametrize("text", ["name", "name like x", "(name eq"])
def test_what_is_no_filter(text: str) -> None:
    """It is refused, as the API does."""
    with pytest.raises(RestError, match="filter"):
        parse(text)
