"""Looking machines up: batches, paging, missing ones, states."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from spotferry.providers.aws.provider import VISIBLE_AFTER
from spotferry.providers.aws.states import STATES
from spotferry.types.errors import InvalidInput, ProviderError, ProviderUnavailable
from spotferry.types.instance import INSTANCE_STATES, Attempt, Instance
from tests.unit.providers.aws.rig import LONG_AGO, NOW, TAGS, TOKEN, Rig, an_attempt, machine, reservations

ID = "i-0000000a"


def launched(allocated_id: str = ID, **changes: object) -> Attempt:
    """An attempt whose machine was made an hour ago."""
    fields = {"allocated_id": allocated_id, "state": "running", "requested_at": LONG_AGO, "launched_at": LONG_AGO}
    return an_attempt(**(fields | changes))


def many(count: int) -> list[Attempt]:
    """Machines with ids in order."""
    return [launched(f"i-{n:08x}", cedana_id=f"t-{n}") for n in range(count)]


def expect(rig: Rig, ids: list[str], *machines: Mapping[str, object]) -> None:
    """EC2 will be asked for these ids."""
    rig.stub().add_response("describe_instances", reservations(*machines), {"InstanceIds": ids})


def first(found: list[Instance]) -> Attempt:
    """The only one, as the attempt it is."""
    [one] = found
    assert isinstance(one, Attempt)
    return one


def test_1200_machines_take_three_calls() -> None:
    """Ids are looked up 500 a call, and the answers come back in the order of the question."""
    rig = Rig()
    attempts = many(1200)
    ids = [a.allocated_id for a in attempts]
    for start in (0, 500, 1000):
        batch = ids[start : start + 500]
        expect(rig, batch, *(machine(i) for i in reversed(batch)))
    found = rig.provider.describe_instance(list(reversed(attempts)), "")
    assert [f.allocated_id for f in found] == list(reversed(ids))
    rig.done()


def test_one_missing_among_many_costs_one_more_call() -> None:
    """A missing id fails the whole call: it is left out of the next one, and is gone."""
    rig = Rig()
    attempts = many(3)
    ids = [a.allocated_id for a in attempts]
    words = f"The instance ID '{ids[1]}' does not exist"
    rig.stub().add_client_error("describe_instances", "InvalidInstanceID.NotFound", words, 400)
    expect(rig, [ids[0], ids[2]], machine(ids[0]), machine(ids[2]))
    states = [f.state for f in rig.provider.describe_instance(attempts, "")]
    assert states == ["running", "terminated", "running"]
    rig.done()


def test_when_all_are_missing_nothing_more_is_asked() -> None:
    """With every id named as missing there is nothing left to look up."""
    rig = Rig()
    attempts = many(2)
    words = "The instance IDs 'i-00000000, i-00000001' do not exist"
    rig.stub().add_client_error("describe_instances", "InvalidInstanceID.NotFound", words, 400)
    assert {f.state for f in rig.provider.describe_instance(attempts, "")} == {"terminated"}
    rig.done()


def test_words_that_name_nobody_fall_back_to_a_filter() -> None:
    """When EC2 does not say which id is missing, a filter finds those that are there, 200 a call."""
    rig = Rig()
    attempts = many(201)
    ids = [a.allocated_id for a in attempts]
    rig.stub().add_client_error("describe_instances", "InvalidInstanceID.NotFound", "one of them", 400)
    for batch in (ids[:200], ids[200:]):
        params = {"Filters": [{"Name": "instance-id", "Values": batch}], "MaxResults": 1000}
        rig.stub().add_response("describe_instances", reservations(*(machine(i) for i in batch)), params)
    assert {f.state for f in rig.provider.describe_instance(attempts, "")} == {"running"}
    rig.done()


def test_pages_are_followed_to_the_end() -> None:
    """A listing is not over while EC2 hands out a token for the next page."""
    rig = Rig()
    attempts = many(2)
    ids = [a.allocated_id for a in attempts]
    rig.stub().add_response("describe_instances", {**reservations(machine(ids[0])), "NextToken": "more"})
    rig.stub().add_response(
        "describe_instances", reservations(machine(ids[1])), {"InstanceIds": ids, "NextToken": "more"}
    )
    assert [f.state for f in rig.provider.describe_instance(attempts, "")] == ["running", "running"]


def test_a_listing_that_fails_halfway_proves_nothing() -> None:
    """When any page or batch fails, no machine is reported as gone: the error is."""
    rig = Rig()
    attempts = many(501)
    expect(rig, [a.allocated_id for a in attempts[:500]])
    for _ in range(5):
        rig.stub().add_client_error("describe_instances", "RequestLimitExceeded", "slow down", 503)
    with pytest.raises(ProviderUnavailable):
        rig.provider.describe_instance(attempts, "")


@pytest.mark.parametrize(("said", "state"), STATES.items())
def test_each_state_of_ec2(said: str, state: str) -> None:
    """Each state of EC2 becomes one of ours."""
    rig = Rig()
    expect(rig, [ID], machine(ID, said))
    assert first(rig.provider.describe_instance([launched()], "")).state == state
    assert state in INSTANCE_STATES


def test_a_state_that_ec2_does_not_document_changes_nothing() -> None:
    """A state nobody has heard of proves nothing about the machine, and does not stop the poll of the others."""
    rig = Rig()
    expect(rig, [ID], machine(ID, "dreaming"))
    assert first(rig.provider.describe_instance([launched()], "")).state == "running"


def test_a_machine_just_made_is_not_gone() -> None:
    """One that EC2 does not show yet comes back as it was, for as long as EC2 may take to show it."""
    missing = "The instance ID 'i-0000000a' does not exist"
    for age, expected in ((VISIBLE_AFTER - timedelta(seconds=1), "pending"), (VISIBLE_AFTER, "terminated")):
        rig = Rig()
        rig.stub().add_client_error("describe_instances", "InvalidInstanceID.NotFound", missing, 400)
        young = launched(state="pending", launched_at=NOW - age)
        assert first(rig.provider.describe_instance([young], "")).state == expected


def test_a_launch_without_an_answer_is_young_by_its_request() -> None:
    """While the answer is open, the time of the request counts: a launch is not given up before EC2 had to show it."""
    for age, expected in ((timedelta(minutes=1), "pending"), (VISIBLE_AFTER, "terminated")):
        rig = Rig()
        rig.stub().add_response("describe_instances", {})
        asked = an_attempt(state="pending", requested_at=NOW - age)
        assert first(rig.provider.describe_instance([asked], "")).state == expected


def test_a_plain_instance_is_young_by_its_creation() -> None:
    """An instance that is no attempt is judged by its time of creation; without one it is gone when it is not shown."""
    for created, expected in ((NOW, "pending"), (None, "terminated")):
        rig = Rig()
        rig.stub().add_client_error("describe_instances", "InvalidInstanceID.NotFound", ID, 400)
        plain = Instance(allocated_id=ID, region="us-east-1", state="pending", created_at=created)
        assert rig.provider.describe_instance([plain], "")[0].state == expected


def test_a_launch_whose_answer_was_lost_is_described_by_its_token() -> None:
    """Without an allocated id the machine is looked up by the client token, and its id is filled in."""
    rig = Rig()
    params = {"Filters": [{"Name": "client-token", "Values": [TOKEN]}], "MaxResults": 1000}
    rig.stub().add_response("describe_instances", reservations(machine("i-0000000b")), params)
    assert first(rig.provider.describe_instance([an_attempt()], "")).allocated_id == "i-0000000b"


def test_each_region_is_asked_for_its_own() -> None:
    """Machines of several regions are looked up where they are."""
    rig = Rig()
    expect(rig, [ID], machine(ID))
    rig.stub(region="eu-west-1").add_response(
        "describe_instances", reservations(machine("i-0000000b", "stopped")), {"InstanceIds": ["i-0000000b"]}
    )
    found = rig.provider.describe_instance([launched(), launched("i-0000000b", region="eu-west-1")], "")
    assert [f.state for f in found] == ["running", "stopping"]
    rig.done()


def test_the_filter_keeps_one_state() -> None:
    """A filter keeps the machines in that state; what is no state is refused."""
    rig = Rig()
    attempts = many(2)
    ids = [a.allocated_id for a in attempts]
    expect(rig, ids, machine(ids[0]), machine(ids[1], "terminated"))
    assert [f.allocated_id for f in rig.provider.describe_instance(attempts, "terminated")] == [ids[1]]
    with pytest.raises(InvalidInput, match="filter"):
        rig.provider.describe_instance([], "gone")


def test_no_machines_no_calls() -> None:
    """Nothing is asked for nothing."""
    rig = Rig()
    assert rig.provider.describe_instance([], "") == []
    assert rig.stubs == {}


@pytest.mark.parametrize(
    "words", ["Spot instance termination", "Server.SpotInstanceTermination: Spot instance termination"]
)
def test_the_reason_is_kept_in_the_clouds_words(words: str) -> None:
    """The state reason comes with its code once, whether or not EC2's words repeat it."""
    rig = Rig()
    reason = {"Code": "Server.SpotInstanceTermination", "Message": words}
    expect(rig, [ID], machine(ID, "terminated", StateReason=reason))
    seen = first(rig.provider.describe_instance([launched()], ""))
    assert seen.cloud_reason == "Server.SpotInstanceTermination: Spot instance termination"


def test_find_by_token_and_tag() -> None:
    """A lost launch is found by its token among the living, and only if it carries the attempt's tags."""
    rig = Rig()
    states = ["pending", "running", "shutting-down", "stopping", "stopped"]
    filters = [{"Name": "client-token", "Values": [TOKEN]}, {"Name": "instance-state-name", "Values": states}]
    seen = reservations(machine("i-new", "pending"))
    rig.stub().add_response("describe_instances", seen, {"Filters": filters, "MaxResults": 1000})
    found = rig.provider.find_instance(an_attempt())
    assert found is not None
    assert (found.allocated_id, found.state, found.ip_address) == ("i-new", "pending", "10.0.0.7")
    rig.stub().add_response("describe_instances", reservations(machine("i-other", Tags=[])))
    assert rig.provider.find_instance(an_attempt()) is None
    rig.stub().add_response("describe_instances", {})
    assert rig.provider.find_instance(an_attempt()) is None


def test_owned_machines_are_ours_and_all_pages_of_them() -> None:
    """The owned list asks for this deployment's tag and follows the pages; the token is the attempt's id."""
    rig = Rig()
    name = "tag:spotferry:deployment"
    filters = [{"Name": name, "Values": [TAGS["spotferry:deployment"]]}]
    states = ["pending", "running", "shutting-down", "stopping", "stopped"]
    params = {"Filters": [*filters, {"Name": "instance-state-name", "Values": states}], "MaxResults": 1000}
    page = {**reservations(machine("i-1", InstanceType="m5.large")), "NextToken": "more"}
    rig.stub().add_response("describe_instances", page, params)
    rig.stub().add_response(
        "describe_instances", reservations(machine("i-2", "stopped")), {**params, "NextToken": "more"}
    )
    owned = list(rig.provider.owned_instances("us-east-1"))
    assert [(o.allocated_id, o.state, o.cedana_id) for o in owned] == [
        ("i-1", "running", TOKEN),
        ("i-2", "stopping", TOKEN),
    ]
    assert (owned[0].provider, owned[0].region, owned[0].instance_type) == ("aws", "us-east-1", "m5.large")


@pytest.mark.parametrize("code", ["InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"])
def test_destroying_what_is_gone_succeeds(code: str) -> None:
    """A machine that EC2 does not know has ended."""
    rig = Rig()
    rig.stub().add_client_error("terminate_instances", code, "gone", 400)
    rig.provider.destroy_instance(launched())
    rig.done()


def test_destroy_terminates_that_machine() -> None:
    """The order names the machine, once a call."""
    rig = Rig()
    for _ in range(2):
        rig.stub().add_response("terminate_instances", {}, {"InstanceIds": [ID]})
        rig.provider.destroy_instance(launched())
    rig.done()


def test_destroy_of_a_lost_launch_finds_it_first() -> None:
    """Without an id the machine is found by its token; when there is none, there is nothing to end."""
    rig = Rig()
    rig.stub().add_response("describe_instances", reservations(machine("i-0000000b")))
    rig.stub().add_response("terminate_instances", {}, {"InstanceIds": ["i-0000000b"]})
    rig.provider.destroy_instance(an_attempt())
    rig.stub().add_response("describe_instances", {})
    rig.provider.destroy_instance(an_attempt())
    rig.provider.destroy_instance(Instance(region="us-east-1"))
    rig.done()


def test_an_order_that_was_not_accepted_is_an_error() -> None:
    """Any other refusal is raised: the end is still owed."""
    rig = Rig()
    rig.stub().add_client_error("terminate_instances", "IncorrectInstanceState", "not now", 400)
    with pytest.raises(ProviderError):
        rig.provider.destroy_instance(launched())
