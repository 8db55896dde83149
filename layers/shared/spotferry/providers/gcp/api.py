"""Calls to Compute Engine: clients made once, retries within a deadline, and no vendor's exception beyond here."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from google.api_core.client_options import ClientOptions
from google.auth.credentials import Credentials
from google.cloud.compute_v1 import ImagesClient, InstancesClient, ZoneOperationsClient

from spotferry.providers.gcp.auth import COMPUTE_ENDPOINT, PROJECT, credentials_for
from spotferry.providers.gcp.errors import VENDOR_ERRORS, Failure, call_error, failure_of
from spotferry.providers.retries import TOTAL_SECONDS, AskAgain, Deadline, RegionCalls, Timing
from spotferry.types.errors import Misconfigured, ProviderError, ProviderUnavailable, SkipProvider

Answer = TypeVar("Answer")
Translate = Callable[[Failure, str], ProviderError]
"""Makes the error of ours for a failure in a region."""

READ_SECONDS = 6.0
ONE_TRY_SECONDS = 2 * READ_SECONDS
"""One try may have to ask for a token first."""
_VERSION = "/compute/v1"
_SCOPES = ("https://www.googleapis.com/auth/compute",)


@dataclass(frozen=True, slots=True)
class Clients:
    """The clients of one project; the SDK does not repeat calls by itself, `Deadline` does."""

    project: str
    instances: InstancesClient
    operations: ZoneOperationsClient
    images: ImagesClient


def connect() -> Clients:
    """Clients as the environment says (`auth`); they ask for a token with their first call.

    Raises:
        Misconfigured: there are no credentials, or no project.
    """
    credentials, project = credentials_for(_SCOPES)
    if not project:
        raise Misconfigured(f"machines on Google Cloud need a project to be in: set {PROJECT}")
    return clients(credentials, project, os.environ.get(COMPUTE_ENDPOINT, ""))


def clients(credentials: Credentials, project: str, endpoint: str = "") -> Clients:
    """Clients over these credentials; the endpoint goes up to the version, "" is Google's own."""
    address = endpoint.rstrip("/").removesuffix(_VERSION)
    options = ClientOptions(api_endpoint=address) if address else None
    return Clients(
        project,
        InstancesClient(credentials=credentials, client_options=options),
        # The one that the SDK makes for its operations asks Google's own host, whatever the endpoint.
        ZoneOperationsClient(credentials=credentials, client_options=options),
        ImagesClient(credentials=credentials, client_options=options),
    )


class GcpApi:
    """Gives out the clients, made on first use; safe to share between threads."""

    def __init__(self, make: Callable[[], Clients] = connect, timing: Timing | None = None) -> None:
        self._make = make
        self._timing = timing or Timing()
        self._clients: Clients | None = None
        self._lock = threading.Lock()

    def begin(self, region: str) -> "Calls":
        """Calls about one region that belong together: their deadline runs from now."""
        return Calls(region, Deadline(self._timing, TOTAL_SECONDS, ONE_TRY_SECONDS), self)

    def clients(self) -> Clients:
        """The clients.

        Raises:
            Misconfigured: see `connect`.
        """
        with self._lock:
            if self._clients is None:
                self._clients = self._make()
            return self._clients


@dataclass(frozen=True, slots=True)
class Calls(RegionCalls):
    """Calls about one region; together they end before the deadline."""

    api: GcpApi

    @property
    def project(self) -> str:
        """The project that is asked about.

        Raises:
            SkipProvider: there is none, or there are no credentials.
        """
        return self._clients().project

    def ask(
        self,
        method: Callable[[Clients], Callable[..., Answer]],
        request: Mapping[str, object],
        translate: Translate = call_error,
    ) -> Answer:
        """Call a method of one of the clients, which must be one that may be repeated.

        Args:
            method: picks it.
            request: its request, the project apart.
            translate: makes the error of a refusal.

        Raises:
            ProviderUnavailable: throttled, failing, unreachable or slow beyond the deadline.
            SkipProvider, TryNextRegion: we may not.
            ProviderError: any other refusal, as `translate` has it.
        """

        def once() -> Answer:
            clients = self._clients()
            asked = {"project": clients.project, **request}
            try:
                return method(clients)(request=asked, retry=None, timeout=READ_SECONDS)
            except VENDOR_ERRORS as error:
                failure = failure_of(error)
                refusal = translate(failure, self.region)
                raise (AskAgain(refusal) if failure.transient else refusal) from error

        return self.deadline.until_answered(once, "another call", self.region)

    def must_be(self, kind: str, wanted: str) -> None:
        """Whether an answer is of the kind that was asked for: an empty list is one, an answer that is none is not.

        Raises:
            ProviderUnavailable: it is not.
        """
        if kind != wanted:
            raise ProviderUnavailable("MalformedAnswer", f"wanted {wanted}, was answered {kind!r}", self.region)

    def _clients(self) -> Clients:
        try:
            return self.api.clients()
        except Misconfigured as error:
            raise SkipProvider("NoCredentials", str(error), self.region) from error
