"""The price list and the sizes of types, case by case."""

from decimal import Decimal

import pytest

from spotferry.providers.aws.pricing_list import endpoint_of, read_prices
from spotferry.providers.aws.pricing_shapes import Shapes, shape_of
from spotferry.types.errors import ProviderError
from tests.unit.providers.aws.price_answers import (
    PriceRig,
    disk,
    fact,
    gpus,
    machine,
    product,
    products_question,
    term,
)
from tests.unit.providers.aws.rig import NOW, REGION


def listed(*entries: str) -> dict[str, Decimal | None]:
    """The prices of machines out of these entries."""
    rig = PriceRig()
    rig.stub("pricing").add_response("get_products", {"PriceList": list(entries)}, products_question())
    rig.stub("pricing").add_response("get_products", {"PriceList": [disk("0.08")]}, products_question(disks=True))
    return dict(read_prices(rig.api, REGION, NOW).machines)


def test_the_price_in_force_is_the_latest_that_has_begun() -> None:
    """Old terms and terms to come stand beside the one that holds."""
    terms = [
        term("3", begins="2099-01-01T00:00:00Z"),
        term("2", begins="2026-01-01T00:00:00Z"),
        term("1", begins="2020-01-01T00:00:00"),
        term("9", begins="soon"),
    ]
    assert listed(product(terms, instanceType="m5.large")) == {"m5.large": Decimal(2)}


def test_of_two_prices_the_dearer_is_believed() -> None:
    """A doubt never makes a machine look cheap, and a price is better than none."""
    entries = [machine("m5.large", "0.1"), machine("m5.large", "0.2"), machine("m5.large", None)]
    assert listed(*entries) == {"m5.large": Decimal("0.2")}


def test_other_operations_and_things_that_are_no_type_are_left_out() -> None:
    """Software that is paid for with the machine, and a family without a size."""
    entries = [machine("m5.large", "0.1"), machine("m5.large", "9", "RunInstances:0010"), machine("m5", "1")]
    assert listed(*entries) == {"m5.large": Decimal("0.1")}


@pytest.mark.parametrize("entry", ["not JSON", "[]", "{}", '{"product": null}'])
def test_an_entry_that_is_no_product_fails_the_region(entry: str) -> None:
    """A list that cannot be read proves nothing."""
    with pytest.raises(ProviderError, match="MalformedAnswer"):
        listed(entry)


def test_a_list_without_machines_fails_the_region() -> None:
    """No region is without machines: an empty list would make on-demand disappear."""
    with pytest.raises(ProviderError, match="NoPriceList"):
        listed()


def test_a_list_that_does_not_end_is_given_up() -> None:
    """The same token again is no next page."""
    rig = PriceRig()
    page = {"PriceList": [machine("m5.large", "0.1")], "NextToken": "again"}
    rig.stub("pricing").add_response("get_products", page, products_question())
    rig.stub("pricing").add_response("get_products", page, products_question(token="again"))
    with pytest.raises(ProviderError, match="does not end"):
        read_prices(rig.api, REGION, NOW)


@pytest.mark.parametrize(
    ("region", "endpoint"),
    [
        ("us-west-2", "us-east-1"),
        ("sa-east-1", "us-east-1"),
        ("eu-north-1", "eu-central-1"),
        ("me-south-1", "eu-central-1"),
        ("ap-southeast-4", "ap-south-1"),
        ("cn-north-1", "cn-northwest-1"),
    ],
)
def test_the_list_is_asked_where_it_is(region: str, endpoint: str) -> None:
    """Few regions have the list; the nearest of them is asked."""
    assert endpoint_of(region) == endpoint


@pytest.mark.parametrize(
    ("known", "arch"),
    [
        (fact("m7g.large", "arm64"), "arm64"),
        (fact("m5.large", "x86_64"), "x86_64"),
        (fact("t2.micro", "i386", "x86_64"), "x86_64"),
        (fact("m1.small", "i386"), None),
        (fact("mac2.metal", "arm64_mac"), None),
        (fact("m5.large", vcpus=0), None),
        (fact("m5.large", memory_mib=0), None),
    ],
)
def test_only_what_runs_our_linux_has_a_size(known: dict[str, object], arch: str | None) -> None:
    """Macs, machines of 32 bits and types without a size are no machines of ours."""
    shape = shape_of(known)
    assert (shape.arch if shape else None) == arch


@pytest.mark.parametrize(
    ("has", "name", "count", "vram"),
    [
        (gpus("T4", 4, 16_384), "T4", 4, 65_536),
        (gpus("V100", 8, 32_768), "V100-32GB", 8, 262_144),
        (gpus("V100", 8, 16_384), "V100", 8, 131_072),
        (gpus("L4", 0, 2_861), "", 0, 0),
        ({"Gpus": []}, "", 0, 0),
    ],
)
def test_gpus_are_named_as_price_lists_name_them(has: dict[str, object], name: str, count: int, vram: int) -> None:
    """The larger memory of two is in the name; a share of a GPU is none."""
    shape = shape_of(fact("g.large", gpus=has))
    assert shape is not None
    assert (shape.gpu_name, shape.gpu_count, shape.vram_mib) == (name, count, vram)


def test_memory_of_gpus_is_added_up_where_the_total_is_missing() -> None:
    """The total is what EC2 says, else the sum."""
    shape = shape_of(fact("g.large", gpus=gpus("T4", 4, 16_384) | {"TotalGpuMemoryInMiB": 0}))
    assert shape is not None
    assert shape.vram_mib == 65_536


def test_a_type_that_ec2_does_not_know_does_not_hide_the_others() -> None:
    """One wrong name fails the call for all: the whole list is asked for then."""
    rig = PriceRig()
    rig.stub().add_client_error("describe_instance_types", "InvalidInstanceType", "do not exist: [x9.huge]", 400)
    rig.stub().add_response("describe_instance_types", {"InstanceTypes": [fact("m5.large")]}, {"MaxResults": 100})
    shapes = Shapes().of(rig.api.begin(REGION), ["m5.large", "x9.huge"])
    assert list(shapes) == ["m5.large"]


def test_another_refusal_of_sizes_fails() -> None:
    """Only the wrong name has a way around it."""
    rig = PriceRig()
    rig.stub().add_client_error("describe_instance_types", "UnauthorizedOperation", "not you", 403)
    with pytest.raises(ProviderError):
        Shapes().of(rig.api.begin(REGION), ["m5.large"])
