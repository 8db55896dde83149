"""Looking machines up, and what is made of odd answers."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from requests.exceptions import ReadTimeout

from spotferry.providers.ends import ENDED_BY, Cause
from spotferry.providers.gcp import operations as zone_operations
from spotferry.providers.gcp.states import OPERATIONS, STATES
from spotferry.types.errors import InvalidInput, ProviderError, ProviderUnavailable, SkipProvider
from spotferry.types.instance import INSTANCE_STATES, Attempt, Instance
from tests.unit.providers.gcp.rig import (
    LONG_AGO,
    NAME,
    NOW,
    REGION,
    ZONE,
    Answer,
    Rig,
    a_machine,
    an_attempt,
    an_operation,
    failed,
    listed,
    operations,
    refused,
)

MADE = an_attempt(allocated_id=NAME, launched_at=LONG_AGO, state="running")
GONE = refused(404, "notFound")
PREEMPTED = an_operation("compute.instances.preempted", statusMessage="Instance was preempted.")


def described(rig: Rig, attempt: Attempt = MADE) -> Attempt:
    """One machine as Google shows it."""
    [seen] = rig.provider.describe_instance([attempt], "")
    assert isinstance(seen, Attempt)
    return seen


STATUSES = [
    ("PENDING", "pending"),
    ("PROVISIONING", "pending"),
    ("STAGING", "pending"),
    ("REPAIRING", "pending"),
    ("RUNNING", "running"),
    ("PENDING_STOP", "stopping"),
    ("STOPPING", "stopping"),
    ("SUSPENDING", "stopping"),
    ("SUSPENDED", "stopping"),
    ("STOPPED", "stopping"),
    ("TERMINATED", "stopping"),
    ("DEPROVISIONING", "shutting-down"),
]


def test_the_table_of_states_is_whole() -> None:
    """Every status is tested, and leads to a state of ours."""
    assert dict(STATUSES) == STATES
    assert set(STATES.values()) <= set(INSTANCE_STATES)


@pytest.mark.parametrize(("status", "state"), STATUSES)
def test_a_status(status: str, state: str) -> None:
    """Each is told as the table has it; a machine that is stopped is lost, and not gone."""
    ending: list[Answer] = [operations()] if state in {"stopping", "shutting-down"} else []
    assert described(Rig().answer(a_machine(status=status), *ending)).state == state


def test_a_status_that_nobody_documented() -> None:
    """It leaves the state that was known."""
    assert described(Rig().answer(a_machine(status="DREAMING"))).state == "running"


ENDS = [
    ("compute.instances.preempted", "cloud", True),
    ("compute.instances.hostError", "cloud", True),
    ("compute.instances.terminateOnHostMaintenance", "cloud", True),
    ("compute.instances.guestTerminate", "us", False),
    ("stop", "us", False),
    ("suspend", "us", False),
    ("delete", "us", False),
]


def test_the_table_of_operations_is_whole() -> None:
    """Every kind of operation that ends a machine is tested, and every cause says who it was."""
    assert {kind for kind, _, _ in ENDS} == set(OPERATIONS)
    assert set(ENDED_BY) == set(Cause)


@pytest.mark.parametrize(("kind", "by", "marked"), ENDS)
def test_who_ended_a_machine(kind: str, by: str, marked: bool) -> None:  # noqa: FBT001 (a case's answer)
    """The operation tells: who, when and in which words; the cloud's own doing is marked."""
    operation = an_operation(kind, endTime="2026-05-04T04:31:00-07:00")
    rig = Rig().answer(GONE, operations(an_operation(), operation))
    seen = described(rig)
    assert (seen.state, seen.ended_by) == ("terminated", by)
    assert seen.cloud_reason.startswith(f"{kind}: ")
    assert seen.billed_until == datetime(2026, 5, 4, 11, 31, tzinfo=UTC)
    event = rig.provider.get_instance_statuses([seen])[NAME]
    assert (event.instance_id, event.fault_code, event.marked_for_termination) == (NAME, kind, marked)
    assert event.termination_time == int(datetime(2026, 5, 4, 11, 31, tzinfo=UTC).timestamp())


def test_a_launch_that_failed_is_nobodys_end() -> None:
    """The machine never started: told by its launch's own error, and marked as the cloud's doing."""
    rig = Rig().answer(GONE, operations(failed("ZONE_RESOURCE_POOL_EXHAUSTED", "none left")))
    seen = described(rig)
    assert (seen.ended_by, seen.cloud_reason) == ("launch", "ZONE_RESOURCE_POOL_EXHAUSTED: none left")
    assert rig.provider.get_instance_statuses([seen])[NAME].marked_for_termination


def test_a_preemption_counts_before_the_order_that_came_too_late() -> None:
    """Of several operations the one that took the machine tells; one that failed tells nothing."""
    late = an_operation("delete", insertTime="2026-05-04T04:29:00-07:00")
    assert described(Rig().answer(GONE, operations(late, PREEMPTED))).ended_by == "cloud"
    undone = {**PREEMPTED, "error": {"errors": [{"code": "ODD", "message": "x"}]}}
    assert described(Rig().answer(GONE, operations(undone, late))).ended_by == "us"


def test_a_machine_that_stops_is_told_with_its_cause() -> None:
    """While it is still shown; one that runs costs no second call and says nothing."""
    rig = Rig().answer(a_machine(status="STOPPING"), operations(PREEMPTED))
    event = rig.provider.get_instance_status(MADE)
    assert event is not None
    assert event.marked_for_termination
    calm = Rig().answer(a_machine())
    assert calm.provider.get_instance_status(MADE) is None
    calm.done()


def test_a_young_machine_that_is_missing_is_not_gone_unless_an_operation_says_so() -> None:
    """For five minutes it comes back as it was; after that nothing needs to say so."""
    young = MADE.model_copy(update={"launched_at": NOW - timedelta(minutes=4)})
    assert described(Rig().answer(GONE, operations(an_operation())), young).state == "running"
    assert described(Rig().answer(GONE, operations(PREEMPTED)), young).state == "terminated"
    assert described(Rig().answer(GONE, operations())).state == "terminated"
    plain = Instance(allocated_id=NAME, region=REGION, availability_zone=ZONE, created_at=LONG_AGO)
    [seen] = Rig().answer(GONE, operations(PREEMPTED)).provider.describe_instance([plain], "")
    assert seen.state == "terminated"


def test_many_are_listed_by_their_label_page_by_page() -> None:
    """One call for each page of the whole region, in the order that was asked for; filters keep a state."""
    names = [f"i-{n}" for n in range(4)]
    attempts = [an_attempt(cedana_id=n, allocated_id=n, launched_at=LONG_AGO) for n in names]
    first = listed(a_machine("i-3"), a_machine("i-1", "STOPPING"), token="t2")
    rig = Rig().answer(first, listed(a_machine("i-0")), operations(an_operation("delete", name="i-2")))
    seen = rig.provider.describe_instance(attempts, "")
    assert [(s.allocated_id, s.state) for s in seen] == [
        ("i-0", "running"),
        ("i-1", "stopping"),
        ("i-2", "terminated"),
        ("i-3", "running"),
    ]
    assert rig.wire.paths()[:2] == ["GET p1/aggregated/instances"] * 2
    asked = rig.wire.query(0)
    assert asked["filter"] == ('(labels.spotferry-deployment eq "test") (zone eq ".*/zones/us-central1-[a-z0-9]+")')
    assert rig.wire.query(1)["pageToken"] == "t2"
    assert rig.wire.query(2)["filter"] == 'targetLink eq ".*/instances/(i-1|i-2)"'
    again = Rig().answer(first, listed(a_machine("i-0")), operations())
    assert [s.allocated_id for s in again.provider.describe_instance(attempts, "stopping")] == ["i-1"]


def test_a_zone_that_could_not_be_listed_proves_nothing() -> None:
    """A zone of the region with a warning, or out of reach, fails the listing; another region's does not."""
    warned = {f"zones/{ZONE}": {"warning": {"code": "UNREACHABLE", "message": "down"}}}
    far = {"zones/europe-west4-a": {"warning": {"code": "UNREACHABLE", "message": "down"}}}
    empty = {f"zones/{ZONE}": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}
    for broken in (listed(items=warned), listed(items={}, unreachables=[f"projects/p1/zones/{ZONE}"])):
        with pytest.raises(ProviderUnavailable, match=ZONE):
            list(Rig().answer(broken).provider.owned_instances(REGION))
    assert list(Rig().answer(listed(items={**far, **empty})).provider.owned_instances(REGION)) == []


def test_a_listing_that_has_no_names_is_none() -> None:
    """What cannot be told apart proves nothing."""
    with pytest.raises(ProviderUnavailable, match="compute#instanceAggregatedList"):
        list(Rig().answer({"message": "not the API"}).provider.owned_instances(REGION))
    with pytest.raises(ProviderUnavailable, match="without a name"):
        list(Rig().answer(listed({"status": "RUNNING"})).provider.owned_instances(REGION))


def test_what_is_ours() -> None:
    """Each with the attempt in its label, its place and its type; one without a label belongs to nobody we know."""
    strange = a_machine("i-9", labels={"spotferry-deployment": "test"})
    rig = Rig().answer(listed(a_machine(), strange))
    first, second = rig.provider.owned_instances(REGION)
    assert (first.cedana_id, first.allocated_id, first.availability_zone) == (NAME, NAME, ZONE)
    assert (first.instance_type, first.created_at) == ("n2-standard-2", NOW - timedelta(hours=2))
    assert (second.cedana_id, second.allocated_id) == ("", "i-9")


def test_a_page_that_fails_fails_the_listing() -> None:
    """What came before it is not the whole."""
    rig = Rig().answer(listed(a_machine(), token="t2"), refused(400, "odd", "broken token"))
    found = rig.provider.owned_instances(REGION)
    assert next(found).allocated_id == NAME
    with pytest.raises(ProviderError, match="broken token"):
        next(found)


MALFORMED: list[Answer] = [b"<html>", b"[]", b'{"labels": 7}', b"\xff\xfe", {"name": {"x": 1}}]


@pytest.mark.parametrize("answer", MALFORMED)
def test_an_answer_that_is_not_what_the_api_promises(answer: Answer) -> None:
    """It is no verdict about the machine, whatever it was, and not repeated for ever."""
    rig = Rig().answer(*[answer] * 5)
    with pytest.raises(ProviderUnavailable):
        rig.provider.describe_instance([MADE], "")


def test_finding_a_launch() -> None:
    """By the attempt's name, if the machine carries our labels; with its address, state and start."""
    found = Rig().answer(a_machine()).provider.find_instance(an_attempt())
    assert found is not None
    assert (found.allocated_id, found.state, found.ip_address) == (NAME, "running", "198.51.100.7")
    assert found.launched_at == NOW - timedelta(hours=2)
    foreign = a_machine(labels={"spotferry-deployment": "another", "spotferry-instance": NAME})
    assert Rig().answer(foreign).provider.find_instance(an_attempt()) is None
    assert Rig().answer(GONE).provider.find_instance(an_attempt()) is None


def test_a_machine_without_an_address_outside() -> None:
    """The one inside is told."""
    inside = a_machine(networkInterfaces=[{"networkIP": "10.128.0.2"}])
    assert described(Rig().answer(inside)).ip_address == "10.128.0.2"
    assert described(Rig().answer(a_machine(networkInterfaces=[]))).ip_address == ""


def test_a_stopped_machine_has_stopped_billing() -> None:
    """Since its last stop, by Google's clock; one that runs again has not."""
    stop = "2026-05-04T04:00:00-07:00"
    stopped = a_machine(status="TERMINATED", lastStopTimestamp=stop)
    seen = described(Rig().answer(stopped, operations(an_operation("compute.instances.guestTerminate"))))
    assert (seen.billed_until, seen.ended_by) == (datetime(2026, 5, 4, 11, tzinfo=UTC), "us")
    assert described(Rig().answer(a_machine(lastStopTimestamp=stop))).billed_until is None


def test_destroying() -> None:
    """By name in its zone; what is not there is no error, what was never named is not asked about, a denial is told."""
    rig = Rig().answer(an_operation("delete"), GONE)
    rig.provider.destroy_instance(MADE)
    rig.provider.destroy_instance(an_attempt())
    assert rig.wire.paths() == [f"DELETE p1/zones/{ZONE}/instances/{NAME}"] * 2
    Rig().provider.destroy_instance(Instance(region=REGION))
    with pytest.raises(SkipProvider):
        Rig().answer(refused(403, "forbidden")).provider.destroy_instance(MADE)


def test_operations_are_asked_about_in_batches() -> None:
    """So many names a call, each page followed; a name that is none is not put into a filter."""
    rig = Rig().answer(operations(an_operation("delete", name="i-0"), token="t2"), operations(), operations())
    names = [f"i-{n}" for n in range(zone_operations.NAMES_A_CALL + 1)] + ['i" OR x']
    found = zone_operations.of_machines(rig.api.begin(REGION), ZONE, names)
    assert list(found) == ["i-0"]
    assert rig.wire.query(1)["pageToken"] == "t2"
    assert rig.wire.query(2)["filter"] == f'targetLink eq ".*/instances/(i-{zone_operations.NAMES_A_CALL})"'


@pytest.mark.parametrize("text", ["", "yesterday", "2026-05-04T04:00:00"])
def test_what_is_no_time(text: str) -> None:
    """It is none, rather than a wrong one."""
    assert zone_operations.moment(text) is None


def test_a_filter_that_is_no_state() -> None:
    """It is refused by name, and nobody is asked."""
    rig = Rig()
    with pytest.raises(InvalidInput, match="filter"):
        rig.provider.describe_instance([MADE], "asleep")
    assert rig.provider.describe_instance([], "") == []
    assert rig.wire.asked == []


def test_calls_that_belong_together_end_in_time() -> None:
    """Repeats stop when another try would not end before the deadline; each pause is longer, up to a limit."""
    rig = Rig().answer(*[(503, json.dumps({"error": {"message": "busy"}}).encode())] * 5)
    with pytest.raises(ProviderUnavailable):
        rig.provider.describe_instance([MADE], "")
    assert rig.time.pauses == [0.5, 1.0, 2.0]
    slow = Rig()

    def hang(*_: object, **__: object) -> None:
        slow.time.seconds += 12
        raise ReadTimeout("slow")

    slow.wire.send = hang  # type: ignore[assignment]  # the wire is one that hangs
    with pytest.raises(ProviderUnavailable):
        slow.provider.describe_instance([MADE], "")
    assert slow.time.seconds <= 19
    spent = slow.api.begin(REGION)
    slow.time.seconds += 12
    with pytest.raises(ProviderUnavailable, match="no time was left"):
        spent.ask(lambda c: c.instances.get, {"zone": ZONE, "instance": NAME})
    assert not spent.deadline.wait(1)
