"""What the Paperspace adapter makes of answers that a face does not give on command."""

from datetime import UTC, datetime, timedelta

import pytest

from spotferry.types.errors import InvalidInput, LaunchRefused, NotYet, ProviderUnavailable, TryAgainLater
from spotferry.types.instance import Instance
from tests.unit.providers.paperspace.rig import (
    NAME,
    NOW,
    Answers,
    a_provider,
    an_attempt,
    event,
    page,
    refusal,
    seen,
)

MACHINES, SCRIPTS, EVENTS = ("GET", "/machines"), ("GET", "/startup-scripts"), ("GET", "/machine-events")
ONE, END, STOP = ("GET", "/machines/ps1"), ("DELETE", "/machines/ps1"), ("PATCH", "/machines/ps1/stop")
MAKE, MAKE_SCRIPT = ("POST", "/machines"), ("POST", "/startup-scripts")
DELETED: dict[str, object] = {"event": {}, "data": {}}


def test_a_machine_of_the_name_is_not_bought_again() -> None:
    """A repeat, whoever sends it, finds the machine by its name; one that only begins alike is another's."""
    provider, api = a_provider({MACHINES: [page(seen("ps2", name=f"{NAME}0"), seen())]})
    assert provider.create_instance(an_attempt()).allocated_id == "ps1"
    assert api.calls() == [MACHINES]


def test_of_two_that_a_race_made_the_older_is_kept() -> None:
    """What another delivery made meanwhile is ended, or is what is kept; both deliveries decide alike."""
    older, newer = seen("ps1"), seen("ps9", dtCreated="2026-11-30T11:00:00.500Z")
    answers: Answers = {
        MACHINES: [page(), page(newer, older)],
        MAKE_SCRIPT: [{"id": "sc1"}],
        MAKE: [{"event": {}, "data": newer}],
        ("DELETE", "/machines/ps9"): [DELETED],
    }
    provider, api = a_provider(answers)
    assert provider.create_instance(an_attempt()).allocated_id == "ps1"
    assert api.calls()[-1] == ("DELETE", "/machines/ps9")
    assert api.body_of(*MAKE)["startupScriptId"] == "sc1"


def test_a_refused_machine_leaves_no_script() -> None:
    """The scripts of all calls for it are deleted; without a verdict they stay, since the machine may run."""
    deleted = [("DELETE", f"/startup-scripts/{n}") for n in ("sc0", "sc1")]
    listed = page({"id": "sc0", "name": NAME}, {"id": "sc1", "name": NAME})
    answers: Answers = {MACHINES: [page()], MAKE_SCRIPT: [{"id": "sc1"}], SCRIPTS: [listed]}
    answers |= {route: [{"id": "sc"}] for route in deleted}
    provider, api = a_provider({**answers, MAKE: [refusal(400, "BAD_REQUEST")]})
    with pytest.raises(LaunchRefused):
        provider.create_instance(an_attempt())
    assert api.calls()[-2:] == deleted
    for status, error in ((500, ProviderUnavailable), (429, TryAgainLater)):
        provider, api = a_provider({**answers, MAKE: [refusal(status)]})
        with pytest.raises(error):
            provider.create_instance(an_attempt())
        assert not set(deleted) & set(api.calls())


@pytest.mark.parametrize("answer", [{"event": {}}, {"data": 5}, {"data": {"state": "ready"}}])
def test_a_launch_that_answers_without_a_machine(answer: dict[str, object]) -> None:
    """It decides nothing: the next look-up will."""
    provider, _ = a_provider({MACHINES: [page()], MAKE_SCRIPT: [{"id": "sc1"}], MAKE: [answer]})
    with pytest.raises(ProviderUnavailable) as caught:
        provider.create_instance(an_attempt())
    assert caught.value.code == "MalformedAnswer"


def test_only_attempts_are_launched() -> None:
    """A candidate without a fixed request is a mistake of the caller."""
    provider, api = a_provider({})
    for candidate in (Instance(), an_attempt(launch=None)):
        with pytest.raises(TypeError):
            provider.create_instance(candidate)
    assert api.calls() == []


def test_a_machine_that_must_be_off_first_is_stopped() -> None:
    """Where Paperspace deletes no running machine the order is repeated once it is off; nothing is taken for done."""
    running = refusal(412, "PRECONDITION_FAILED", "Turn off the machine first")
    provider, api = a_provider({END: [running, DELETED], STOP: [DELETED], SCRIPTS: [page()]})
    machine = an_attempt(allocated_id="ps1")
    with pytest.raises(ProviderUnavailable, match=r"stopped first.*Turn off"):
        provider.destroy_instance(machine)
    assert api.calls() == [END, STOP]
    provider.destroy_instance(machine)
    assert api.calls()[2:] == [END, SCRIPTS]


def test_the_scripts_of_an_attempt_go_with_it() -> None:
    """Every script of its name, and of no other."""
    scripts = page({"id": "sc1", "name": NAME}, {"id": "sc2", "name": f"{NAME}0"}, {"id": "sc3", "name": NAME})
    gone: Answers = {("DELETE", f"/startup-scripts/{n}"): [{"id": n}] for n in ("sc1", "sc3")}
    provider, api = a_provider({END: [DELETED], SCRIPTS: [scripts], **gone})
    provider.destroy_instance(an_attempt(allocated_id="ps1"))
    assert api.calls()[2:] == [("DELETE", "/startup-scripts/sc1"), ("DELETE", "/startup-scripts/sc3")]


def test_a_machine_without_a_record_is_ended_by_its_id() -> None:
    """The reaper knows an id, and perhaps no attempt: then there is no script to look for."""
    provider, api = a_provider({END: [DELETED]})
    provider.destroy_instance(Instance(allocated_id="ps1", region="NY2"))
    assert api.calls() == [END]


def test_a_young_machine_that_was_taken_down_is_gone() -> None:
    """Its deactivation tells what a listing that may be late cannot: that it was there, and ended, and when."""
    provider, _ = a_provider({ONE: [refusal(404, "NOT_FOUND")], EVENTS: [page(event("deactivate", "done"))]})
    [machine] = provider.describe_instance([an_attempt(allocated_id="ps1", state="running")], "")
    assert machine.state == "terminated"
    assert machine.model_dump()["billed_until"] == datetime(2026, 11, 30, 11, 30, 1, tzinfo=UTC)
    assert machine.model_dump()["ended_by"] == "us"


@pytest.mark.parametrize(
    "events",
    [
        page(),
        page(event("create", "in progress")),
        page(event("deactivate", "error")),
        page(event("deactivate", "done", "ps2")),
    ],
)
def test_a_young_machine_that_is_just_not_shown_stays(events: dict[str, object]) -> None:
    """Without an event that ended it, it comes back as it was; past all patience it is gone, without a question."""
    answers: Answers = {ONE: [refusal(404, "NOT_FOUND")], EVENTS: [events]}
    made = an_attempt(allocated_id="ps1", state="pending")
    provider, _ = a_provider(answers)
    assert provider.describe_instance([made], "") == [made]
    late, api = a_provider(answers, lambda: NOW + timedelta(minutes=6))
    assert [m.state for m in late.describe_instance([made], "")] == ["terminated"]
    assert api.calls() == [ONE]


def test_a_machine_that_never_came_to_be_is_the_launchs_end() -> None:
    """A create event that failed says who ended the machine, and why."""
    failed = page(event("create", "error", error="Out of capacity"))
    provider, _ = a_provider({ONE: [refusal(404, "NOT_FOUND")], EVENTS: [failed]})
    [machine] = provider.describe_instance([an_attempt(allocated_id="ps1")], "")
    assert machine.model_dump()["ended_by"] == "launch"
    assert machine.model_dump()["cloud_reason"] == "create: Out of capacity"


def test_a_launch_is_settled_by_its_event() -> None:
    """Done is done, an error is the launch's error, anything else is not settled yet."""
    made = an_attempt(allocated_id="ps1")
    done, _ = a_provider({EVENTS: [page(event("start", "error"), event("create", "done"))]})
    assert done.settle_launch(made) is None
    for events in (page(), page(event("create", "new"))):
        with pytest.raises(NotYet):
            a_provider({EVENTS: [events]})[0].settle_launch(made)
    cancelled: Answers = {EVENTS: [page(event("create", "cancelled"))], END: [DELETED], SCRIPTS: [page()]}
    provider, api = a_provider(cancelled)
    refused = provider.settle_launch(made)
    assert refused is not None
    assert "cancelled" in refused.message
    assert END in api.calls()


def test_a_deleted_machine_is_not_shown_as_one() -> None:
    """One with the time of its deletion is gone, wherever it is still listed."""
    deleted = seen(dtDeleted="2026-11-30T11:50:00.000Z")
    provider, _ = a_provider({MACHINES: [page(deleted)], ONE: [deleted], EVENTS: [page()]})
    assert provider.find_instance(an_attempt()) is None
    assert list(provider.owned_instances("NY2")) == []
    old = an_attempt(allocated_id="ps1", launched_at=NOW - timedelta(hours=1))
    assert [m.state for m in provider.describe_instance([old], "")] == ["terminated"]


def test_what_was_asked_for_by_name_is_told_by_name() -> None:
    """An attempt whose answer was lost is described by its name; several regions are asked one by one."""
    provider, api = a_provider({MACHINES: [page(seen())], ONE: [seen(state="off")]})
    named, known = an_attempt(), an_attempt(cedana_id="i-2", allocated_id="ps1", region="CA1")
    assert [(m.allocated_id, m.state) for m in provider.describe_instance([named, known], "")] == [
        ("ps1", "running"),
        ("ps1", "stopping"),
    ]
    assert provider.describe_instance([named, known], "running")[0].cedana_id == "i-1"
    assert provider.describe_instance([], "") == []
    with pytest.raises(InvalidInput):
        provider.describe_instance([], "off")
    assert ("GET", "/machines") in api.calls()


def test_a_machine_that_is_off_is_told_as_its_own_doing() -> None:
    """The status names Paperspace's state and blames nobody; of one that runs there is nothing to tell."""
    provider, _ = a_provider({ONE: [seen(state="off"), seen()]})
    machine = an_attempt(allocated_id="ps1")
    told = provider.get_instance_status(machine)
    assert told is not None
    assert (told.fault_code, told.marked_for_termination, told.termination_time) == ("off", False, 0)
    assert provider.get_instance_status(machine) is None
    assert provider.get_instance_statuses([an_attempt(allocated_id="ps1", state="terminated")])["i-1"].fault_code == (
        "terminated"
    )
