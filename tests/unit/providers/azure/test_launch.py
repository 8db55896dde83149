"""The PUT of a machine, to the letter."""

import base64
from decimal import Decimal

import pytest

from spotferry.providers.azure import launch, names
from spotferry.providers.azure.images import Image
from spotferry.types.errors import LaunchRefused
from tests.unit.providers.azure.rig import GROUP, IMAGE, SUBNET, TOKEN, a_launch, an_attempt, settings

UBUNTU = Image(IMAGE, "x86_64", 30)


def test_the_body_of_a_spot_machine() -> None:
    """One PUT makes the machine with its disk, interface and address, and all of them are deleted with it."""
    body = launch.machine(an_attempt(), a_launch(), "#!/bin/sh\ntrue\n")
    place = {
        "primary": True,
        "subnet": {"id": SUBNET},
        "publicIPAddressConfiguration": {
            "name": f"{TOKEN}-ip",
            "sku": {"name": "Standard", "tier": "Regional"},
            "properties": {"deleteOption": "Delete", "publicIPAllocationMethod": "Static"},
        },
    }
    assert body == {
        "location": "eastus",
        "zones": ["1"],
        "tags": {"spotferry:deployment": "test", "spotferry:job": "j-1"},
        "properties": {
            "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
            "priority": "Spot",
            "evictionPolicy": "Delete",
            "billingProfile": {"maxPrice": -1},
            "storageProfile": {
                "imageReference": {
                    "publisher": "Canonical",
                    "offer": "ubuntu-24_04-lts",
                    "sku": "server",
                    "version": "24.04.1",
                },
                "osDisk": {
                    "name": f"{TOKEN}-disk",
                    "createOption": "FromImage",
                    "deleteOption": "Delete",
                    "caching": "ReadWrite",
                    "diskSizeGB": 40,
                    "managedDisk": {"storageAccountType": "StandardSSD_LRS"},
                },
            },
            "osProfile": {
                "computerName": TOKEN,
                "adminUsername": "spotferry",
                "customData": base64.b64encode(b"#!/bin/sh\ntrue\n").decode(),
                "linuxConfiguration": {
                    "disablePasswordAuthentication": True,
                    "ssh": {
                        "publicKeys": [
                            {"path": "/home/spotferry/.ssh/authorized_keys", "keyData": launch.NOBODYS_KEY},
                        ]
                    },
                },
            },
            "networkProfile": {
                "networkApiVersion": "2022-11-01",
                "networkInterfaceConfigurations": [
                    {
                        "name": f"{TOKEN}-nic",
                        "properties": {
                            "primary": True,
                            "deleteOption": "Delete",
                            "ipConfigurations": [{"name": f"{TOKEN}-place", "properties": place}],
                        },
                    }
                ],
            },
        },
    }


def test_a_machine_on_demand_has_no_spot_properties() -> None:
    """Neither priority nor price nor eviction: Azure refuses them there."""
    capped = a_launch(max_price_usd_hour=Decimal("0.1"))
    properties = launch.machine(an_attempt(market="on_demand"), capped, "")["properties"]
    assert isinstance(properties, dict)
    assert not {"priority", "evictionPolicy", "billingProfile"} & set(properties)


def test_what_settings_may_add() -> None:
    """An identity, no address of its own, no zone, an image by its id or with a plan."""
    network = {"resource_group": GROUP, "subnet_id": SUBNET, "identity_id": "/an/identity", "public_ip": "no"}
    body = launch.machine(an_attempt(), a_launch(network=network, image_id="/an/image"), "")
    assert body["identity"] == {"type": "UserAssigned", "userAssignedIdentities": {"/an/identity": {}}}
    assert "zones" not in body
    assert "publicIPAddressConfiguration" not in str(body)
    assert "'imageReference': {'id': '/an/image'}" in str(body)
    planned = launch.fixed_request(
        Image("p:o:s:1", "", 30, "pub:prod:name"),
        30,
        {"resource_group": GROUP, "subnet_id": SUBNET},
        {},
        own_image=True,
    )
    body = launch.machine(an_attempt(), planned, "")
    assert body["plan"] == {"publisher": "pub", "product": "prod", "name": "name"}


@pytest.mark.parametrize(
    ("cap", "price"),
    [("0.1", 0.1), ("0.123456789", 0.12345), ("0.0000001", 0.00001), ("1.6666666666666666", 1.66666)],
)
def test_a_cap_is_written_with_five_decimals_and_never_above(cap: str, price: float) -> None:
    """Azure takes no more of them; a cap of nothing would be no price."""
    body = launch.machine(an_attempt(), a_launch(max_price_usd_hour=Decimal(cap)), "")
    properties = body["properties"]
    assert isinstance(properties, dict)
    assert properties["billingProfile"] == {"maxPrice": price}


def test_the_same_attempt_makes_the_same_bytes() -> None:
    """A repeat is the same request."""
    assert launch.machine(an_attempt(), a_launch(), "x") == launch.machine(an_attempt(), a_launch(), "x")


def test_user_data_at_and_above_the_limit() -> None:
    """Bytes count, not characters."""
    launch.machine(an_attempt(), a_launch(), "x" * launch.USER_DATA_LIMIT_BYTES)
    with pytest.raises(LaunchRefused, match="65536 bytes"):
        launch.machine(an_attempt(), a_launch(), "é" * (launch.USER_DATA_LIMIT_BYTES // 2) + "xx")


@pytest.mark.parametrize("name", ["i_1", "-i", "i-", "i" * 65, "ü", ""])
def test_names_that_azure_would_not_take(name: str) -> None:
    """They are refused before anything is asked."""
    with pytest.raises(LaunchRefused, match="name"):
        launch.machine(an_attempt(cedana_id=name), a_launch(), "")


@pytest.mark.parametrize("missing", ["resource_group", "subnet_id"])
def test_a_region_without_a_network_is_refused_by_name(missing: str) -> None:
    """Azure has no default network: the operator reads what to set."""
    region = settings()
    network = {key: value for key, value in region.network.items() if key != missing}
    with pytest.raises(LaunchRefused, match=missing) as caught:
        launch.network(region.model_copy(update={"network": network}), "1")
    assert caught.value.scope == "region"


def test_the_network_is_fixed_with_its_zone() -> None:
    """What is set is kept; a region without zones has none."""
    assert launch.network(settings(), "2") == {"resource_group": GROUP, "subnet_id": SUBNET, "zone": "2"}
    assert "zone" not in launch.network(settings(), "")


def test_tags_keep_azures_rules() -> None:
    """Forbidden characters are replaced, what is too long is cut, case does not tell names apart, ours come first."""
    wanted = {f"spotferry:label:l{n}": "v" for n in range(60)}
    wanted |= {"spotferry:label:a/b?c": "x" * 300, "spotferry:deployment": "d", "Name": "n", "name": "m"}
    made = names.tags(wanted)
    assert len(made) == 50
    assert made["spotferry:deployment"] == "d"
    assert made["Name"] == "n"
    assert "name" not in made
    assert made["spotferry:label:a_b_c"] == "x" * 256
    assert names.carries({"SPOTFERRY:Deployment": "d", "other": "x"}, {"spotferry:deployment": "d"})
    assert not names.carries({"spotferry:deployment": "D"}, {"spotferry:deployment": "d"})


@pytest.mark.parametrize(
    ("resource", "place"),
    [
        ("/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/N", ("g", "n")),
        ("/SUBSCRIPTIONS/s/RESOURCEGROUPS/G/providers/microsoft.compute/virtualmachines/N/x/y", ("g", "n")),
        ("/subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachineScaleSets/N", None),
        ("", None),
    ],
)
def test_ids_of_machines(resource: str, place: tuple[str, str] | None) -> None:
    """Group and name, whatever the case; anything else is no machine."""
    assert names.vm_id(resource) == place
