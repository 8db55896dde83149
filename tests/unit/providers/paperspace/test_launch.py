"""The launch on Paperspace, to the letter."""

import pytest

from spotferry.ports.cloud import RegionSettings
from spotferry.providers.paperspace import launch
from spotferry.providers.paperspace.templates import Template
from spotferry.types.errors import LaunchRefused, TryNextType
from tests.unit.providers.paperspace.rig import NAME, an_attempt

TEMPLATE = Template("t1", "Ubuntu 22.04 Server", "Ubuntu 22.04", 50, {})


def test_the_machine_that_is_asked_for() -> None:
    """Every field of the call, for a request without a private network and for one with it."""
    attempt = an_attempt()
    assert attempt.launch is not None
    body = launch.machine(attempt, attempt.launch, NAME, "sc1")
    assert body == {
        "name": NAME,
        "machineType": "C4",
        "templateId": "t1",
        "diskSize": 50,
        "region": "ny2",
        "publicIpType": "dynamic",
        "startupScriptId": "sc1",
        "startOnCreate": True,
        "autoSnapshotEnabled": False,
        "emailPassword": False,
    }
    networked = attempt.launch.model_copy(update={"network": {"network_id": "n1"}})
    assert launch.machine(attempt, networked, NAME, "sc1") == body | {"networkId": "n1"}


def test_the_script_that_is_asked_for() -> None:
    """It has the machine's name and runs at the first boot only."""
    assert launch.script(NAME, "#!/bin/sh\n") == {"name": NAME, "script": "#!/bin/sh\n", "isRunOnce": True}


def test_a_name_tells_deployment_and_attempt() -> None:
    """Names go both ways; those of other deployments and of people are nobody's."""
    assert launch.name_of("test", "i-1") == NAME
    assert launch.cedana_id_of("test", NAME) == "i-1"
    for other in ("spotferry.test-2.i-1", "spotferry.test.", "spotferry.test.a b", "my machine", "spotferry", ""):
        assert launch.cedana_id_of("test", other) == ""


@pytest.mark.parametrize(
    ("said", "listed"), [("ny2", "NY2"), ("NY2", "NY2"), ("East Coast (NY2)", "NY2"), ("Europe (AMS1)", "AMS1")]
)
def test_regions_are_those_of_the_price_list(said: str, listed: str) -> None:
    """The API has written regions in three ways."""
    assert launch.listed_region(said) == listed
    assert launch.api_region("NY2") == "ny2"


@pytest.mark.parametrize(("wanted", "sold"), [(1, 50), (50, 50), (51, 100), (100, 100), (600, 1000), (2000, 2000)])
def test_disks_are_sold_in_steps(wanted: int, sold: int) -> None:
    """A disk is the next size up, and at least the template's."""
    assert launch.disk_size(TEMPLATE, wanted, "NY2") == sold
    assert launch.disk_size(Template("t1", "", "", 250, {}), wanted, "NY2") == max(sold, 250)


def test_a_disk_that_nobody_sells() -> None:
    """More than the largest is no reason to give the job up: another cloud may have it."""
    with pytest.raises(TryNextType, match="2000 GB") as caught:
        launch.disk_size(TEMPLATE, 2001, "NY2")
    assert caught.value.scope == "pool"


def test_the_request_is_fixed_with_what_settings_say() -> None:
    """A private network of the region's settings goes into the request; so does whose image it is."""
    settings = RegionSettings(provider="paperspace", region="NY2", network={"network_id": "n1", "other": "x"})
    request = launch.fixed_request(TEMPLATE, 100, settings, {"a": "b"}, own_image=True)
    assert (request.image_id, request.disk_gb, request.own_image) == ("t1", 100, True)
    assert (request.network, request.tags) == ({"network_id": "n1"}, {"a": "b"})


def test_what_cannot_be_asked_for() -> None:
    """User data that is too long, an id that is no name, and a spot machine."""
    launch.check(an_attempt(), "x" * launch.USER_DATA_LIMIT_BYTES)
    with pytest.raises(LaunchRefused, match="16385 bytes"):
        launch.check(an_attempt(), "ä" * (launch.USER_DATA_LIMIT_BYTES // 2) + "x")
    with pytest.raises(LaunchRefused, match="letters, digits and hyphens"):
        launch.check(an_attempt(cedana_id="a.b"), "")
    with pytest.raises(LaunchRefused, match="on demand only"):
        launch.check(an_attempt(market="spot"), "")
