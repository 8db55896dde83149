"""What Azure's codes mean, as data: code -> what to try next, how far it reaches, how long to leave it alone. No SDK.

Quotas hide under a code that stands for much else: `QUOTAS` tells them apart by the words.
"""

import re
from collections.abc import Mapping
from datetime import timedelta

from spotferry.providers.verdict import DENIED, REGION_CLOSED, REGION_WRONG, REQUEST_WRONG, WAIT, Verdict
from spotferry.types.errors import (
    LaunchRefused,
    TryNextRegion,
    TryNextType,
    TryNextZone,
)

_HOUR = timedelta(hours=1)
_ZONE_EMPTY = Verdict(TryNextZone, "pool", _HOUR)
_NOT_IN_REGION = Verdict(TryNextRegion, "size", _HOUR)
"""The type is not to be had in the region now, in whichever zone."""
_RESTRICTED = Verdict(TryNextRegion, "size", timedelta(hours=23))
_NEVER = Verdict(TryNextType, "size", timedelta(days=30))
"""The type cannot be had on the spot market at all."""
_TOO_DEAR = Verdict(TryNextZone, "pool", timedelta(minutes=10))
_FAMILY_FULL = Verdict(TryNextType, "family", timedelta(minutes=10))
_NO_FAMILY = Verdict(TryNextType, "family", _HOUR)
_REGION_FULL = Verdict(TryNextRegion, "region", timedelta(minutes=10))
_NO_SPOT_LEFT = Verdict(TryNextRegion, "region", _HOUR)
_TYPE_WRONG = Verdict(LaunchRefused, "size", timedelta(hours=24))
_NEVER_STARTED = Verdict(TryNextZone, "pool", timedelta(minutes=3))
"""Azure accepted the launch and could not carry it out, for no reason that lasts."""

LAUNCH_ERRORS: Mapping[str, Verdict] = {
    "SkuNotAvailable": _NOT_IN_REGION,
    "AllocationFailed": _NOT_IN_REGION,
    "OverconstrainedAllocationRequest": _NOT_IN_REGION,
    "ZonalAllocationFailed": _ZONE_EMPTY,
    "OverconstrainedZonalAllocationRequest": _ZONE_EMPTY,
    "NotAvailableForSubscription": _RESTRICTED,
    "SpotPriceGreaterThanProvidedMaxPrice": _TOO_DEAR,
    "AzureSpotIsNotSupportedForThisVMSize": _NEVER,
    "ResourceTypeNotSupportAvailabilityZones": REGION_WRONG,
    "PublicIPCountLimitReached": _REGION_FULL,
    "SubnetIsFull": _REGION_FULL,
    "RequestDisallowedByAzure": REGION_CLOSED,
    "LocationNotAvailableForResourceType": REGION_CLOSED,
    "LocationNotAvailableForResourceGroup": REGION_CLOSED,
    "NoRegisteredProviderFound": REGION_CLOSED,
    "ScopeLocked": REGION_CLOSED,
    "AzureSpotFeatureNotEnabledForSubscription": DENIED,
    "ReadOnlyDisabledSubscription": DENIED,
    "SubscriptionNotFound": DENIED,
    "InvalidSubscriptionId": DENIED,
    "SubscriptionNotRegistered": DENIED,
    "MissingSubscriptionRegistration": DENIED,
    "AuthorizationFailed": DENIED,
    "AuthenticationFailed": DENIED,
    "AuthenticationFailedMissingToken": DENIED,
    "AuthenticationFailedInvalidHeader": DENIED,
    "InvalidAuthenticationToken": DENIED,
    "InvalidAuthenticationTokenTenant": DENIED,
    "ExpiredAuthenticationToken": DENIED,
    "ClientAuthenticationError": DENIED,
    "CredentialUnavailableError": DENIED,
    "LinkedAuthorizationFailed": REGION_WRONG,
    "ResourceGroupNotFound": REGION_WRONG,
    "ResourceGroupBeingDeleted": REGION_WRONG,
    "ParentResourceNotFound": REGION_WRONG,
    "InvalidResourceReference": REGION_WRONG,
    "LinkedInvalidPropertyId": REGION_WRONG,
    "FailedIdentityOperation": REGION_WRONG,
    "PlatformImageNotFound": REGION_WRONG,
    "ImageNotFound": REGION_WRONG,
    "GalleryImageNotFound": REGION_WRONG,
    "ImageVersionDeprecated": REGION_WRONG,
    "ResourcePurchaseValidationFailed": REGION_WRONG,
    "MarketplacePurchaseEligibilityFailed": REGION_WRONG,
    "VMMarketplaceInvalidInput": REGION_WRONG,
    "InvalidParameter": REGION_WRONG,
    "InvalidParameterValue": REGION_WRONG,
    "InvalidRequestContent": REGION_WRONG,
    "InvalidRequestFormat": REGION_WRONG,
    "InvalidApiVersionParameter": REGION_WRONG,
    "VMPriorityCannotBeApplied": REGION_WRONG,
    "AzureSpotIsNotSupportedForThisAPIVersion": REGION_WRONG,
    "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines": REGION_WRONG,
    "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines": REGION_WRONG,
    "MaxPriceValueInvalid": REQUEST_WRONG,
    "ResizeDiskError": REQUEST_WRONG,
    "InvalidCustomData": REQUEST_WRONG,
    "TooManyRequests": WAIT,
    "SubscriptionRequestsThrottled": WAIT,
    "ServerTimeout": WAIT,
    "GatewayTimeout": WAIT,
    "RequestTimeout": WAIT,
    "ServiceUnavailable": WAIT,
    "ServerBusy": WAIT,
    "InternalServerError": WAIT,
    "InternalExecutionError": WAIT,
    "InternalOperationError": WAIT,
    "NetworkingInternalOperationError": WAIT,
    "RetryableError": WAIT,
    "RetryableErrorDueToAnotherOperation": WAIT,
    "AnotherOperationInProgress": WAIT,
    "Conflict": WAIT,
}
"""Exact codes of a PUT of a machine, and of the operation that it begins."""

OPERATION_ERRORS: Mapping[str, Verdict] = {
    "OperationPreempted": _NEVER_STARTED,
    "OperationExpired": _NEVER_STARTED,
    "OSProvisioningTimedOut": _NEVER_STARTED,
    "OSProvisioningInternalError": _NEVER_STARTED,
    "OSProvisioningClientError": _NEVER_STARTED,
    "ProvisioningTimedOut": _NEVER_STARTED,
    "VMStartTimedOut": _NEVER_STARTED,
    "VMAgentStatusCommunicationError": _NEVER_STARTED,
    "DiskServiceInternalError": _NEVER_STARTED,
    "InternalDiskManagementError": _NEVER_STARTED,
}
"""Codes that only an operation ends with."""

TRANSIENT = frozenset(code for code, verdict in LAUNCH_ERRORS.items() if verdict is WAIT)
"""Codes that the same call may get over."""

QUOTA_CODES = frozenset({"OperationNotAllowed", "QuotaExceeded"})
QUOTAS: tuple[tuple[re.Pattern[str], Verdict], ...] = (
    (re.compile(r"low ?priority ?cores", re.IGNORECASE), _NO_SPOT_LEFT),
    (re.compile(r"total regional (?:spot )?(?:v?cpus|cores)", re.IGNORECASE), _REGION_FULL),
    (re.compile(r"family v?(?:cpus|cores).*current limit: 0\b", re.IGNORECASE | re.DOTALL), _NO_FAMILY),
    (re.compile(r"family v?(?:cpus|cores)", re.IGNORECASE), _FAMILY_FULL),
    (re.compile(r"public ?ip", re.IGNORECASE), _REGION_FULL),
)
"""Which quota is used up, by the words; the first that fits counts. Spot machines of all types share one."""

REFINEMENTS: Mapping[str, tuple[tuple[re.Pattern[str], Verdict], ...]] = {
    "RequestDisallowedByPolicy": (
        (re.compile(r"location|region", re.IGNORECASE), REGION_CLOSED),
        (re.compile(r"\b(?:skus?|vm ?sizes?)\b", re.IGNORECASE), _TYPE_WRONG),
        (re.compile(""), REGION_WRONG),
    ),
    "BadRequest": (
        (re.compile(r"hypervisor generation|vm size|disk controller|security type", re.IGNORECASE), _TYPE_WRONG),
        (re.compile(""), REGION_WRONG),
    ),
    "InvalidParameter": (
        (re.compile(r"\bvm ?size\b.*(?:not (?:available|supported|valid)|invalid)", re.IGNORECASE), _TYPE_WRONG),
        (re.compile(r"disk controller|cannot boot", re.IGNORECASE), _TYPE_WRONG),
        (re.compile(r"availability zone", re.IGNORECASE), Verdict(TryNextZone, "pool", timedelta(hours=24))),
    ),
    "OperationNotAllowed": (
        (re.compile(r"spot.*(?:not supported|cannot be).*size|size.*not support.*spot", re.IGNORECASE), _NEVER),
        (re.compile(r"disk (?:size|of size).*(?:smaller|less) than", re.IGNORECASE), REQUEST_WRONG),
        (re.compile(r"being deleted|another operation", re.IGNORECASE), WAIT),
    ),
}
"""Codes whose words decide, beside quotas; the first that fits counts, then `LAUNCH_ERRORS`."""

_OF_THE_IMAGE = frozenset(
    {
        "PlatformImageNotFound",
        "ImageNotFound",
        "GalleryImageNotFound",
        "ImageVersionDeprecated",
        "ResourcePurchaseValidationFailed",
        "MarketplacePurchaseEligibilityFailed",
        "VMMarketplaceInvalidInput",
    }
)
_MAYBE_OF_THE_IMAGE = frozenset(
    {"BadRequest", "InvalidParameter", "InvalidResourceReference", "LinkedAuthorizationFailed"}
    | {"OSProvisioningTimedOut", "OSProvisioningClientError"}
)
_ABOUT_AN_IMAGE = re.compile(r"\b(image|imagereference|generation|plan|os profile|provisioning)\b", re.IGNORECASE)


def verdict_of(code: str, message: str, *, accepted: bool = False) -> Verdict | None:
    """What a code means; None when no table knows it.

    Args:
        code: Azure's own.
        message: the words with it.
        accepted: it ended a launch that had been accepted: nothing is waited for then.
    """
    if code in QUOTA_CODES:
        quota = next((verdict for words, verdict in QUOTAS if words.search(message)), None)
        if quota is not None:
            return quota
    refined = next((verdict for words, verdict in REFINEMENTS.get(code, ()) if words.search(message)), None)
    verdict = refined or LAUNCH_ERRORS.get(code) or OPERATION_ERRORS.get(code)
    return _NEVER_STARTED if accepted and verdict is WAIT else verdict


def is_of_the_image(code: str, message: str) -> bool:
    """A job's own image accounts for it."""
    return code in _OF_THE_IMAGE or (code in _MAYBE_OF_THE_IMAGE and bool(_ABOUT_AN_IMAGE.search(message)))
