"""Compute Engine's refusals as data: code -> what to try next, how far it reaches, how long it stands; needs no SDK."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

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
    SkipProvider,
    TryNextRegion,
    TryNextType,
    TryNextZone,
)

NO_CAPACITY = Verdict(TryNextZone, "pool", timedelta(minutes=3))
BRIEFLY_NOT = Verdict(TryNextZone, "pool", timedelta(minutes=1))
"""The pool is not short of machines as far as anybody knows; this launch went wrong, and cannot be repeated."""
NOT_OFFERED = Verdict(TryNextZone, "pool", timedelta(hours=24))
REGION_FULL = Verdict(TryNextRegion, "region", timedelta(minutes=10))
FAMILY_FULL = Verdict(TryNextType, "family", timedelta(minutes=10))
TYPE_FULL = Verdict(TryNextType, "type", timedelta(minutes=10))
"""A quota of GPUs that counts in all regions together: the type is not to be had anywhere."""
CLOUD_FULL = Verdict(SkipProvider, "provider", timedelta(minutes=10))
"""A quota of everything that counts in all regions together."""

LAUNCH_ERRORS: Mapping[str, Verdict] = {
    "ZONE_RESOURCE_POOL_EXHAUSTED": NO_CAPACITY,
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": NO_CAPACITY,
    "insufficientCapacity": NO_CAPACITY,
    # Seen when a spot machine is taken back while it is being made.
    "UNSUPPORTED_OPERATION": NO_CAPACITY,
    "RESOURCE_NOT_READY": NO_CAPACITY,
    "RESOURCE_OPERATION_RATE_EXCEEDED": NO_CAPACITY,
    "RESOURCE_NOT_FOUND": NO_CAPACITY,
    # Numbers instead of names: taken back while it was being made, no capacity, no reserved capacity.
    "3": NO_CAPACITY,
    "8": NO_CAPACITY,
    "9": NO_CAPACITY,
    # `refined` tells what a quota counts.
    "QUOTA_EXCEEDED": REGION_FULL,
    "quotaExceeded": REGION_FULL,
    "rateLimitExceeded": WAIT,
    "userRateLimitExceeded": WAIT,
    "RATE_LIMIT_EXCEEDED": WAIT,
    "backendError": WAIT,
    "internalError": WAIT,
    "INTERNAL_ERROR": WAIT,
    "OPERATION_CANCELED_BY_USER": BRIEFLY_NOT,
    "IAM_PERMISSION_DENIED": DENIED,
    "PERMISSIONS_ERROR": DENIED,
    "forbidden": DENIED,
    "insufficientPermissions": DENIED,
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": DENIED,
    "authError": DENIED,
    "UNAUTHENTICATED": DENIED,
    "accessNotConfigured": DENIED,
    "SERVICE_DISABLED": DENIED,
    "BILLING_DISABLED": DENIED,
    "billingNotEnabled": DENIED,
    "CONSUMER_INVALID": DENIED,
    "USER_PROJECT_DENIED": DENIED,
    "VPC_NOT_FOUND": DENIED,
    "SUBNET_NOT_FOUND_FOR_VPC": REGION_CLOSED,
    "CONDITION_NOT_MET": REGION_WRONG,
    "conditionNotMet": REGION_WRONG,
    "notFound": NO_CAPACITY,
    "invalid": REGION_WRONG,
    "INVALID_FIELD_VALUE": REGION_WRONG,
    "INVALID_USAGE": REGION_WRONG,
    "badRequest": REGION_WRONG,
    "invalidParameter": REGION_WRONG,
    "required": REGION_WRONG,
    "resourceNotReady": BRIEFLY_NOT,
    "resourceInUseByAnotherResource": BRIEFLY_NOT,
    # Somebody else's machine has the name that this one was to get.
    "alreadyExists": REQUEST_WRONG,
}
"""Reasons of HTTP answers and codes of operations."""

_QUOTAS = frozenset({"QUOTA_EXCEEDED", "quotaExceeded"})
_MALFORMED = frozenset({"invalid", "INVALID_FIELD_VALUE", "INVALID_USAGE", "badRequest", "invalidParameter"})
_MISSING = frozenset({"notFound", "RESOURCE_NOT_FOUND"})


@dataclass(frozen=True, slots=True)
class Refinement:
    """Words with which a code means something else than by itself; the first that fits counts.

    Attributes:
        codes: with these codes; empty means any.
        words: a pattern of the message, without regard to case.
        own_image: the verdict where the job named its image itself, if that differs.
    """

    codes: frozenset[str]
    words: re.Pattern[str]
    verdict: Verdict
    own_image: Verdict | None = None


def _when(codes: frozenset[str], words: str, verdict: Verdict, own_image: Verdict | None = None) -> Refinement:
    return Refinement(codes, re.compile(words, re.IGNORECASE), verdict, own_image)


REFINEMENTS: tuple[Refinement, ...] = (
    # The organisation's policy names locations: the others are open.
    _when(frozenset(), r"constraints/gcp\.resourceLocations", REGION_CLOSED),
    _when(frozenset(), "policy update access denied", DENIED),
    _when(_QUOTAS, "per minute", WAIT),
    _when(_QUOTAS, "GPUS_ALL_REGIONS", TYPE_FULL),
    _when(_QUOTAS, "_ALL_REGIONS|exceeded.*globally", CLOUD_FULL),
    # Quotas of GPUs, and those of one machine family, leave the rest of the region open.
    _when(_QUOTAS, "GPUS|'(?!PREEMPTIBLE_CPUS)[A-Z0-9_]+_CPUS'", FAMILY_FULL),
    _when(_MALFORMED, "disk size.*smaller than the image|smaller than.*image.*size", REQUEST_WRONG),
    _when(_MALFORMED, "metadata", REQUEST_WRONG),
    _when(_MALFORMED | _MISSING, "machine ?types?|accelerator ?types?|accelerators?", NOT_OFFERED),
    _when(_MALFORMED | _MISSING, "images?/|image family|sourceImage", REGION_WRONG, REQUEST_WRONG),
    _when(_MALFORMED | _MISSING, "(sub)?networks?/|networkInterfaces|serviceAccounts?", REGION_WRONG),
    _when(_MISSING, r"resource '?projects/[^/']+'? (was|is) not found", DENIED),
    _when(_MISSING, "is not found or access is unauthorized", NO_CAPACITY),
)


def verdict_of(code: str, message: str, *, own_image: bool) -> Verdict:
    """What a final refusal means; a code that the table lacks is `UNKNOWN`, unless its words tell."""
    for refinement in REFINEMENTS:
        if (not refinement.codes or code in refinement.codes) and refinement.words.search(message):
            return (own_image and refinement.own_image) or refinement.verdict
    return LAUNCH_ERRORS.get(code, UNKNOWN)
