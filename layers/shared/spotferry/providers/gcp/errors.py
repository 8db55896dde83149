"""What Compute Engine's refusals mean: from the SDK's exceptions and from operations to errors of ours.

The only place that knows a vendor's exception: everything above sees `spotferry.types.errors`. A refusal comes in one
of two ways, and `verdicts` has both: as an error of an HTTP answer (its `reason`, in lower camel case), or as the error
of an operation that was accepted first (its `code`, in upper case).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from google.api_core.exceptions import GoogleAPICallError, GoogleAPIError
from google.auth.exceptions import GoogleAuthError, TransportError
from google.cloud.compute_v1 import Operation
from google.protobuf.json_format import Error as JsonFormatError
from requests.exceptions import RequestException

from spotferry.providers.gcp.verdicts import BRIEFLY_NOT, LAUNCH_ERRORS, verdict_of
from spotferry.providers.verdict import DENIED, REGION_CLOSED, WAIT, Verdict
from spotferry.types.errors import ProviderError, ProviderUnavailable

VENDOR_ERRORS = (GoogleAPIError, GoogleAuthError, RequestException, JsonFormatError, UnicodeDecodeError)
"""All that a call through the SDK may raise; they have no base class in common."""
VendorError = GoogleAPIError | GoogleAuthError | RequestException | JsonFormatError | UnicodeDecodeError

NO_VERDICT_STATUS = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """A call or an operation that failed, in Google's own words.

    Attributes:
        code: Google's code, or the name of the SDK's exception when no answer came.
        message: the words with it.
        status: the HTTP status; 0 when no answer came, or for an operation.
        lost: no answer came, or none that could be read: the call may have been carried out.
        refused_us: the library could get no token.
    """

    code: str
    message: str
    status: int = 0
    lost: bool = False
    refused_us: bool = False

    @property
    def transient(self) -> bool:
        """The same request may get over it; a verdict is final, whatever its status (a stockout comes as a 503)."""
        known = LAUNCH_ERRORS.get(self.code)
        if known is not None:
            return known is WAIT
        return self.lost or self.status >= NO_VERDICT_STATUS or self.status == HTTPStatus.TOO_MANY_REQUESTS


def failure_of(error: VendorError) -> Failure:
    """What the SDK's exception says."""
    if isinstance(error, GoogleAPICallError):
        return _answered(error)
    if isinstance(error, GoogleAuthError):
        # Google itself refuses a token, or what the token is made of cannot be had; a silence is neither.
        silent = isinstance(error, TransportError) or bool(error.retryable)
        return Failure(type(error).__name__, _words(error), lost=silent, refused_us=not silent)
    return Failure(type(error).__name__, _words(error), lost=True)


def operation_failure(operation: Operation) -> Failure | None:
    """Why an operation failed; None when it has not. The first of several errors counts, all are told."""
    errors = list(operation.error.errors)
    if errors:
        words = "; ".join(dict.fromkeys(str(error.message) for error in errors))
        return Failure(str(errors[0].code) or "Unknown", words)
    if operation.http_error_status_code:
        return Failure(str(operation.http_error_status_code), str(operation.http_error_message))
    return None


def launch_error(failure: Failure, region: str, *, own_image: bool = False, accepted: bool = False) -> ProviderError:
    """The error of ours for a launch that failed; the code and the words are kept.

    Args:
        failure: what Google said.
        region: of the launch.
        own_image: the job named its image itself: what is wrong with it closes nothing to other jobs.
        accepted: an operation had been accepted, so that its end is final: the same request only finds it again.
    """
    if failure.lost and not accepted:
        return ProviderUnavailable(failure.code, failure.message, region)
    verdict = _verdict(failure, own_image=own_image)
    if accepted and verdict is WAIT:
        verdict = BRIEFLY_NOT
    return verdict.error_of(failure, region)


def call_error(failure: Failure, region: str) -> ProviderError:
    """The error of ours for any other call: denials keep their class, the rest has none that a placement needs."""
    if failure.transient:
        return ProviderUnavailable(failure.code, failure.message, region)
    verdict = _verdict(failure, own_image=False)
    if verdict in {DENIED, REGION_CLOSED}:
        return verdict.error_of(failure, region)
    return ProviderError(failure.code, failure.message, region)


def _verdict(failure: Failure, *, own_image: bool) -> Verdict:
    if failure.refused_us or failure.status == HTTPStatus.UNAUTHORIZED:
        return DENIED
    if failure.transient:
        return WAIT
    return verdict_of(failure.code, failure.message, own_image=own_image)


def _answered(error: GoogleAPICallError) -> Failure:
    """An answer's own reason; a detail that names one says more than the status does."""
    status = int(error.code or 0)
    first = next((e for e in error.errors if isinstance(e, Mapping)), {})
    listed = str(first.get("reason") or "")
    named = str(error.reason or "")
    code = named if named in LAUNCH_ERRORS or not listed else listed
    words = str(first.get("message") or error.message or f"HTTP {status}")
    return Failure(code or str(status), words[:1000], status)


def _words(error: Exception) -> str:
    """The exception's text; the arguments of Google's library hold whole answers, which are cut."""
    return str(error)[:500] or type(error).__name__
