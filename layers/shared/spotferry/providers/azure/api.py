"""Calls to Azure Resource Manager: the SDK's client, retries within a deadline, no vendor's exception beyond here."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.pipeline import PipelineRequest
from azure.core.pipeline.policies import (
    CustomHookPolicy,
    HeadersPolicy,
    RequestIdPolicy,
    RetryPolicy,
    SansIOHTTPPolicy,
    UserAgentPolicy,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.core.rest import HttpRequest, HttpResponse
from azure.mgmt.compute import ComputeManagementClient

from spotferry.providers.azure.credential import credential
from spotferry.providers.azure.errors import MALFORMED, VENDOR_ERRORS, Failure, call_error, failure_of
from spotferry.providers.azure.pricing_api import RESOURCE_MANAGER
from spotferry.providers.azure.pricing_auth import MANAGER_ENDPOINT, SCOPE, SUBSCRIPTION
from spotferry.providers.retries import TOTAL_SECONDS, AskAgain, Deadline, RegionCalls, Timing
from spotferry.types.errors import Misconfigured, ProviderError, ProviderUnavailable, SkipProvider

_Answer = TypeVar("_Answer")

CONNECT_SECONDS = 2.0
READ_SECONDS = 7.0
_PORTS = {"https": 443, "http": 80}


# The SDK's policies are generic in types that differ by transport: Any.
class _Token(SansIOHTTPPolicy[Any, Any]):
    """Puts the credential's token on each request; only on those for the resource manager itself."""

    def __init__(self, who: TokenCredential, base_url: str) -> None:
        super().__init__()
        self._who = who
        self._home = _origin(base_url)

    def on_request(self, request: PipelineRequest[Any]) -> None:
        """Authorize the request.

        Raises:
            ProviderError: it would carry the token elsewhere, or there is no token.
        """
        url = str(request.http_request.url)
        if _origin(url) != self._home:
            raise ProviderError("ForeignLink", f"Azure's answer leads elsewhere: {url[:200]}")
        request.http_request.headers["Authorization"] = f"Bearer {self._token()}"

    def _token(self) -> str:
        try:
            return self._who.get_token(SCOPE).token
        except Misconfigured as error:
            raise SkipProvider("NoCredentials", f"Azure's credentials are not set up: {error}") from error
        except ProviderUnavailable:
            raise
        except ProviderError as error:
            raise SkipProvider(error.code, f"Azure's credentials: {error.message}") from error


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port of an address; links of the resource manager name the usual port."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


@dataclass(frozen=True, slots=True)
class Connection:
    """The clients of one subscription, over one pool of connections."""

    compute: ComputeManagementClient
    # What the compute client does not know (operations, networks, the activity log) is asked plainly.
    arm: PipelineClient[HttpRequest, HttpResponse]
    base_url: str
    subscription: str

    def send(self, request: HttpRequest) -> HttpResponse:
        """Ask the resource manager plainly; a path is completed, and an answer that is an error is raised."""
        if request.url.startswith("/"):
            request.url = f"{self.base_url}{request.url}"
        answer = self.arm.send_request(request)
        answer.raise_for_status()
        return answer


def connect() -> Connection:
    """The clients as the environment says.

    Raises:
        SkipProvider: no subscription is named, or no credentials are.
    """
    subscription = os.environ.get(SUBSCRIPTION, "")
    if not subscription:
        raise SkipProvider("NoCredentials", f"there are no credentials for Azure: set {SUBSCRIPTION}")
    try:
        who = credential()
    except Misconfigured as error:
        raise SkipProvider("NoCredentials", f"Azure's credentials are not set up: {error}") from error
    return connection(who, subscription, os.environ.get(MANAGER_ENDPOINT, RESOURCE_MANAGER).rstrip("/"))


def connection(
    who: TokenCredential, subscription: str, base_url: str, transport: RequestsTransport | None = None
) -> Connection:
    """Clients that repeat nothing (`Deadline` does), wait for no operation and register no provider."""
    transport = transport or RequestsTransport(connection_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS)
    token = _Token(who, base_url)
    policies = [
        RequestIdPolicy(),
        HeadersPolicy(),
        UserAgentPolicy(base_user_agent="spotferry"),
        RetryPolicy.no_retries(),
        token,
        CustomHookPolicy(),
    ]
    compute = ComputeManagementClient(
        who, subscription, base_url, policies=policies, transport=transport, authentication_policy=token
    )
    arm: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(base_url, policies=policies, transport=transport)
    return Connection(compute, arm, base_url, subscription)


class AzureApi:
    """Gives out one connection, made on first use; safe to share between threads."""

    def __init__(self, connect: Callable[[], Connection] = connect, timing: Timing | None = None) -> None:
        self._connect = connect
        self._timing = timing or Timing()
        self._connection: Connection | None = None
        self._lock = threading.Lock()

    def begin(self, region: str) -> "Calls":
        """Calls about one region that belong together: their deadline runs from now.

        Raises:
            SkipProvider: there are no credentials.
        """
        with self._lock:
            # Making the clients loads thousands of classes, which is no call's time.
            self._connection = self._connection or self._connect()
            deadline = Deadline(self._timing, TOTAL_SECONDS, CONNECT_SECONDS + READ_SECONDS)
            return Calls(region, deadline, self._connection)


@dataclass(frozen=True, slots=True)
class Calls(RegionCalls):
    """Calls about one region; together they end before the deadline."""

    connection: Connection

    def ask(
        self,
        call: Callable[[Connection], _Answer],
        refusal: Callable[[Failure, str], ProviderError] = call_error,
    ) -> _Answer:
        """Do a call, again while there is no verdict and time is left.

        Args:
            call: asks once.
            refusal: the error to raise for a failure in a region.

        Raises:
            ProviderUnavailable: throttled, failing, unreachable or slow beyond the deadline.
            SkipProvider, TryNextRegion: we may not.
            ProviderError: as `refusal` says.
        """

        def once() -> _Answer:
            try:
                return call(self.connection)
            except (*VENDOR_ERRORS, *MALFORMED) as error:
                failure = failure_of(error)
                told = refusal(failure, self.region)
                raise (AskAgain(told, failure.retry_after) if failure.transient else told) from error

        return self.deadline.until_answered(once, "the call", self.region)
