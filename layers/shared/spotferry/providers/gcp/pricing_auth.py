"""How prices are asked for in Google Cloud's name: where its APIs are, and a token for them."""

import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.urllib3 import Request

from spotferry.providers.gcp.auth import COMPUTE_ENDPOINT, FEDERATION, PROJECT, credentials_for
from spotferry.providers.gcp.pricing_api import BILLING, COMPUTE, GcpPriceApi
from spotferry.providers.rest import RestApi, connection_pool
from spotferry.types.errors import Misconfigured, ProviderError, ProviderUnavailable

__all__ = ["BILLING_ENDPOINT", "COMPUTE_ENDPOINT", "FEDERATION", "PROJECT", "price_api", "token_source"]

BILLING_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDBILLING"
"""Variable by which the vendor's tools are led to another endpoint; the address goes up to and with the version."""
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
    credentials, project = credentials_for(_SCOPES)
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
