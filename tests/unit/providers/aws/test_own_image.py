"""A job's own image is its own trouble: what is wrong with it closes nothing to other jobs."""

from datetime import timedelta

import pytest

from spotferry.providers.aws.errors import launch_error
from spotferry.types.errors import CapacityError, LaunchRefused
from tests.unit.providers.aws.rig import Rig, a_launch, an_attempt
from tests.unit.providers.aws.test_errors import refused

ARCHITECTURE = "The architecture 'arm64' of the specified instance type does not match the architecture of the AMI"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("InvalidAMIID.NotFound", "The image id does not exist"),
        ("InvalidAMIID.Unavailable", "gone"),
        ("InvalidParameterCombination", "Enhanced networking with the Elastic Network Adapter (ENA) is required"),
        ("UnsupportedOperation", "The instance type does not support UEFI"),
        ("InvalidParameterValue", ARCHITECTURE),
        ("InvalidParameter", "the image's boot mode is not known"),
        ("Unsupported", "The boot mode of the AMI is not supported by the instance type"),
        ("Client.InvalidAMIID.NotFound", "The image id does not exist"),
    ],
)
def test_what_is_wrong_with_a_jobs_own_image_closes_nothing_to_others(code: str, words: str) -> None:
    """The same refusal reaches as far as before when the image is the operator's or the vendor's."""
    own = launch_error(refused(code, words), "us-east-1", "m5.large", own_image=True)
    assert isinstance(own, LaunchRefused)
    assert (own.scope, own.ban_for, own.code, own.message) == ("none", timedelta(), code, words)
    common = launch_error(refused(code, words), "us-east-1", "m5.large")
    assert isinstance(common, CapacityError)
    assert common.scope in {"region", "pool"}


@pytest.mark.parametrize(
    ("code", "words", "scope"),
    [
        ("InvalidParameterValue", "Value (p) for parameter iamInstanceProfile.arn is invalid", "region"),
        ("InvalidSubnetID.NotFound", "The subnet of the image does not exist", "region"),
        ("Unsupported", "Your requested instance type is not supported in your requested Availability Zone", "pool"),
        ("InsufficientInstanceCapacity", "no capacity for this image", "pool"),
        ("UnauthorizedOperation", "not authorized to use this image", "provider"),
    ],
)
def test_a_jobs_own_image_is_not_blamed_for_the_rest(code: str, words: str, scope: str) -> None:
    """A refusal that has nothing to do with the image is everybody's, and is no reason to end the job."""
    raised = launch_error(refused(code, words), "us-east-1", "m5.large", own_image=True)
    assert isinstance(raised, CapacityError)
    assert raised.scope == scope


def test_the_fixed_request_tells_whose_image_it_is() -> None:
    """Through the adapter: the launch of a job's own image is judged as such."""
    for own_image, scope in ((True, "none"), (False, "region")):
        rig = Rig()
        rig.stub().add_client_error("run_instances", "InvalidAMIID.NotFound", "gone", 400)
        with pytest.raises(LaunchRefused) as caught:
            rig.provider.create_instance(an_attempt(launch=a_launch(own_image=own_image)))
        assert caught.value.scope == scope
