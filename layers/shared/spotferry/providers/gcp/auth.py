"""Who the broker is for Google Cloud, and which project it asks about; from the environment."""

import json
import os
from collections.abc import Sequence

import google.auth
import google.auth.aws
from google.auth.credentials import Credentials
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError

from spotferry.types.errors import Misconfigured

FEDERATION = "GCP_FEDERATION"
"""Variable: the JSON text of a workload identity federation configuration for AWS. It holds no secret."""
PROJECT = "GOOGLE_CLOUD_PROJECT"
"""Variable: the project that the APIs are asked for."""
COMPUTE_ENDPOINT = "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE"
"""Variable by which the vendor's tools are led to another endpoint; the address goes up to and with the version."""


def credentials_for(scopes: Sequence[str]) -> tuple[Credentials, str]:
    """Credentials with these scopes, and the project: AWS federation if it is configured, else the library's default.

    Returns:
        The credentials, which have asked nobody yet; the project, "" when nothing names one.

    Raises:
        Misconfigured: there are no credentials.
    """
    project = os.environ.get(PROJECT, "")
    if text := os.environ.get(FEDERATION, ""):
        try:
            # The library is typed only in part.
            found: Credentials = google.auth.aws.Credentials.from_info(json.loads(text), scopes=scopes)  # type: ignore[no-untyped-call]
        except (ValueError, KeyError, TypeError, AttributeError, GoogleAuthError) as error:
            raise Misconfigured(
                f"{FEDERATION} is no federation configuration for AWS: {error}. `gcloud iam workload-identity-pools "
                "create-cred-config --aws` writes one"
            ) from error
        return found, project
    try:
        found, default_project = google.auth.default(scopes=scopes)
    except DefaultCredentialsError as error:
        raise Misconfigured(
            f"there are no credentials for Google Cloud: set {FEDERATION}, or what google-auth reads ({error})"
        ) from error
    return found, project or str(default_project or "")
