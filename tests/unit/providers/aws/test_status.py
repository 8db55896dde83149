"""What EC2 says about the end of machines."""

from collections.abc import Mapping

import pytest

from spotferry.providers.aws.states import SPOT_STATUS, STATE_REASONS
from spotferry.providers.ends import Cause
from spotferry.types.instance import Attempt
from tests.unit.providers.aws.rig import LONG_AGO, NOW, TOKEN, Rig, an_attempt, machine, reservations

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


def ended(code: str, state: str = "terminated") -> Attempt:
    """A machine that ended for this reason, as describe_instance returns it."""
    return launched(state=state, cloud_reason=f"{code}: words", billed_until=NOW)


def requests(code: str) -> dict[str, object]:
    """The machine's spot request."""
    return {"SpotInstanceRequests": [{"InstanceId": ID, "Status": {"Code": code, "UpdateTime": NOW}}]}


@pytest.mark.parametrize(("code", "cause"), STATE_REASONS.items())
def test_each_state_reason(code: str, cause: Cause) -> None:
    """An end keeps the cloud's code, and is marked exactly when it was the cloud's doing."""
    rig = Rig()
    if cause is Cause.TAKEN_BACK:
        rig.stub().add_response("describe_spot_instance_requests", {"SpotInstanceRequests": []})
    event = rig.provider.get_instance_statuses([ended(code)])[TOKEN]
    assert (event.instance_id, event.fault_code) == (ID, code)
    assert event.marked_for_termination is (cause in {Cause.TAKEN_BACK, Cause.NEVER_STARTED, Cause.MAINTAINED})
    rig.done()


@pytest.mark.parametrize(("code", "cause"), SPOT_STATUS.items())
def test_each_spot_status(code: str, cause: Cause) -> None:
    """What a living machine's spot request says about its end is told, with the time when it is still to come."""
    rig = Rig()
    expect(rig, [ID], machine(ID))
    params = {"Filters": [{"Name": "instance-id", "Values": [ID]}], "MaxResults": 1000}
    rig.stub().add_response("describe_spot_instance_requests", requests(code), params)
    event = rig.provider.get_instance_status(launched())
    assert event is not None
    assert event.fault_code == code
    assert event.marked_for_termination is (cause is Cause.TAKEN_BACK)
    notice = 120 if code.startswith("marked") else 0
    assert event.termination_time == int(NOW.timestamp()) + notice


@pytest.mark.parametrize("code", ["fulfilled", "request-canceled-and-instance-running", "a-new-one"])
def test_a_healthy_machine_has_no_status(code: str) -> None:
    """A request that says nothing about an end is nothing to say."""
    rig = Rig()
    expect(rig, [ID], machine(ID))
    rig.stub().add_response("describe_spot_instance_requests", requests(code))
    assert rig.provider.get_instance_status(launched()) is None


def test_an_on_demand_machine_has_no_request_to_ask_about() -> None:
    """Only the machine itself is asked about."""
    rig = Rig()
    expect(rig, [ID], machine(ID))
    assert rig.provider.get_instance_status(launched(market="on_demand")) is None
    rig.done()


def test_a_launch_that_nobody_can_see_has_no_status() -> None:
    """Neither seen nor known by an id: nothing can be said, and nothing more is asked."""
    rig = Rig()
    rig.stub().add_response("describe_instances", {})
    assert rig.provider.get_instance_status(an_attempt()) is None
    rig.done()


def test_a_machine_that_is_no_longer_shown_has_ended() -> None:
    """A machine that EC2 forgot is an end whose cause nobody knows."""
    rig = Rig()
    rig.stub().add_client_error("describe_instances", "InvalidInstanceID.NotFound", ID, 400)
    event = rig.provider.get_instance_status(launched())
    assert event is not None
    assert (event.fault_code, event.marked_for_termination) == ("terminated", False)


def test_statuses_of_healthy_machines_cost_no_call() -> None:
    """A poll in which all machines run asks nothing about their ends."""
    rig = Rig()
    assert rig.provider.get_instance_statuses(many(500)) == {}
    assert rig.stubs == {}


def test_the_spot_request_tells_the_time_of_an_end_where_the_machine_does_not() -> None:
    """A spot machine that switched itself off shows no time; its request does, and the bill ends there."""
    rig = Rig()
    off = ended("Client.InstanceInitiatedShutdown").model_copy(update={"billed_until": None})
    rig.stub().add_response("describe_spot_instance_requests", requests("instance-terminated-by-user"))
    event = rig.provider.get_instance_statuses([off])[TOKEN]
    assert (event.termination_time, event.marked_for_termination) == (int(NOW.timestamp()), False)
    on_demand = off.model_copy(update={"market": "on_demand"})
    assert rig.provider.get_instance_statuses([on_demand])[TOKEN].termination_time == 0
    rig.done()


def test_statuses_of_machines_taken_back_are_asked_for_together() -> None:
    """Those that EC2 took back are asked about in one call, those that ended otherwise not at all."""
    rig = Rig()
    taken = [
        ended("Server.SpotInstanceTermination", "shutting-down").model_copy(
            update={"allocated_id": f"i-{n}", "cedana_id": f"t-{n}"}
        )
        for n in range(3)
    ]
    other = ended("Client.UserInitiatedShutdown").model_copy(update={"cedana_id": "t-other"})
    answer = {"SpotInstanceRequests": [{"InstanceId": "i-1", "Status": {"Code": "instance-terminated-by-price"}}]}
    params = {"Filters": [{"Name": "instance-id", "Values": ["i-0", "i-1", "i-2"]}], "MaxResults": 1000}
    rig.stub().add_response("describe_spot_instance_requests", answer, params)
    events = rig.provider.get_instance_statuses([*taken, other])
    assert {key: event.fault_code for key, event in events.items()} == {
        "t-0": "Server.SpotInstanceTermination",
        "t-1": "instance-terminated-by-price",
        "t-2": "Server.SpotInstanceTermination",
        "t-other": "Client.UserInitiatedShutdown",
    }
    rig.done()


def test_pages_of_spot_requests_are_followed() -> None:
    """A short or empty page of requests is not the last one while there is a token."""
    rig = Rig()
    expect(rig, [ID], machine(ID))
    rig.stub().add_response("describe_spot_instance_requests", {"SpotInstanceRequests": [], "NextToken": "more"})
    filters = [{"Name": "instance-id", "Values": [ID]}]
    params = {"Filters": filters, "MaxResults": 1000, "NextToken": "more"}
    rig.stub().add_response("describe_spot_instance_requests", requests("marked-for-termination"), params)
    event = rig.provider.get_instance_status(launched())
    assert event is not None
    assert event.fault_code == "marked-for-termination"
