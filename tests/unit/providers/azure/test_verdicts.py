"""Every refusal of Azure, line by line."""

from datetime import timedelta

import pytest

from spotferry.providers.azure.errors import Failure, call_error, launch_error, operation_error, words_of
from spotferry.providers.azure.verdicts import LAUNCH_ERRORS, OPERATION_ERRORS, QUOTAS, REFINEMENTS
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

ZERO, MINUTES_3, MINUTES_10, MINUTES_15 = (timedelta(minutes=m) for m in (0, 3, 10, 15))
HOUR, HOURS_23, DAY, MONTH = timedelta(hours=1), timedelta(hours=23), timedelta(hours=24), timedelta(days=30)
Row = tuple[str, type[CapacityError], str, timedelta]

TABLE: list[Row] = [
    ("SkuNotAvailable", TryNextRegion, "size", HOUR),
    ("AllocationFailed", TryNextRegion, "size", HOUR),
    ("OverconstrainedAllocationRequest", TryNextRegion, "size", HOUR),
    ("ZonalAllocationFailed", TryNextZone, "pool", HOUR),
    ("OverconstrainedZonalAllocationRequest", TryNextZone, "pool", HOUR),
    ("NotAvailableForSubscription", TryNextRegion, "size", HOURS_23),
    ("SpotPriceGreaterThanProvidedMaxPrice", TryNextZone, "pool", MINUTES_10),
    ("AzureSpotIsNotSupportedForThisVMSize", TryNextType, "size", MONTH),
    ("PublicIPCountLimitReached", TryNextRegion, "region", MINUTES_10),
    ("SubnetIsFull", TryNextRegion, "region", MINUTES_10),
    ("RequestDisallowedByAzure", TryNextRegion, "region", HOUR),
    ("LocationNotAvailableForResourceType", TryNextRegion, "region", HOUR),
    ("LocationNotAvailableForResourceGroup", TryNextRegion, "region", HOUR),
    ("NoRegisteredProviderFound", TryNextRegion, "region", HOUR),
    ("ScopeLocked", TryNextRegion, "region", HOUR),
    *(
        (code, SkipProvider, "provider", MINUTES_15)
        for code in (
            "AzureSpotFeatureNotEnabledForSubscription",
            "ReadOnlyDisabledSubscription",
            "SubscriptionNotFound",
            "InvalidSubscriptionId",
            "SubscriptionNotRegistered",
            "MissingSubscriptionRegistration",
            "AuthorizationFailed",
            "AuthenticationFailed",
            "AuthenticationFailedMissingToken",
            "AuthenticationFailedInvalidHeader",
            "InvalidAuthenticationToken",
            "InvalidAuthenticationTokenTenant",
            "ExpiredAuthenticationToken",
            "ClientAuthenticationError",
            "CredentialUnavailableError",
        )
    ),
    *(
        (code, LaunchRefused, "region", HOUR)
        for code in (
            "ResourceTypeNotSupportAvailabilityZones",
            "LinkedAuthorizationFailed",
            "ResourceGroupNotFound",
            "ResourceGroupBeingDeleted",
            "ParentResourceNotFound",
            "InvalidResourceReference",
            "LinkedInvalidPropertyId",
            "FailedIdentityOperation",
            "PlatformImageNotFound",
            "ImageNotFound",
            "GalleryImageNotFound",
            "ImageVersionDeprecated",
            "ResourcePurchaseValidationFailed",
            "MarketplacePurchaseEligibilityFailed",
            "VMMarketplaceInvalidInput",
            "InvalidParameter",
            "InvalidParameterValue",
            "InvalidRequestContent",
            "InvalidRequestFormat",
            "InvalidApiVersionParameter",
            "VMPriorityCannotBeApplied",
            "AzureSpotIsNotSupportedForThisAPIVersion",
            "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines",
            "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines",
        )
    ),
    ("MaxPriceValueInvalid", LaunchRefused, "none", ZERO),
    ("ResizeDiskError", LaunchRefused, "none", ZERO),
    ("InvalidCustomData", LaunchRefused, "none", ZERO),
    *(
        (code, TryAgainLater, "none", ZERO)
        for code in (
            "TooManyRequests",
            "SubscriptionRequestsThrottled",
            "ServerTimeout",
            "GatewayTimeout",
            "RequestTimeout",
            "ServiceUnavailable",
            "ServerBusy",
            "InternalServerError",
            "InternalExecutionError",
            "InternalOperationError",
            "NetworkingInternalOperationError",
            "RetryableError",
            "RetryableErrorDueToAnotherOperation",
            "AnotherOperationInProgress",
            "Conflict",
        )
    ),
]

_EXCEEDS = "Operation could not be completed as it results in exceeding approved {} quota. Additional details - {}."
_DETAILS = "Deployment Model: Resource Manager, Location: eastus, Current Limit: {}, Current Usage: {}"

BY_WORDS: list[tuple[str, str, type[CapacityError], str, timedelta]] = [
    *(
        (code, _EXCEEDS.format(quota, _DETAILS.format(limit, limit)), error, scope, ban)
        for code in ("OperationNotAllowed", "QuotaExceeded")
        for quota, limit, error, scope, ban in (
            ("LowPriorityCores", 3, TryNextRegion, "region", HOUR),
            ("LowPriorityCores", 0, TryNextRegion, "region", HOUR),
            ("Total Regional Cores", 10, TryNextRegion, "region", MINUTES_10),
            ("Total Regional Spot vCPUs", 10, TryNextRegion, "region", MINUTES_10),
            ("standardDSv5Family Cores", 24, TryNextType, "family", MINUTES_10),
            ("standardDSv5Family Cores", 0, TryNextType, "family", HOUR),
            ("standardNCASv3_T4 Family vCPUs", 0, TryNextType, "family", HOUR),
            ("PublicIPAddresses", 10, TryNextRegion, "region", MINUTES_10),
        )
    ),
    ("RequestDisallowedByPolicy", "Policy: 'Allowed locations'.", TryNextRegion, "region", HOUR),
    ("RequestDisallowedByPolicy", "Policy: 'Allowed virtual machine size SKUs'.", LaunchRefused, "size", DAY),
    ("RequestDisallowedByPolicy", "Policy: 'No public addresses'.", LaunchRefused, "region", HOUR),
    ("BadRequest", "The VM size cannot boot Hypervisor Generation '2'.", LaunchRefused, "size", DAY),
    ("BadRequest", "Something else is wrong.", LaunchRefused, "region", HOUR),
    ("InvalidParameter", "The value X provided for the VM size is not valid.", LaunchRefused, "size", DAY),
    ("InvalidParameter", "The VM size cannot boot with the OS image or disk.", LaunchRefused, "size", DAY),
    ("InvalidParameter", "The availability zone '3' is not there.", TryNextZone, "pool", DAY),
    ("OperationNotAllowed", "Spot is not supported for this VM size.", TryNextType, "size", MONTH),
    ("OperationNotAllowed", "The disk size 8 is smaller than the image's.", LaunchRefused, "none", ZERO),
    ("OperationNotAllowed", "The machine is being deleted.", TryAgainLater, "none", ZERO),
]

OPERATIONS: list[Row] = [(code, TryNextZone, "pool", MINUTES_3) for code in OPERATION_ERRORS]


def told(error: ProviderError) -> tuple[type[ProviderError], str, timedelta]:
    """What a placement reads of it."""
    assert isinstance(error, CapacityError)
    return type(error), error.scope, error.ban_for


@pytest.mark.parametrize(("code", "error", "scope", "ban"), TABLE, ids=[row[0] for row in TABLE])
def test_each_code_says_what_to_try_next(code: str, error: type[CapacityError], scope: str, ban: timedelta) -> None:
    """Class, reach and duration are the table's; code, words and region are kept."""
    raised = launch_error(Failure(code, "words", 409), "eastus")
    assert told(raised) == (error, scope, ban)
    assert (raised.code, raised.message, raised.region) == (code, "words", "eastus")


def test_no_line_is_untested() -> None:
    """The table here and the table there have the same codes."""
    assert {row[0] for row in TABLE} == set(LAUNCH_ERRORS)
    assert {row[0] for row in BY_WORDS} >= set(REFINEMENTS)


@pytest.mark.parametrize(
    ("code", "words", "error", "scope", "ban"), BY_WORDS, ids=[f"{r[0]}: {r[1]}" for r in BY_WORDS]
)
def test_the_words_decide_where_the_code_does_not(
    code: str, words: str, error: type[CapacityError], scope: str, ban: timedelta
) -> None:
    """Quotas and the like are told apart by Azure's words."""
    assert told(launch_error(Failure(code, words, 409), "eastus")) == (error, scope, ban)


def test_every_quota_and_refinement_is_met() -> None:
    """Each pattern of the tables is the first that fits some words here."""
    met = {
        next(pattern for pattern, _ in QUOTAS if pattern.search(words))
        for code, words, *_ in BY_WORDS
        if code == "QuotaExceeded"
    }
    assert met == {pattern for pattern, _ in QUOTAS}
    for code, lines in REFINEMENTS.items():
        said = [words for c, words, *_ in BY_WORDS if c == code]
        firsts = [next((pattern for pattern, _ in lines if pattern.search(words)), None) for words in said]
        assert {pattern for pattern, _ in lines} <= set(firsts), code


@pytest.mark.parametrize(("code", "error", "scope", "ban"), OPERATIONS, ids=[row[0] for row in OPERATIONS])
def test_codes_that_only_operations_end_with(code: str, error: type[CapacityError], scope: str, ban: timedelta) -> None:
    """A launch that was accepted and not carried out sets its pool aside for minutes."""
    assert told(operation_error(code, "words", "eastus")) == (error, scope, ban)


@pytest.mark.parametrize("row", TABLE, ids=[row[0] for row in TABLE])
def test_an_accepted_launch_is_never_waited_for(row: Row) -> None:
    """The same name would bring the same failed machine back: what is transient for a call bans the pool."""
    code, error, scope, ban = row
    raised = operation_error(code, "words", "eastus")
    expected = (TryNextZone, "pool", MINUTES_3) if error is TryAgainLater else (error, scope, ban)
    assert told(raised) == expected


def test_an_unknown_code_is_its_own_class() -> None:
    """It keeps its code, and sets the pool aside."""
    for raised in (
        launch_error(Failure("NeverSeen", "w", 409), "eastus"),
        operation_error("NeverSeen", "w", "eastus"),
    ):
        assert told(raised) == (UnknownLaunchError, "pool", UnknownLaunchError.default_ban)
        assert raised.code == "NeverSeen"


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure("ServiceResponseError", "reset", lost=True), ProviderUnavailable),
        (Failure("NeverSeen", "w", 503), TryAgainLater),
        (Failure("NeverSeen", "w", 429), TryAgainLater),
        (Failure("AllocationFailed", "w", 500), TryNextRegion),
        (Failure("Unheard", "w", 401), SkipProvider),
    ],
)
def test_status_and_silence(failure: Failure, error: type[ProviderError]) -> None:
    """No answer is no verdict; a 5xx is one only where its code is; whoever is not known is denied."""
    assert type(launch_error(failure, "eastus")) is error


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("PlatformImageNotFound", "w"),
        ("ResourcePurchaseValidationFailed", "User failed validation to purchase resources."),
        ("InvalidParameter", "The image reference is wrong."),
        ("BadRequest", "It cannot boot Hypervisor Generation '1'."),
    ],
)
def test_what_is_wrong_with_a_jobs_own_image_is_the_jobs_own(code: str, words: str) -> None:
    """It closes nothing to anybody else, at once or after it was accepted; without an image of its own it does."""
    failure = Failure(code, words, 400)
    for raised in (
        launch_error(failure, "eastus", own_image=True),
        operation_error(code, words, "eastus", own_image=True),
    ):
        assert told(raised)[:2] == (LaunchRefused, "none")
    assert told(launch_error(failure, "eastus"))[1] != "none"


def test_stockouts_are_nobodys_image() -> None:
    """A job with an image of its own meets empty pools like any other."""
    assert isinstance(launch_error(Failure("AllocationFailed", "w", 409), "eastus", own_image=True), TryNextRegion)


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure("AuthorizationFailed", "w", 403), SkipProvider),
        (Failure("RequestDisallowedByPolicy", "Allowed locations", 403), TryNextRegion),
        (Failure("TooManyRequests", "w", 429), ProviderUnavailable),
        (Failure("ServiceRequestError", "w", lost=True), ProviderUnavailable),
        (Failure("AllocationFailed", "w", 409), ProviderError),
        (Failure("NeverSeen", "w", 400), ProviderError),
    ],
)
def test_other_calls_have_no_verdict_on_capacity(failure: Failure, error: type[ProviderError]) -> None:
    """Denials keep their class, trouble is no verdict, and the rest is an error without consequences for pools."""
    assert type(call_error(failure, "eastus")) is error


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"code": "A", "message": "m"}}, "A"),
        ({"code": "A", "message": "m"}, "A"),
        ({"error": {"code": "DeploymentFailed", "details": [{"code": "A", "message": "m"}]}}, "A"),
        ({"status": "Failed", "error": {"code": "A", "details": [{"code": "B"}]}}, "A"),
        ({"error": "invalid_client", "error_description": "m"}, ""),
        ("nonsense", ""),
        (None, ""),
    ],
)
def test_the_real_cause_is_read_out_of_an_error(body: object, code: str) -> None:
    """A code that only says that something failed gives way to the first of its details."""
    assert words_of(body)[0] == code
