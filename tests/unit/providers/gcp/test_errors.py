"""Every refusal of Compute Engine, line by line, through the adapter and the official client."""

from datetime import timedelta

import pytest
from google.auth.exceptions import RefreshError, TransportError
from google.cloud.compute_v1 import Operation
from google.protobuf.json_format import ParseError
from requests.exceptions import ConnectionError as NoConnection
from requests.exceptions import ReadTimeout

from spotferry.providers.gcp.errors import (
    Failure,
    VendorError,
    call_error,
    failure_of,
    launch_error,
    operation_failure,
)
from spotferry.providers.gcp.verdicts import LAUNCH_ERRORS, REFINEMENTS, verdict_of
from spotferry.providers.verdict import UNKNOWN
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
from tests.unit.providers.gcp.rig import Rig, an_attempt, an_operation, failed, refused

ZERO, MINUTE, MINUTES_3, MINUTES_10, MINUTES_15 = (timedelta(minutes=m) for m in (0, 1, 3, 10, 15))
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

TABLE: list[tuple[str, type[CapacityError], str, timedelta]] = [
    ("ZONE_RESOURCE_POOL_EXHAUSTED", TryNextZone, "pool", MINUTES_3),
    ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", TryNextZone, "pool", MINUTES_3),
    ("insufficientCapacity", TryNextZone, "pool", MINUTES_3),
    ("UNSUPPORTED_OPERATION", TryNextZone, "pool", MINUTES_3),
    ("RESOURCE_NOT_READY", TryNextZone, "pool", MINUTES_3),
    ("RESOURCE_OPERATION_RATE_EXCEEDED", TryNextZone, "pool", MINUTES_3),
    ("RESOURCE_NOT_FOUND", TryNextZone, "pool", MINUTES_3),
    ("3", TryNextZone, "pool", MINUTES_3),
    ("8", TryNextZone, "pool", MINUTES_3),
    ("9", TryNextZone, "pool", MINUTES_3),
    ("notFound", TryNextZone, "pool", MINUTES_3),
    ("OPERATION_CANCELED_BY_USER", TryNextZone, "pool", MINUTE),
    ("resourceNotReady", TryNextZone, "pool", MINUTE),
    ("resourceInUseByAnotherResource", TryNextZone, "pool", MINUTE),
    ("QUOTA_EXCEEDED", TryNextRegion, "region", MINUTES_10),
    ("quotaExceeded", TryNextRegion, "region", MINUTES_10),
    ("SUBNET_NOT_FOUND_FOR_VPC", TryNextRegion, "region", HOUR),
    ("rateLimitExceeded", TryAgainLater, "none", ZERO),
    ("userRateLimitExceeded", TryAgainLater, "none", ZERO),
    ("RATE_LIMIT_EXCEEDED", TryAgainLater, "none", ZERO),
    ("backendError", TryAgainLater, "none", ZERO),
    ("internalError", TryAgainLater, "none", ZERO),
    ("INTERNAL_ERROR", TryAgainLater, "none", ZERO),
    ("IAM_PERMISSION_DENIED", SkipProvider, "provider", MINUTES_15),
    ("PERMISSIONS_ERROR", SkipProvider, "provider", MINUTES_15),
    ("forbidden", SkipProvider, "provider", MINUTES_15),
    ("insufficientPermissions", SkipProvider, "provider", MINUTES_15),
    ("ACCESS_TOKEN_SCOPE_INSUFFICIENT", SkipProvider, "provider", MINUTES_15),
    ("authError", SkipProvider, "provider", MINUTES_15),
    ("UNAUTHENTICATED", SkipProvider, "provider", MINUTES_15),
    ("accessNotConfigured", SkipProvider, "provider", MINUTES_15),
    ("SERVICE_DISABLED", SkipProvider, "provider", MINUTES_15),
    ("BILLING_DISABLED", SkipProvider, "provider", MINUTES_15),
    ("billingNotEnabled", SkipProvider, "provider", MINUTES_15),
    ("CONSUMER_INVALID", SkipProvider, "provider", MINUTES_15),
    ("USER_PROJECT_DENIED", SkipProvider, "provider", MINUTES_15),
    ("VPC_NOT_FOUND", SkipProvider, "provider", MINUTES_15),
    ("CONDITION_NOT_MET", LaunchRefused, "region", HOUR),
    ("conditionNotMet", LaunchRefused, "region", HOUR),
    ("invalid", LaunchRefused, "region", HOUR),
    ("INVALID_FIELD_VALUE", LaunchRefused, "region", HOUR),
    ("INVALID_USAGE", LaunchRefused, "region", HOUR),
    ("badRequest", LaunchRefused, "region", HOUR),
    ("invalidParameter", LaunchRefused, "region", HOUR),
    ("required", LaunchRefused, "region", HOUR),
    ("alreadyExists", LaunchRefused, "none", ZERO),
]
# A name that is taken is looked at first: `test_create` has that.
ENDINGS = [line for line in TABLE if line[0] != "alreadyExists"]
FINAL = [line for line in ENDINGS if line[1] is not TryAgainLater]


def test_the_table_is_whole() -> None:
    """No line is untested, and none is tested that is not there."""
    assert {line[0] for line in TABLE} == set(LAUNCH_ERRORS)
    for code, error, scope, ban_for in TABLE:
        verdict = LAUNCH_ERRORS[code]
        assert (verdict.error, verdict.scope, verdict.ban_for) == (error, scope, ban_for), code


@pytest.mark.parametrize(("code", "error", "scope", "ban_for"), FINAL)
def test_a_refused_call(code: str, error: type[CapacityError], scope: str, ban_for: timedelta) -> None:
    """A reason of an HTTP answer: its class, its reach and its time, with Google's code and words, at the first try."""
    rig = Rig().answer(refused(400, code, "the words"))
    with pytest.raises(error) as caught:
        rig.provider.create_instance(an_attempt())
    assert (type(caught.value), caught.value.scope, caught.value.ban_for) == (error, scope, ban_for)
    assert (caught.value.code, caught.value.message, caught.value.region) == (code, "the words", "us-central1")
    rig.done()


@pytest.mark.parametrize(("code", "error", "scope", "ban_for"), ENDINGS)
def test_an_operation_that_failed(code: str, error: type[CapacityError], scope: str, ban_for: timedelta) -> None:
    """A code of an accepted launch: the same, but what could be repeated is over, and is set aside for a moment."""
    rig = Rig().answer(an_operation(status="RUNNING"), failed(code, "the words"))
    with pytest.raises(CapacityError) as caught:
        rig.provider.create_instance(an_attempt())
    wanted = (error, scope, ban_for) if error is not TryAgainLater else (TryNextZone, "pool", MINUTE)
    assert (type(caught.value), caught.value.scope, caught.value.ban_for) == wanted
    assert caught.value.code == code


WORDS: list[tuple[str, str, type[CapacityError], str]] = [
    (
        "conditionNotMet",
        "Location us-central1 violates constraint constraints/gcp.resourceLocations on",
        TryNextRegion,
        "region",
    ),
    (
        "CONDITION_NOT_MET",
        "Constraint constraints/gcp.resourceLocations violated for projects/p",
        TryNextRegion,
        "region",
    ),
    ("invalid", "Policy update access denied.", SkipProvider, "provider"),
    (
        "quotaExceeded",
        "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute'",
        TryAgainLater,
        "none",
    ),
    ("QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.", TryNextType, "type"),
    ("QUOTA_EXCEEDED", "Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 32.0 globally.", SkipProvider, "provider"),
    (
        "QUOTA_EXCEEDED",
        "Quota 'PREEMPTIBLE_NVIDIA_T4_GPUS' exceeded.  Limit: 1.0 in region us-central1.",
        TryNextType,
        "family",
    ),
    ("QUOTA_EXCEEDED", "Quota 'N2_CPUS' exceeded.  Limit: 24.0 in region us-central1.", TryNextType, "family"),
    ("quotaExceeded", "Quota 'CPUS' exceeded.  Limit: 24.0 in region us-central1.", TryNextRegion, "region"),
    (
        "QUOTA_EXCEEDED",
        "Quota 'PREEMPTIBLE_CPUS' exceeded.  Limit: 24.0 in region r.",
        TryNextRegion,
        "region",
    ),
    ("invalid", "Requested disk size cannot be smaller than the image size (10 GB)", LaunchRefused, "none"),
    ("invalid", "Value for field 'resource.metadata.items[0].value' is too large", LaunchRefused, "none"),
    ("invalid", "Machine type with name 'x9' does not exist in zone 'us-central1-a'.", TryNextZone, "pool"),
    ("notFound", "The resource 'projects/p/zones/z/acceleratorTypes/nvidia-x' was not found", TryNextZone, "pool"),
    ("notFound", "The resource 'projects/p/global/images/x' was not found", LaunchRefused, "region"),
    ("notFound", "The resource 'projects/p/global/networks/x' was not found", LaunchRefused, "region"),
    ("RESOURCE_NOT_FOUND", "The resource 'projects/p/regions/r/subnetworks/x' is not ready", LaunchRefused, "region"),
    ("notFound", "The resource 'projects/p' was not found", SkipProvider, "provider"),
    ("notFound", "The zone is not found or access is unauthorized.", TryNextZone, "pool"),
]


@pytest.mark.parametrize(("code", "words", "error", "scope"), WORDS)
def test_words_that_say_more_than_the_code(code: str, words: str, error: type[CapacityError], scope: str) -> None:
    """What the message names decides how far the refusal reaches."""
    verdict = verdict_of(code, words, own_image=False)
    assert (verdict.error, verdict.scope) == (error, scope)


def test_every_refinement_is_told_by_some_words() -> None:
    """No line of the table of words is without a case above, and each is the first that fits one."""
    told = {
        next(n for n, r in enumerate(REFINEMENTS) if (not r.codes or code in r.codes) and r.words.search(words))
        for code, words, _, _ in WORDS
        if verdict_of(code, words, own_image=False) is not LAUNCH_ERRORS[code]
        or any(r.words.search(words) for r in REFINEMENTS)
    }
    assert told == set(range(len(REFINEMENTS)))


def test_a_stockout_is_a_verdict_whatever_its_status() -> None:
    """It may come as a failure of the server, and is not asked for again."""
    rig = Rig().answer(refused(503, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"))
    with pytest.raises(TryNextZone):
        rig.provider.create_instance(an_attempt())
    assert rig.time.pauses == []


def test_a_jobs_own_image_closes_nothing_to_others() -> None:
    """The same words about an image that the job named reach no further than the job."""
    verdict = verdict_of("notFound", "The resource 'projects/p/global/images/x' was not found", own_image=True)
    assert (verdict.error, verdict.scope) == (LaunchRefused, "none")


def test_a_code_that_no_table_knows() -> None:
    """It is its own class, kept with Google's words, and sets the pool aside."""
    rig = Rig().answer(refused(400, "neverSeenBefore", "odd words"))
    with pytest.raises(UnknownLaunchError) as caught:
        rig.provider.create_instance(an_attempt())
    assert (caught.value.code, caught.value.message, caught.value.scope) == ("neverSeenBefore", "odd words", "pool")
    assert verdict_of("", "", own_image=False) is UNKNOWN


def test_a_detail_names_the_reason() -> None:
    """Where the detail of an answer says more than its list of errors, it counts."""
    detail = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "SERVICE_DISABLED",
        "domain": "googleapis.com",
    }
    rig = Rig().answer(refused(403, "odd", details=[detail]))
    with pytest.raises(SkipProvider) as caught:
        rig.provider.create_instance(an_attempt())
    assert caught.value.code == "SERVICE_DISABLED"


def test_an_answer_without_a_reason() -> None:
    """The status stands for it: 401 is a denial, a server's error is none, and the rest is unknown."""
    assert isinstance(launch_error(Failure("401", "", 401), "r"), SkipProvider)
    assert isinstance(launch_error(Failure("429", "", 429), "r"), TryAgainLater)
    assert isinstance(launch_error(Failure("503", "", 503), "r"), TryAgainLater)
    assert isinstance(launch_error(Failure("418", "", 418), "r"), UnknownLaunchError)


VENDOR: list[tuple[VendorError, type[ProviderError], str]] = [
    # The library is typed only in part.
    (RefreshError("unauthorized_client"), SkipProvider, "RefreshError"),  # type: ignore[no-untyped-call]
    (RefreshError("unavailable", retryable=True), ProviderUnavailable, "RefreshError"),  # type: ignore[no-untyped-call]
    (TransportError("no route"), ProviderUnavailable, "TransportError"),  # type: ignore[no-untyped-call]
    (NoConnection("refused"), ProviderUnavailable, "ConnectionError"),
    (ReadTimeout("slow"), ProviderUnavailable, "ReadTimeout"),
    (ParseError("no JSON"), ProviderUnavailable, "ParseError"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd"), ProviderUnavailable, "UnicodeDecodeError"),
]


@pytest.mark.parametrize(("error", "ours", "code"), VENDOR)
def test_what_never_became_an_answer(error: VendorError, ours: type[ProviderError], code: str) -> None:
    """A token that is refused skips the cloud; what got lost is no verdict, for a launch and for any other call."""
    failure = failure_of(error)
    for made in (launch_error(failure, "r"), call_error(failure, "r")):
        assert (type(made), made.code, made.region) == (ours, code, "r")


def test_other_calls_have_no_class_but_a_denial() -> None:
    """A look-up that is refused proves nothing; being denied, everywhere or in a region, is told."""
    assert type(call_error(Failure("notFound", "the machine", 404), "r")) is ProviderError
    assert isinstance(call_error(Failure("forbidden", "no", 403), "r"), SkipProvider)
    assert isinstance(
        call_error(Failure("conditionNotMet", "constraints/gcp.resourceLocations", 412), "r"), TryNextRegion
    )
    assert isinstance(call_error(Failure("rateLimitExceeded", "", 403), "r"), ProviderUnavailable)


def test_an_operation_tells_all_its_errors() -> None:
    """The first one's code, and each one's words once; an old one has but a status."""
    assert operation_failure(Operation()) is None
    two = Operation(error={"errors": [{"code": "A", "message": "x"}, {"code": "B", "message": "y"}, {"message": "x"}]})
    told = operation_failure(two)
    assert told is not None
    assert (told.code, told.message) == ("A", "x; y")
    old = operation_failure(Operation(http_error_status_code=404, http_error_message="NOT FOUND"))
    assert old == Failure("404", "NOT FOUND")


def test_a_silence_after_an_accepted_launch_is_settled_by_its_operation() -> None:
    """What the operation says is final, whatever the table has for a call."""
    error = launch_error(Failure("INTERNAL_ERROR", "odd"), "r", accepted=True)
    assert (type(error), getattr(error, "ban_for", None)) == (TryNextZone, MINUTE)
