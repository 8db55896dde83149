"""What EC2's refusals mean, as data: code -> what to try next, how far it reaches, how long to leave it alone.

The only place that knows a vendor's exception: everything above sees `spotferry.types.errors`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)
from botocore.exceptions import (
    ConnectionError as AnyConnectionError,
)
from botocore.parsers import ResponseParserError

from spotferry.providers.verdict import (
    DENIED,
    REGION_CLOSED,
    REGION_WRONG,
    REQUEST_WRONG,
    UNKNOWN,
    WAIT,
    Verdict,
)
from spotferry.types.errors import (
    LaunchRefused,
    ProviderError,
    ProviderUnavailable,
    SkipProvider,
    TryNextRegion,
    TryNextType,
    TryNextZone,
)

VENDOR_ERRORS = (BotoCoreError, ClientError, ResponseParserError)
"""All that a call through the SDK may raise; they have no base class in common."""
VendorError = BotoCoreError | ClientError | ResponseParserError


_NO_CAPACITY = Verdict(TryNextZone, "pool", timedelta(minutes=3))
_ZONE_FULL = Verdict(TryNextZone, "zone", timedelta(minutes=10))
_NOT_OFFERED = Verdict(TryNextZone, "pool", timedelta(hours=24))
_REGION_FULL = Verdict(TryNextRegion, "region", timedelta(minutes=10))
_FAMILY_FULL = Verdict(TryNextType, "family", timedelta(minutes=10))
_TYPE_WRONG = Verdict(LaunchRefused, "pool", timedelta(hours=24))

LAUNCH_ERRORS: Mapping[str, Verdict] = {
    "InsufficientInstanceCapacity": _NO_CAPACITY,
    "UnfulfillableCapacity": _NO_CAPACITY,
    "InsufficientCapacity": _NO_CAPACITY,
    "InsufficientHostCapacity": _NO_CAPACITY,
    "InsufficientReservedInstanceCapacity": _NO_CAPACITY,
    "ReservationCapacityExceeded": _NO_CAPACITY,
    "SpotMaxPriceTooLow": _NO_CAPACITY,
    "Unsupported": _NOT_OFFERED,
    "InsufficientFreeAddressesInSubnet": _ZONE_FULL,
    # Quotas count one market's vCPUs in a region: those of most types together, those of the others family by family.
    # `REFINEMENTS` tells the two apart.
    "MaxSpotInstanceCountExceeded": _REGION_FULL,
    "VcpuLimitExceeded": _REGION_FULL,
    "InstanceLimitExceeded": _REGION_FULL,
    "MaxFleetCountExceeded": _REGION_FULL,
    "VolumeLimitExceeded": _REGION_FULL,
    "MaxIOPSLimitExceeded": _REGION_FULL,
    "RequestLimitExceeded": WAIT,
    "Throttling": WAIT,
    "ThrottlingException": WAIT,
    "EC2ThrottledException": WAIT,
    "RequestThrottled": WAIT,
    "InternalError": WAIT,
    "InternalFailure": WAIT,
    "ServerInternal": WAIT,
    "ServiceUnavailable": WAIT,
    "Unavailable": WAIT,
    "UnauthorizedOperation": DENIED,
    "OperationNotPermitted": DENIED,
    "AuthFailure": DENIED,
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": DENIED,
    "InvalidClientTokenId": DENIED,
    "UnrecognizedClientException": DENIED,
    "MissingAuthenticationToken": DENIED,
    "SignatureDoesNotMatch": DENIED,
    "ExpiredToken": DENIED,
    "ExpiredTokenException": DENIED,
    "RequestExpired": DENIED,
    "Blocked": DENIED,
    "PendingVerification": REGION_CLOSED,
    "OptInRequired": REGION_CLOSED,
    "InvalidParameterValue": REGION_WRONG,
    "InvalidParameterCombination": REGION_WRONG,
    "InvalidParameter": REGION_WRONG,
    "MissingParameter": REGION_WRONG,
    "UnsupportedOperation": REGION_WRONG,
    "VPCIdNotSpecified": REGION_WRONG,
    "VPCResourceNotSpecified": REGION_WRONG,
    "InvalidUserData.Malformed": REQUEST_WRONG,
    "InvalidBlockDeviceMapping": REQUEST_WRONG,
    "IdempotentInstanceTerminated": _NO_CAPACITY,
    "InvalidInstanceType": _TYPE_WRONG,
    "InvalidAvailabilityZone": _ZONE_FULL,
}
"""Exact codes of RunInstances."""

LAUNCH_ERROR_FAMILIES: Mapping[str, Verdict] = {
    "AccessDenied": DENIED,
    "InvalidAMIID.": REGION_WRONG,
    "InvalidSubnetID.": REGION_WRONG,
    "InvalidGroup.": REGION_WRONG,
    "InvalidSecurityGroupID.": REGION_WRONG,
    "InvalidKeyPair.": REGION_WRONG,
    "InvalidKMSKey.": REGION_WRONG,
    "InvalidIamInstanceProfile": REGION_WRONG,
    "InvalidLaunchTemplate": REGION_WRONG,
}
"""Beginnings of codes, for codes that are not in `LAUNCH_ERRORS`."""

REQUEST_MISMATCH = "IdempotentParameterMismatch"
"""The token bought a machine before with another request: that is no verdict, for the machine may run unseen."""

TRANSIENT = frozenset(code for code, verdict in LAUNCH_ERRORS.items() if verdict is WAIT)
"""Codes that the same request may get over, of every operation."""

_OF_THE_IMAGE = ("InvalidAMIID.", "InvalidParameterCombination", "UnsupportedOperation")
"""Beginnings of codes that a job's own image accounts for."""
_MAYBE_OF_THE_IMAGE = frozenset({"InvalidParameterValue", "InvalidParameter", "Unsupported"})
"""Codes that it accounts for when EC2's words are about the image."""
_ABOUT_AN_IMAGE = re.compile(r"\b(ami|image|architecture|boot mode|virtualization)\b")

_CREDENTIALS = frozenset({"AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException"})
_QUOTAS = frozenset({"MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded"})
_STANDARD_FAMILIES = frozenset("acdhimrtz")
"""First letters of the types that share the quota of standard machines (but see `_OWN_QUOTA`)."""
_OWN_QUOTA = ("dl", "hpc", "inf", "trn", "mac")
"""Beginnings that look standard by their letter and have a quota of their own."""
_ALWAYS_ENABLED = frozenset(
    {f"us-{side}-{n}" for side in ("east", "west") for n in (1, 2)}
    | {f"eu-west-{n}" for n in (1, 2, 3)}
    | {f"ap-northeast-{n}" for n in (1, 2, 3)}
    | {f"ap-southeast-{n}" for n in (1, 2)}
    | {"ca-central-1", "sa-east-1", "eu-central-1", "eu-north-1", "ap-south-1"}
)
"""The regions that every account has; the others must be enabled, and refuse good credentials until they are."""

NO_VERDICT_STATUS = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that failed, in EC2's own words.

    Attributes:
        code: EC2's code, or the name of the SDK's exception when no answer came.
        message: the words with it.
        status: the HTTP status; 0 when no answer came.
        lost: no answer came, or none that could be read: the call may have been carried out.
    """

    code: str
    message: str
    status: int = 0
    lost: bool = False

    @property
    def bare_code(self) -> str:
        """The code without the prefix that EC2 puts before it in places."""
        return self.code.removeprefix("Server.").removeprefix("Client.")

    @property
    def transient(self) -> bool:
        """The same request may get over it; a verdict is final, whatever its status (a stockout comes as a 500)."""
        if self.lost or self.code in TRANSIENT:
            return True
        is_verdict = self.bare_code in LAUNCH_ERRORS or self.bare_code.startswith(tuple(LAUNCH_ERROR_FAMILIES))
        return self.status >= NO_VERDICT_STATUS and not is_verdict


_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
    ProfileNotFound,
)
_LOST = (AnyConnectionError, HTTPClientError, IncompleteReadError, ResponseParserError)
_BAD_REQUEST = (ParamValidationError, NoRegionError, InvalidRegionError)


def failure_of(error: VendorError) -> Failure:
    """What the SDK's exception says."""
    if isinstance(error, ClientError):
        said = error.response.get("Error", {})
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return Failure(said.get("Code", "") or "Unknown", said.get("Message", ""), status)
    return Failure(type(error).__name__, str(error), lost=isinstance(error, _LOST))


def launch_error(error: VendorError, region: str, instance_type: str, *, own_image: bool = False) -> ProviderError:
    """The exception to raise for a launch that failed; the code and the words are kept.

    Args:
        error: the SDK's.
        region: of the launch.
        instance_type: what was to be launched.
        own_image: the job named its image itself: what is wrong with it closes nothing to other jobs.
    """
    failure = failure_of(error)
    if failure.lost or failure.bare_code == REQUEST_MISMATCH:
        return ProviderUnavailable(failure.code, failure.message, region)
    if own_image and _is_of_the_image(failure):
        verdict = REQUEST_WRONG
    else:
        verdict = _local_verdict(error) or _verdict(failure, region, instance_type)
    return verdict.error_of(failure, region)


def call_error(error: VendorError, region: str) -> ProviderError:
    """The exception to raise for any other call: denials keep their class, the rest has none that a placement needs."""
    failure = failure_of(error)
    if failure.transient:
        return ProviderUnavailable(failure.code, failure.message, region)
    verdict = _local_verdict(error) or _verdict(failure, region, "")
    if verdict.error is SkipProvider or verdict is REGION_CLOSED:
        return verdict.error_of(failure, region)
    return ProviderError(failure.code, failure.message, region)


def _is_of_the_image(failure: Failure) -> bool:
    code = failure.bare_code
    if code in _MAYBE_OF_THE_IMAGE:
        return bool(_ABOUT_AN_IMAGE.search(failure.message.lower()))
    return code.startswith(_OF_THE_IMAGE)


def _local_verdict(error: VendorError) -> Verdict | None:
    """For failures of the SDK itself, before anything was sent."""
    if isinstance(error, _NO_CREDENTIALS):
        return DENIED
    return REGION_WRONG if isinstance(error, _BAD_REQUEST) else None


def _verdict(failure: Failure, region: str, instance_type: str) -> Verdict:
    code = failure.bare_code
    verdict = LAUNCH_ERRORS.get(code) or next(
        (v for beginning, v in LAUNCH_ERROR_FAMILIES.items() if code.startswith(beginning)), None
    )
    if verdict is None:
        return WAIT if failure.status >= NO_VERDICT_STATUS else UNKNOWN
    return _refined(verdict, code, failure.message.lower(), region, instance_type)


def _refined(verdict: Verdict, code: str, words: str, region: str, instance_type: str) -> Verdict:
    """The verdict where the code alone says too much or too little."""
    if verdict is DENIED and "explicit deny" in words:
        # An explicit deny is a policy with a condition, in practice the region: the others are still open.
        return REGION_CLOSED
    if code in _CREDENTIALS and region not in _ALWAYS_ENABLED:
        return REGION_CLOSED
    if code in _QUOTAS and not _has_standard_quota(instance_type):
        return _FAMILY_FULL
    if code == "OptInRequired" and "marketplace" in words:
        return REQUEST_WRONG
    return verdict


def _has_standard_quota(instance_type: str) -> bool:
    return not instance_type.startswith(_OWN_QUOTA) and instance_type[:1] in _STANDARD_FAMILIES
