"""Every refusal of RunInstances, line by line, through the adapter."""

from datetime import timedelta

import pytest
from botocore import exceptions as vendor
from botocore.parsers import ResponseParserError

from spotferry.providers.aws.errors import (
    LAUNCH_ERROR_FAMILIES,
    LAUNCH_ERRORS,
    REQUEST_MISMATCH,
    VendorError,
    call_error,
    launch_error,
)
from spotferry.types.errors import (
    CapacityError,
    LaunchRefused,
    ProviderError,
    ProviderUnavailable,
    SkipProvider,
    TryAgainLater,
    TryNextRegion,
    TryNextType,
    TryNextZone,
    UnknownLaunchError,
)
from tests.unit.providers.aws.rig import Rig, an_attempt

ZERO, MINUTES_3, MINUTES_10, MINUTES_15 = (timedelta(minutes=m) for m in (0, 3, 10, 15))
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

TABLE: list[tuple[str, type[CapacityError], str, timedelta]] = [
    ("InsufficientInstanceCapacity", TryNextZone, "pool", MINUTES_3),
    ("UnfulfillableCapacity", TryNextZone, "pool", MINUTES_3),
    ("InsufficientCapacity", TryNextZone, "pool", MINUTES_3),
    ("InsufficientHostCapacity", TryNextZone, "pool", MINUTES_3),
    ("InsufficientReservedInstanceCapacity", TryNextZone, "pool", MINUTES_3),
    ("ReservationCapacityExceeded", TryNextZone, "pool", MINUTES_3),
    ("SpotMaxPriceTooLow", TryNextZone, "pool", MINUTES_3),
    ("Unsupported", TryNextZone, "pool", DAY),
    ("InsufficientFreeAddressesInSubnet", TryNextZone, "zone", MINUTES_10),
    ("InvalidAvailabilityZone", TryNextZone, "zone", MINUTES_10),
    ("MaxSpotInstanceCountExceeded", TryNextRegion, "region", MINUTES_10),
    ("VcpuLimitExceeded", TryNextRegion, "region", MINUTES_10),
    ("InstanceLimitExceeded", TryNextRegion, "region", MINUTES_10),
    ("MaxFleetCountExceeded", TryNextRegion, "region", MINUTES_10),
    ("VolumeLimitExceeded", TryNextRegion, "region", MINUTES_10),
    ("MaxIOPSLimitExceeded", TryNextRegion, "region", MINUTES_10),
    ("RequestLimitExceeded", TryAgainLater, "none", ZERO),
    ("Throttling", TryAgainLater, "none", ZERO),
    ("ThrottlingException", TryAgainLater, "none", ZERO),
    ("EC2ThrottledException", TryAgainLater, "none", ZERO),
    ("RequestThrottled", TryAgainLater, "none", ZERO),
    ("InternalError", TryAgainLater, "none", ZERO),
    ("InternalFailure", TryAgainLater, "none", ZERO),
    ("ServerInternal", TryAgainLater, "none", ZERO),
    ("ServiceUnavailable", TryAgainLater, "none", ZERO),
    ("Unavailable", TryAgainLater, "none", ZERO),
    ("UnauthorizedOperation", SkipProvider, "provider", MINUTES_15),
    ("OperationNotPermitted", SkipProvider, "provider", MINUTES_15),
    ("AccessDenied", SkipProvider, "provider", MINUTES_15),
    ("AccessDeniedException", SkipProvider, "provider", MINUTES_15),
    ("AuthFailure", SkipProvider, "provider", MINUTES_15),
    ("AuthFailure.ServiceLinkedRoleCreationNotPermitted", SkipProvider, "provider", MINUTES_15),
    ("InvalidClientTokenId", SkipProvider, "provider", MINUTES_15),
    ("UnrecognizedClientException", SkipProvider, "provider", MINUTES_15),
    ("MissingAuthenticationToken", SkipProvider, "provider", MINUTES_15),
    ("SignatureDoesNotMatch", SkipProvider, "provider", MINUTES_15),
    ("ExpiredToken", SkipProvider, "provider", MINUTES_15),
    ("ExpiredTokenException", SkipProvider, "provider", MINUTES_15),
    ("RequestExpired", SkipProvider, "provider", MINUTES_15),
    ("Blocked", SkipProvider, "provider", MINUTES_15),
    ("PendingVerification", TryNextRegion, "region", HOUR),
    ("OptInRequired", TryNextRegion, "region", HOUR),
    ("InvalidAMIID.NotFound", LaunchRefused, "region", HOUR),
    ("InvalidAMIID.Unavailable", LaunchRefused, "region", HOUR),
    ("InvalidSubnetID.NotFound", LaunchRefused, "region", HOUR),
    ("InvalidGroup.NotFound", LaunchRefused, "region", HOUR),
    ("InvalidSecurityGroupID.NotFound", LaunchRefused, "region", HOUR),
    ("InvalidKeyPair.NotFound", LaunchRefused, "region", HOUR),
    ("InvalidKMSKey.InvalidState", LaunchRefused, "region", HOUR),
    ("InvalidIamInstanceProfileArn.Malformed", LaunchRefused, "region", HOUR),
    ("InvalidLaunchTemplateId.NotFound", LaunchRefused, "region", HOUR),
    ("InvalidParameterValue", LaunchRefused, "region", HOUR),
    ("InvalidParameterCombination", LaunchRefused, "region", HOUR),
    ("InvalidParameter", LaunchRefused, "region", HOUR),
    ("MissingParameter", LaunchRefused, "region", HOUR),
    ("UnsupportedOperation", LaunchRefused, "region", HOUR),
    ("VPCIdNotSpecified", LaunchRefused, "region", HOUR),
    ("VPCResourceNotSpecified", LaunchRefused, "region", HOUR),
    ("InvalidUserData.Malformed", LaunchRefused, "none", ZERO),
    ("InvalidBlockDeviceMapping", LaunchRefused, "none", ZERO),
    ("InvalidInstanceType", LaunchRefused, "pool", DAY),
]
LOOKED_UP: dict[str, type[ProviderError]] = {
    REQUEST_MISMATCH: ProviderUnavailable,
    "IdempotentInstanceTerminated": TryNextZone,
}
"""Refusals that say that the token bought a machine before."""


def refused(code: str, message: str = "words", status: int = 400) -> vendor.ClientError:
    """EC2's refusal as the SDK raises it."""
    return vendor.ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]  # the other metadata is not read
        "RunInstances",
    )


@pytest.mark.parametrize(("code", "error", "scope", "ban_for"), TABLE, ids=[line[0] for line in TABLE])
def test_each_line_of_the_table(code: str, error: type[CapacityError], scope: str, ban_for: timedelta) -> None:
    """A refused launch raises the class of its line, with scope, ban, and the cloud's code, words and region."""
    rig = Rig()
    for _ in range(5):
        rig.stub().add_client_error("run_instances", code, "the cloud's words", 400)
    with pytest.raises(ProviderError) as caught:
        rig.provider.create_instance(an_attempt())
    raised = caught.value
    assert type(raised) is error
    assert isinstance(raised, CapacityError)
    assert (raised.scope, raised.ban_for) == (scope, ban_for)
    assert (raised.code, raised.message, raised.region) == (code, "the cloud's words", "us-east-1")


@pytest.mark.parametrize("code", [line[0] for line in TABLE if line[1] is not TryAgainLater])
def test_a_verdict_is_not_asked_for_again(code: str) -> None:
    """EC2 tells a stockout with status 500: each repeat of a refusal would cost seconds that the next pool should
    have.
    """
    rig = Rig()
    rig.stub().add_client_error("run_instances", code, "the cloud's words", 500)
    with pytest.raises(CapacityError):
        rig.provider.create_instance(an_attempt())
    assert rig.time.seconds == 0


def test_no_line_is_left_out() -> None:
    """Every code and every family of codes in the product's table is walked here."""
    walked = {line[0] for line in TABLE} | set(LOOKED_UP)
    assert set(LAUNCH_ERRORS) <= walked
    assert all(any(code.startswith(family) for code in walked) for family in LAUNCH_ERROR_FAMILIES)
    known = {*LAUNCH_ERRORS, REQUEST_MISMATCH}
    assert all(code in known or code.startswith(tuple(LAUNCH_ERROR_FAMILIES)) for code in walked)


@pytest.mark.parametrize(("code", "error"), LOOKED_UP.items())
def test_a_token_that_bought_nothing_that_is_shown(code: str, error: type[ProviderError]) -> None:
    """A machine that ended is gone; one bought with another request may run unseen: the question stays open."""
    rig = Rig()
    rig.stub().add_client_error("run_instances", code, "used", 400)
    rig.stub().add_response("describe_instances", {"Reservations": []})
    with pytest.raises(error) as caught:
        rig.provider.create_instance(an_attempt())
    assert type(caught.value) is error
    assert caught.value.code == code
    rig.done()


@pytest.mark.parametrize("prefix", ["Server.", "Client."])
def test_prefixes_do_not_hide_a_code(prefix: str) -> None:
    """Codes with the prefix that EC2 puts before them elsewhere are the same codes."""
    raised = launch_error(refused(f"{prefix}InsufficientInstanceCapacity"), "us-east-1", "m5.large")
    assert type(raised) is TryNextZone


def test_an_unknown_code_is_its_own_class() -> None:
    """A code that no table knows sets its pool aside, and keeps the cloud's code and words."""
    raised = launch_error(refused("SomethingNew", "never seen"), "us-east-1", "m5.large")
    assert isinstance(raised, UnknownLaunchError)
    assert (raised.code, raised.message, raised.scope) == ("SomethingNew", "never seen", "pool")


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_unknown_code_of_a_failing_service_is_tried_again(status: int) -> None:
    """A 5xx says nothing about the pool, whatever code comes with it."""
    assert type(launch_error(refused("Odd", status=status), "us-east-1", "m5.large")) is TryAgainLater
    assert type(call_error(refused("Odd", status=status), "us-east-1")) is ProviderUnavailable


SCP = "User: x is not authorized to perform: ec2:RunInstances with an explicit deny in a service control policy"


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "AccessDenied", "AccessDeniedException"])
def test_an_organisations_denial_closes_the_region_not_the_cloud(code: str) -> None:
    """A denial by policy is as wide as its condition: the other regions are tried."""
    for raised in (
        launch_error(refused(code, SCP), "eu-west-1", "m5.large"),
        call_error(refused(code, SCP), "eu-west-1"),
    ):
        assert isinstance(raised, TryNextRegion)
        assert (raised.scope, raised.region) == ("region", "eu-west-1")


def test_a_missing_permission_closes_the_cloud() -> None:
    """Without an allow the broker may launch nowhere: the cloud is skipped."""
    words = "You are not authorized: no identity-based policy allows the ec2:RunInstances action"
    assert type(launch_error(refused("UnauthorizedOperation", words), "eu-west-1", "m5.large")) is SkipProvider


@pytest.mark.parametrize("code", ["AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException"])
def test_credentials_refused_where_a_region_must_be_enabled(code: str) -> None:
    """A region that is off by default refuses good credentials: only that region is set aside."""
    assert type(launch_error(refused(code), "ap-east-1", "m5.large")) is TryNextRegion
    assert type(launch_error(refused(code), "us-west-2", "m5.large")) is SkipProvider


@pytest.mark.parametrize("code", ["MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded"])
@pytest.mark.parametrize(
    ("instance_type", "error", "scope"),
    [
        ("m5.large", TryNextRegion, "region"),
        ("c7g.xlarge", TryNextRegion, "region"),
        ("t3.micro", TryNextRegion, "region"),
        ("g5.xlarge", TryNextType, "family"),
        ("p4d.24xlarge", TryNextType, "family"),
        ("inf2.xlarge", TryNextType, "family"),
        ("trn1.2xlarge", TryNextType, "family"),
        ("x2idn.16xlarge", TryNextType, "family"),
        ("dl1.24xlarge", TryNextType, "family"),
        ("hpc6a.48xlarge", TryNextType, "family"),
        ("vt1.3xlarge", TryNextType, "family"),
    ],
)
def test_a_quota_reaches_as_far_as_its_counter(
    code: str, instance_type: str, error: type[CapacityError], scope: str
) -> None:
    """The quota that most types share closes the region; that of GPUs and the like only their family there."""
    raised = launch_error(refused(code), "us-east-1", instance_type)
    assert isinstance(raised, error)
    assert raised.scope == scope


def test_an_image_that_must_be_subscribed_to_is_the_jobs_own_trouble() -> None:
    """A marketplace image that was not subscribed to closes no region to others."""
    words = "In order to use this AWS Marketplace product you need to accept terms and subscribe"
    raised = launch_error(refused("OptInRequired", words), "us-east-1", "m5.large")
    assert isinstance(raised, LaunchRefused)
    assert raised.scope == "none"


def answerless(kind: type[Exception], **fields: object) -> VendorError:
    """An exception of the SDK itself."""
    made = kind(**fields)
    assert isinstance(made, vendor.BotoCoreError | ResponseParserError)
    return made


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (answerless(vendor.EndpointConnectionError, endpoint_url="https://x"), ProviderUnavailable),
        (answerless(vendor.ConnectTimeoutError, endpoint_url="https://x"), ProviderUnavailable),
        (answerless(vendor.ReadTimeoutError, endpoint_url="https://x"), ProviderUnavailable),
        (answerless(vendor.ConnectionClosedError, endpoint_url="https://x"), ProviderUnavailable),
        (answerless(vendor.SSLError, endpoint_url="https://x", error="bad"), ProviderUnavailable),
        (answerless(vendor.IncompleteReadError, actual_bytes=1, expected_bytes=2), ProviderUnavailable),
        (ResponseParserError("not XML"), ProviderUnavailable),
        (answerless(vendor.NoCredentialsError), SkipProvider),
        (answerless(vendor.PartialCredentialsError, provider="env", cred_var="x"), SkipProvider),
        (answerless(vendor.CredentialRetrievalError, provider="role", error_msg="x"), SkipProvider),
        (answerless(vendor.TokenRetrievalError, provider="sso", error_msg="x"), SkipProvider),
        (answerless(vendor.UnauthorizedSSOTokenError), SkipProvider),
        (answerless(vendor.ProfileNotFound, profile="x"), SkipProvider),
        (answerless(vendor.ParamValidationError, report="x"), LaunchRefused),
        (answerless(vendor.NoRegionError), LaunchRefused),
        (answerless(vendor.UnknownServiceError, service_name="x", known_service_names="y"), UnknownLaunchError),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_the_sdks_own_exceptions(error: VendorError, expected: type[ProviderError]) -> None:
    """Whatever the SDK raises without an answer becomes an error of ours, named after it."""
    raised = launch_error(error, "us-east-1", "m5.large")
    assert type(raised) is expected
    assert raised.code == type(error).__name__


def test_other_calls_keep_only_denials_apart() -> None:
    """Outside of launches, throttling is no verdict, a denial keeps its class, the rest is a plain provider error."""
    assert type(call_error(refused("RequestLimitExceeded"), "us-east-1")) is ProviderUnavailable
    assert type(call_error(refused("UnauthorizedOperation"), "us-east-1")) is SkipProvider
    assert type(call_error(vendor.NoCredentialsError(), "us-east-1")) is SkipProvider
    assert type(call_error(refused("OptInRequired"), "us-east-1")) is TryNextRegion
    assert type(call_error(refused("InvalidInstanceID.NotFound"), "us-east-1")) is ProviderError
