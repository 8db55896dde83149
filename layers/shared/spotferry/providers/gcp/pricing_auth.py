"""How prices are asked for in Google Cloud's name: where its APIs are, and a token for them."""

import json
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

import google.auth
import google.auth.aws
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.auth.transport.urllib3 import Request

from spotferry.providers.gcp.pricing_api import BILLING, COMPUTE, GcpPriceApi
from spotferry.providers.rest import RestApi, connection_pool
from spotferry.types.errors import Misconfigured, ProviderError, ProviderUnavailable

FEDERATION = "GCP_FEDERATION"
"""Variable: the JSON text of a workload identity federation configuration for AWS. It holds no secret."""
PROJECT = "GOOGLE_CLOUD_PROJECT"
"""Variable: the project that the APIs are asked for."""
COMPUTE_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"
BILLING_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"
"""Variables by which the vendor's tools are led to other endpoints; the address goes up to and with the version."""
_SCOPES = (
    "https://www.googleapis.com/auth/compute.readonly",
    "https://www.googleapis.com/auth/cloud-billing.readonly",
)


class _Credentials(Protocol):
    """What is used of the library's credentials."""

    @property
    def valid(self) -> bool: ...

    @property
    def token(self) -> Any: ...  # Any: the library leaves it untyped; it is text once the credentials are valid

    def refresh(self, request: Any) -> None: ...  # Any: the library leaves its requests untyped


def price_api() -> GcpPriceApi:
    """The APIs as the environment says: AWS federation if it is configured, else the library's default credentials.

    Raises:
        Misconfigured: there are no credentials, or no project.
    """
    credentials, project = _credentials()
    if not project:
        raise Misconfigured(f"prices of Google Cloud need a project to ask for: set {PROJECT}")
    pool = connection_pool()
    # The library is typed only in part.
    token = token_source(credentials, Request(pool))  # type: ignore[no-untyped-call]
    return GcpPriceApi(
        compute=RestApi(os.environ.get(COMPUTE_ENDPOINT, COMPUTE).rstrip("/"), token, pool),
        billing=RestApi(os.environ.get(BILLING_ENDPOINT, BILLING).rstrip("/"), token, pool),
        project=project,
    )


def token_source(credentials: _Credentials, request: object) -> Callable[[], str]:
    """Gives the credentials' token, renewed when it is about to end; safe to use from many threads."""
    lock = threading.Lock()

    def token() -> str:
        with lock:
            if not credentials.valid:
                try:
                    credentials.refresh(request)
                except TransportError as error:
                    raise ProviderUnavailable("TransportError", f"no token from Google: {error}") from error
                except GoogleAuthError as error:
                    raise ProviderError(type(error).__name__, f"Google refuses us a token: {error}") from error
            return str(credentials.token)

    return token


def _credentials() -> tuple[_Credentials, str]:
    project = os.environ.get(PROJECT, "")
    if text := os.environ.get(FEDERATION, ""):
        try:
            # The library is typed only in part.
            found = google.auth.aws.Credentials.from_info(json.loads(text), scopes=_SCOPES)  # type: ignore[no-untyped-call]
        except (ValueError, KeyError, TypeError, AttributeError, GoogleAuthError) as error:
            raise Misconfigured(
                f"{FEDERATION} is no federation configuration for AWS: {error}. `gcloud iam workload-identity-pools "
                "create-cred-config --aws` writes one"
            ) from error
        return found, project
    try:
        found, default_project = google.auth.default(scopes=_SCOPES)
    except DefaultCredentialsError as error:
        raise Misconfigured(
            f"there are no credentials for Google Cloud: set {FEDERATION}, or what google-auth reads ({error})"
        ) from error
    return found, project or str(default_project or "")
