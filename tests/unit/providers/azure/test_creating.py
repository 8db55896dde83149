"""Launches over the real client, those that fail early and late among them."""

import json
from datetime import datetime, timedelta

import pytest

from spotferry.ports.cloud import SettlesLaunches, TellsLaunchPrice
from spotferry.types.errors import (
    LaunchRefused,
    NotYet,
    ProviderError,
    ProviderUnavailable,
    TryNextRegion,
    TryNextZone,
    UnknownLaunchError,
)
from spotferry.types.instance import Attempt, Instance
from tests.unit.providers.azure.rig import (
    DELETE,
    GET,
    NOW,
    OPERATION,
    PUT,
    REGION,
    TOKEN,
    VM,
    Answer,
    Rig,
    a_launch,
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


def create(rig: Rig, attempt: Attempt | None = None) -> Attempt:
    """Launch."""
    made = rig.provider.create_instance(attempt or an_attempt())
    assert isinstance(made, Attempt)
    return made


def test_it_settles_launches_and_tells_no_price(rig: Rig) -> None:
    """What use cases ask of a cloud beside the contract."""
    assert isinstance(rig.provider, SettlesLaunches)
    assert not isinstance(rig.provider, TellsLaunchPrice)


def test_an_accepted_launch_is_looked_at_a_few_seconds(rig: Rig) -> None:
    """Then it is pending, under its name; the request makes only what is not there."""
    made = create(rig)
    assert (made.allocated_id, made.state, made.availability_zone) == (TOKEN, "pending", "1")
    assert made.launched_at == datetime.fromisoformat("2026-05-04T11:50:00.123456+00:00")
    assert rig.timing.seconds < 20
    put = rig.script.asked[0]
    assert put.headers["If-None-Match"] == "*"
    assert json.loads(put.body)["properties"]["priority"] == "Spot"
    assert rig.script.lines()[1:] == [f"GET {OPERATION}"]


def test_an_operation_that_tells_nothing_decides_nothing(rig: Rig) -> None:
    """Nor does one that is not told, cannot be asked about, or leads elsewhere: it is settled later."""
    for answer in (Answer(200, {"status": "Succeeded"}), refused(404, "NotFound"), Answer(200, {}), Answer(200, [])):
        rig.script.answer(OPERATION, answer)
        assert create(rig).state == "pending"
    for headers in ({}, {"Azure-AsyncOperation": "https://elsewhere.example/operation"}):
        rig.script.answer(PUT, Answer(201, a_vm("Creating", ""), headers))
        assert create(rig).state == "pending"


@pytest.mark.parametrize("status", ["Failed", "Canceled"])
def test_a_launch_that_fails_in_the_first_seconds(rig: Rig, status: str) -> None:
    """The operation's error is raised, and the machine that came to nothing is deleted with all that it has."""
    error = {"code": "ZonalAllocationFailed", "message": "No room in zone 1."}
    rig.script.answer(OPERATION, Answer(200, {"status": status, "error": error}))
    with pytest.raises(TryNextZone) as caught:
        create(rig)
    assert (caught.value.code, caught.value.message, caught.value.region) == (*error.values(), REGION)
    assert rig.script.lines()[-1] == f"DELETE {VM}"
    assert rig.script.asked[-1].query["forceDeletion"].lower() == "true"


def test_an_operation_that_fails_without_words(rig: Rig) -> None:
    """It is an unknown code, and keeps its own."""
    rig.script.answer(OPERATION, Answer(200, {"status": "Failed"}))
    with pytest.raises(UnknownLaunchError) as caught:
        create(rig)
    assert caught.value.code == "OperationFailed"


def test_a_failed_launch_that_cannot_be_deleted_is_no_verdict(rig: Rig) -> None:
    """The attempt stays open, so that somebody asks again and deletes it then."""
    rig.script.answer(OPERATION, Answer(200, {"status": "Failed", "error": {"code": "AllocationFailed"}}))
    rig.script.answer(DELETE, refused(403, "AuthorizationFailed"))
    with pytest.raises(ProviderUnavailable, match="AllocationFailed"):
        create(rig)


def test_a_refusal_at_once_leaves_nothing(rig: Rig) -> None:
    """Nothing was made, so nothing is deleted."""
    rig.script.answer(PUT, refused(409, "SkuNotAvailable", "not available in location 'eastus'"))
    with pytest.raises(TryNextRegion):
        create(rig)
    assert len(rig.script.asked) == 1


@pytest.mark.parametrize(
    "answer",
    [
        refused(412, "PreconditionFailed"),
        refused(412, "ConditionNotMet"),
        refused(409, "PropertyChangeNotAllowed", "Changing property 'osProfile.customData' is not allowed."),
    ],
)
def test_a_launch_that_was_made_before(rig: Rig, answer: Answer) -> None:
    """A name that is taken is looked up: our machine is told, with its address once it runs."""
    rig.script.answer(PUT, answer)
    rig.script.answer(GET, Answer(200, a_vm()))
    made = create(rig)
    assert (made.allocated_id, made.state) == (TOKEN, "running")
    assert rig.script.asked[1].query["$expand"] == "instanceView"


def test_a_launch_that_failed_before(rig: Rig) -> None:
    """The machine of this name came to nothing: it is deleted, and its error raised."""
    rig.script.answer(PUT, refused(412, "PreconditionFailed"))
    rig.script.answer(GET, Answer(200, failed()))
    with pytest.raises(TryNextZone):
        create(rig)
    assert rig.script.lines()[-1] == f"DELETE {VM}"


def test_a_name_that_is_taken_and_not_shown_is_no_verdict(rig: Rig) -> None:
    """It is asked about again."""
    rig.script.answer(PUT, refused(412, "PreconditionFailed"))
    with pytest.raises(ProviderUnavailable, match="not shown"):
        create(rig)


def test_a_machine_of_the_same_name_that_is_not_ours(rig: Rig) -> None:
    """It is never taken for ours, nor deleted."""
    rig.script.answer(PUT, refused(412, "PreconditionFailed"))
    rig.script.answer(GET, Answer(200, a_vm() | {"tags": {"owner": "somebody"}}))
    with pytest.raises(ProviderError) as caught:
        create(rig)
    assert caught.value.code == "NameTaken"
    assert rig.provider.find_instance(an_attempt()) is None
    assert not [line for line in rig.script.lines() if line.startswith("DELETE")]


def test_an_image_of_the_jobs_own_is_the_jobs_own(rig: Rig) -> None:
    """What is wrong with it reaches nobody else, also where Azure accepted the launch."""
    own = an_attempt(a_launch(own_image=True))
    rig.script.answer(OPERATION, Answer(200, {"status": "Failed", "error": {"code": "PlatformImageNotFound"}}))
    with pytest.raises(LaunchRefused) as caught:
        create(rig, own)
    assert caught.value.scope == "none"
    rig.script.answer(GET, Answer(200, failed("ImageNotFound")))
    settled = rig.provider.settle_launch(own)
    assert settled is not None
    assert settled.scope == "none"


def test_only_an_attempt_with_a_request_is_launched(rig: Rig) -> None:
    """Anything else is a mistake of ours."""
    for candidate in (Instance(cedana_id=TOKEN), an_attempt().model_copy(update={"launch": None})):
        with pytest.raises(TypeError):
            rig.provider.create_instance(candidate)


@pytest.mark.parametrize(
    ("provisioning", "power"), [("Succeeded", "running"), ("Deleting", ""), ("Succeeded", "stopped")]
)
def test_a_launch_that_made_a_machine_is_settled(rig: Rig, provisioning: str, power: str) -> None:
    """Whatever became of it since."""
    rig.script.answer(GET, Answer(200, a_vm(provisioning, power)))
    assert rig.provider.settle_launch(an_attempt()) is None


def test_a_launch_that_goes_on_is_not_settled_yet(rig: Rig) -> None:
    """Nor is one that is not shown yet; one that is not there any more is, for the poll tells its end."""
    rig.script.answer(GET, Answer(200, a_vm("Creating", "")))
    with pytest.raises(NotYet) as caught:
        rig.provider.settle_launch(an_attempt())
    assert caught.value.retry_in == timedelta(seconds=45)
    rig.script.answer(GET, refused(404, "ResourceNotFound"))
    with pytest.raises(NotYet):
        rig.provider.settle_launch(an_attempt(requested_at=NOW))
    assert rig.provider.settle_launch(an_attempt()) is None


@pytest.mark.parametrize("power", ["", "running"])
def test_a_launch_that_failed_later_is_told_and_deleted(rig: Rig, power: str) -> None:
    """The error is returned with Azure's code; also a machine that runs and was never provisioned is deleted."""
    rig.script.answer(GET, Answer(200, failed("OSProvisioningTimedOut", power)))
    refusal = rig.provider.settle_launch(an_attempt(allocated_id=TOKEN))
    assert isinstance(refusal, TryNextZone)
    assert (refusal.code, refusal.message) == ("OSProvisioningTimedOut", "Allocation failed.")
    assert rig.script.lines()[-1] == f"DELETE {VM}"


def test_a_failed_launch_is_told_by_the_poll_as_well(rig: Rig) -> None:
    """It is terminated, by its launch, with code and words; its event is marked, as the cloud's doing."""
    rig.script.answer(GET, Answer(200, failed()))
    [seen] = rig.provider.describe_instance([an_attempt(allocated_id=TOKEN)], "")
    assert isinstance(seen, Attempt)
    assert (seen.state, seen.ended_by) == ("terminated", "launch")
    assert seen.cloud_reason == "ZonalAllocationFailed: Allocation failed."
    event = rig.provider.get_instance_statuses([seen])[TOKEN]
    assert (event.fault_code, event.marked_for_termination) == ("ZonalAllocationFailed", True)
    assert rig.provider.find_instance(an_attempt()) is None
