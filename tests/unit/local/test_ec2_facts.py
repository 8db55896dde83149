"""What the EC2 face knows by itself: image ids, sizes, offerings, and the shape of its protocol."""

from __future__ import annotations

import boto3
import pytest
from botocore.parsers import EC2QueryParser

from local.aws_facts import offered_types, public_image, public_image_id, shape_of
from local.ec2_wire import Ec2Error, Params, credential_scope, render, render_error

AMD = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
ARM = AMD.replace("amd64", "arm64")
GPU = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"


def test_a_public_image_is_recognised_by_its_id_alone() -> None:
    """Architecture, GPU and snapshot size come back from the id; regions have ids of their own."""
    images = [public_image("eu-west-1", public_image_id("eu-west-1", name)) for name in (AMD, ARM, GPU)]
    facts = [(image.arch, image.gpu, image.snapshot_gib) for image in images if image]
    assert facts == [("x86_64", False, 8), ("arm64", False, 8), ("x86_64", True, 35)]
    assert public_image_id("eu-west-1", AMD) != public_image_id("us-east-1", AMD)
    assert public_image_id("eu-west-1", AMD) == public_image_id("eu-west-1", AMD)


@pytest.mark.parametrize("image_id", ["ami-12345678", "ami-0123456789abcdef0", "ami-", "snap-0123456789abcdef0", "x"])
def test_other_image_ids_are_not_mistaken_for_public_ones(image_id: str) -> None:
    """Only ids that were handed out are known."""
    assert public_image("eu-west-1", image_id) is None


def test_an_image_of_another_region_is_unknown() -> None:
    """Image ids are regional."""
    assert public_image("us-east-1", public_image_id("eu-west-1", AMD)) is None


@pytest.mark.parametrize(
    ("instance_type", "vcpus", "memory_mib", "gpus", "family", "arch"),
    [
        ("m5.xlarge", 4, 16384, 0, "Standard", "x86_64"),
        ("m7g.large", 2, 8192, 0, "Standard", "arm64"),
        ("g4dn.xlarge", 4, 16384, 1, "G and VT", "x86_64"),
        ("p4d.24xlarge", 96, 1179648, 8, "P", "x86_64"),
        ("x1.16xlarge", 64, 999424, 0, "X", "x86_64"),
        ("inf1.xlarge", 4, 8192, 0, "Inf", "x86_64"),
    ],
)
def test_sizes_and_quota_families_are_the_real_ones(
    instance_type: str, vcpus: int, memory_mib: int, gpus: int, family: str, arch: str
) -> None:
    """Types have their real size and are counted in their real family."""
    shape = shape_of(instance_type)
    assert shape is not None
    assert (shape.vcpus, shape.memory_mib, shape.gpus, shape.quota_family, shape.arch) == (
        vcpus,
        memory_mib,
        gpus,
        family,
        arch,
    )


def test_unknown_types_and_regions_are_told_apart_from_known_ones() -> None:
    """No such type is None, no such region offers nothing, and offerings differ by zone."""
    assert shape_of("m5.gigantic") is None
    assert offered_types("mars-north-1") == {}
    assert "m5.large" in offered_types("us-east-1")["us-east-1a"]
    assert "m5.large" not in offered_types("us-east-1")["us-east-1e"]


def test_parameters_are_read_by_their_wire_names() -> None:
    """Lists come in the order of their numbers, structures nest, wrong numbers are refused."""
    params = Params.from_form(b"InstanceId.2=b&InstanceId.10=c&InstanceId.1=a&Filter.1.Name=n&Filter.1.Value.1=v&Max=x")
    assert params.texts("InstanceId") == ["a", "b", "c"]
    [only] = params.structs("Filter")
    assert (only.text("Name"), only.texts("Value")) == ("n", ["v"])
    with pytest.raises(Ec2Error, match="not an integer"):
        params.integer("Max")


def test_answers_are_read_back_by_the_official_parser() -> None:
    """What is rendered comes out of botocore as it went in, errors too."""
    model = boto3.Session().client("ec2", region_name="us-east-1").meta.service_model
    shape = model.operation_model("TerminateInstances").output_shape
    body = render("TerminateInstances", "r-1", {"TerminatingInstances": [{"InstanceId": "i-1<&>"}]})
    parsed = EC2QueryParser().parse({"status_code": 200, "headers": {}, "body": body}, shape)
    assert parsed["TerminatingInstances"] == [{"InstanceId": "i-1<&>"}]
    error = render_error(Ec2Error("Unsupported", "no"), "r-2")
    parsed = EC2QueryParser().parse({"status_code": 400, "headers": {}, "body": error}, shape)
    assert parsed["Error"] == {"Code": "Unsupported", "Message": "no"}


def test_the_region_comes_from_the_signature() -> None:
    """Key and region stand in the credential scope; anything else is unsigned."""
    header = "AWS4-HMAC-SHA256 Credential=AKIA/20261201/eu-south-2/ec2/aws4_request, SignedHeaders=host, Signature=0"
    assert credential_scope(header) == ("AKIA", "eu-south-2")
    assert credential_scope("Basic abc") is None
