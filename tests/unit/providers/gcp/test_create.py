"""Launches to the letter: what is asked for, and what comes of every way in which Google may answer."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from requests.exceptions import ReadTimeout

from spotferry.providers.gcp import labels, launch
from spotferry.types.errors import (
    LaunchRefused,
    NotYet,
    ProviderUnavailable,
    TryNextZone,
)
from spotferry.types.instance import Attempt, Instance
from tests.unit.providers.gcp.rig import (
    IMAGE,
    NAME,
    NOW,
    ZONE,
    Rig,
    a_candidate,
    a_launch,
    a_machine,
    an_attempt,
    an_operation,
    failed,
    operations,
    refused,
    settings,
)

RUNNING = an_operation(status="RUNNING")


def asked_for(attempt: Attempt) -> dict[str, Any]:
    """The machine that a launch asks for."""
    rig = Rig().answer(an_operation(), a_machine())
    rig.provider.create_instance(attempt)
    return rig.wire.body(0)


def test_a_spot_machine() -> None:
    """All of it: deleted at its end and never started again, with a limit, a disk of its own, labels and user data."""
    rig = Rig().answer(an_operation(), a_machine())
    made = rig.provider.create_instance(an_attempt())
    assert rig.wire.paths()[0] == f"POST p1/zones/{ZONE}/instances"
    assert rig.wire.query(0)["requestId"] == launch.request_id(NAME)
    assert rig.wire.body(0) == {
        "name": NAME,
        "description": "",
        "machineType": f"zones/{ZONE}/machineTypes/n2-standard-2",
        "labels": {"spotferry-deployment": "test", "spotferry-job": "j-1", "spotferry-instance": NAME},
        "disks": [
            {
                "boot": True,
                "autoDelete": True,
                "initializeParams": {
                    "sourceImage": IMAGE,
                    "diskSizeGb": "20",
                    "diskType": f"zones/{ZONE}/diskTypes/pd-balanced",
                    "labels": {"spotferry-deployment": "test", "spotferry-job": "j-1"},
                },
            }
        ],
        "networkInterfaces": [
            {
                "network": "global/networks/default",
                "accessConfigs": [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}],
            }
        ],
        "metadata": {"items": [{"key": "startup-script", "value": f"#!/bin/bash\n# {NAME}\n"}]},
        "scheduling": {
            "provisioningModel": "SPOT",
            "instanceTerminationAction": "DELETE",
            "maxRunDuration": {"seconds": str(30 * 24 * 3600)},
            "automaticRestart": False,
            "onHostMaintenance": "TERMINATE",
        },
    }
    assert (made.allocated_id, made.state, made.ip_address) == (NAME, "running", "198.51.100.7")
    rig.done()


def test_on_demand_moves_with_its_host() -> None:
    """Without the spot market the machine survives its host's maintenance; with a GPU it cannot."""
    assert asked_for(an_attempt(market="on_demand"))["scheduling"]["onHostMaintenance"] == "MIGRATE"
    with_gpu = an_attempt(market="on_demand", instance_type="g2-standard-4", accelerator_name="L4", accelerator_count=1)
    asked = asked_for(with_gpu)
    assert asked["scheduling"]["onHostMaintenance"] == "TERMINATE"
    assert asked["scheduling"]["provisioningModel"] == "STANDARD"
    assert "guestAccelerators" not in asked


def test_an_n1_host_is_given_its_gpus() -> None:
    """By the compute API's own name of the model; a GPU that it has not is refused before any call."""
    host = {"instance_type": "n1-standard-4", "accelerator_count": 2}
    asked = asked_for(an_attempt(accelerator_name="T4", **host))
    assert asked["guestAccelerators"] == [
        {"acceleratorType": f"zones/{ZONE}/acceleratorTypes/nvidia-tesla-t4", "acceleratorCount": 2}
    ]
    rig = Rig()
    with pytest.raises(LaunchRefused, match="MI300") as caught:
        rig.provider.create_instance(an_attempt(accelerator_name="MI300", **host))
    assert caught.value.scope == "pool"
    assert rig.wire.asked == []


def test_the_disk_is_the_one_that_was_priced() -> None:
    """Families that boot from Hyperdisk alone get one."""
    asked = asked_for(an_attempt(instance_type="c4-standard-4"))
    assert asked["disks"][0]["initializeParams"]["diskType"].endswith("/hyperdisk-balanced")


NETWORKS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"network": "vpc"}, {"network": "global/networks/vpc"}),
    ({"subnetwork": "jobs"}, {"subnetwork": "regions/us-central1/subnetworks/jobs"}),
    (
        {"network": "projects/h/global/networks/vpc", "subnetwork": "projects/h/regions/us-central1/subnetworks/jobs"},
        {"network": "projects/h/global/networks/vpc", "subnetwork": "projects/h/regions/us-central1/subnetworks/jobs"},
    ),
]


@pytest.mark.parametrize(("where", "interface"), NETWORKS)
def test_the_regions_network(where: dict[str, str], interface: dict[str, Any]) -> None:
    """Names are names in the broker's own project, paths are taken as they are."""
    [made] = asked_for(an_attempt(launch=a_launch(network={"zone": ZONE, **where})))["networkInterfaces"]
    del made["accessConfigs"]
    assert made == interface


def test_the_regions_other_settings() -> None:
    """No address outside, tags for the firewall, and an account for what runs on the machine."""
    where = {"zone": ZONE, "external_ip": "no", "network_tags": "jobs, ssh", "service_account": "jobs@p1.example"}
    asked = asked_for(an_attempt(launch=a_launch(network=where)))
    assert "accessConfigs" not in asked["networkInterfaces"][0]
    assert asked["tags"] == {"items": ["jobs", "ssh"]}
    assert asked["serviceAccounts"] == [
        {"email": "jobs@p1.example", "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
    ]


def test_a_cap_is_kept_by_the_broker() -> None:
    """Google takes none: a spot machine above it is not asked for; on demand has no cap."""
    capped = a_launch(max_price_usd_hour=Decimal("0.029"))
    rig = Rig()
    with pytest.raises(TryNextZone, match="above the cap"):
        rig.provider.create_instance(an_attempt(launch=capped))
    assert rig.wire.asked == []
    assert asked_for(an_attempt(launch=capped, market="on_demand"))
    assert asked_for(an_attempt(launch=a_launch(max_price_usd_hour=Decimal("0.03"))))


def test_what_is_no_attempt_is_no_launch() -> None:
    """A candidate without a fixed request is a mistake of the caller's."""
    for candidate in (Instance(), an_attempt(launch=None)):
        with pytest.raises(TypeError):
            Rig().provider.create_instance(candidate)


def test_a_launch_that_goes_on_is_answered_as_accepted() -> None:
    """It is looked at for a few seconds, then left to be settled: pending, under its name."""
    rig = Rig().answer(RUNNING, RUNNING, RUNNING, RUNNING)
    made = rig.provider.create_instance(an_attempt())
    assert (made.allocated_id, made.state, made.ip_address) == (NAME, "pending", "")
    assert rig.time.pauses == [1.0, 2.0, 3.0]
    assert rig.wire.paths()[1:] == [f"GET p1/zones/{ZONE}/operations/operation-insert"] * 3


def test_a_look_that_fails_changes_nothing_about_the_launch() -> None:
    """That it was accepted is known; so is that it is done, when only the look at the machine fails."""
    for operation in (RUNNING, an_operation()):
        made = Rig().answer(operation, refused(403, "forbidden")).provider.create_instance(an_attempt())
        assert (made.allocated_id, made.state) == (NAME, "pending")


def test_a_lost_answer_is_asked_for_again() -> None:
    """With the same request id, as often as the deadline allows; then there is no verdict."""
    rig = Rig().answer(ReadTimeout("slow"), an_operation(), a_machine())
    assert rig.provider.create_instance(an_attempt()).state == "running"
    assert rig.wire.query(0)["requestId"] == rig.wire.query(1)["requestId"]
    silent = Rig().answer(*[ReadTimeout("slow")] * 5)
    with pytest.raises(ProviderUnavailable):
        silent.provider.create_instance(an_attempt())


def test_an_answer_without_an_operation_is_no_verdict() -> None:
    """The launch may have been accepted all the same: it is asked for again."""
    with pytest.raises(ProviderUnavailable, match="without an operation"):
        Rig().answer({}).provider.create_instance(an_attempt())


def test_a_machine_that_ended_meanwhile_is_told_so() -> None:
    """A repeat of a launch whose machine was deleted since does not buy another one."""
    rig = Rig().answer(an_operation(), refused(404, "notFound"), operations(an_operation(), an_operation("delete")))
    made = rig.provider.create_instance(an_attempt())
    assert (made.allocated_id, made.state) == (NAME, "terminated")


def test_a_machine_that_is_not_shown_yet_is_pending() -> None:
    """Its launch is done, and nothing has ended it."""
    rig = Rig().answer(an_operation(), refused(404, "notFound"), operations(an_operation()))
    assert rig.provider.create_instance(an_attempt()).state == "pending"


def test_a_name_that_is_taken() -> None:
    """By the attempt's own machine: it is answered. By another: refused. By one that is not shown: no verdict."""
    taken = refused(409, "alreadyExists")
    own = Rig().answer(taken, a_machine())
    assert own.provider.create_instance(an_attempt()).state == "running"
    foreign = Rig().answer(taken, a_machine(labels={"spotferry-deployment": "other"}))
    with pytest.raises(LaunchRefused, match="another's machine") as caught:
        foreign.provider.create_instance(an_attempt())
    assert caught.value.scope == "pool"
    with pytest.raises(ProviderUnavailable, match="in the way"):
        Rig().answer(taken, refused(404, "notFound")).provider.create_instance(an_attempt())


def test_settling_a_launch() -> None:
    """By the operation with the attempt's own request id, in one call: at it, made, failed, or not known any more."""
    token = launch.request_id(NAME)
    with pytest.raises(NotYet, match=NAME) as caught:
        Rig().answer(operations({**RUNNING, "clientOperationId": token})).provider.settle_launch(an_attempt())
    assert caught.value.retry_in > timedelta()
    done = Rig().answer(operations(an_operation(clientOperationId="another"), an_operation(clientOperationId=token)))
    assert done.provider.settle_launch(an_attempt()) is None
    assert done.wire.query()["filter"] == f'targetLink eq ".*/instances/({NAME})"'
    assert Rig().answer(operations()).provider.settle_launch(an_attempt()) is None
    gone = failed("ZONE_RESOURCE_POOL_EXHAUSTED", "none left", clientOperationId=token)
    refusal = Rig().answer(operations(gone)).provider.settle_launch(an_attempt())
    assert isinstance(refusal, TryNextZone)
    assert (refusal.code, refusal.message) == ("ZONE_RESOURCE_POOL_EXHAUSTED", "none left")


def test_names_and_request_ids_are_made_of_the_attempt() -> None:
    """The same attempt has the same; an id that is no name becomes one; no two attempts share any."""
    assert launch.machine_name("i-" + "a" * 40) == "i-" + "a" * 40
    odd = [launch.machine_name(text) for text in ("I-Upper", "x" * 64, "i-.", "1")]
    assert all(launch._NAME.fullmatch(name) for name in odd)
    assert len({*odd, *[launch.request_id(name) for name in odd]}) == 8


def test_prepare_fixes_where_the_machine_goes() -> None:
    """Image, zone and the region's own settings; what the settings do not say is left out."""
    image = {"name": "u", "architecture": "X86_64", "diskSizeGb": "10", "status": "READY"}
    rig = Rig().answer(image)
    where = settings({"subnetwork": "jobs", "external_ip": "", "odd": "x"})
    request = rig.provider.prepare(a_candidate(), where, "", {"a": "b"})
    assert request.network == {"zone": ZONE, "subnetwork": "jobs"}
    assert (request.image_id, request.disk_gb, request.own_image) == (
        "projects/ubuntu-os-cloud/global/images/u",
        20,
        False,
    )
    with pytest.raises(TryNextZone, match="no zone"):
        rig.provider.prepare(a_candidate(zone=""), where, "", {})


def test_labels_are_tags_in_the_letters_that_labels_have() -> None:
    """Plain ones are only spelled with hyphens; what would be lost stays in a digest, so that no two meet."""
    tags = {"spotferry:job": "j-1", "Name": "spotferry My Job", "spotferry:label:Team": "A/B", "spotferry:label:a": "b"}
    made = labels.labels(tags)
    assert made["spotferry-job"] == "j-1"
    assert made["spotferry-label-a"] == "b"
    assert all(labels._KEY.fullmatch(key) and labels._VALUE.fullmatch(value) for key, value in made.items())
    assert len(made) == len(tags)
    assert labels.value("A/B") != labels.value("A-B") != labels.value("a-b")
    assert labels.value("a-b") == "a-b"
    assert labels.key("1st").startswith("x-1st")


def test_more_labels_than_a_machine_may_have() -> None:
    """Ours stay; of the job's own as many as there is room for."""
    tags = {f"spotferry:label:l{n:03}": "x" for n in range(100)} | {"spotferry:deployment": "test"}
    made = labels.labels(tags)
    assert len(made) == labels.MOST_LABELS - 1
    assert made[labels.DEPLOYMENT] == "test"


def test_created_at_is_told_with_the_launch() -> None:
    """A machine's start by Google's clock is when its bill begins."""
    made = (
        Rig()
        .answer(an_operation(), a_machine(lastStartTimestamp=NOW.isoformat()))
        .provider.create_instance(an_attempt())
    )
    assert isinstance(made, Attempt)
    assert made.launched_at == NOW
