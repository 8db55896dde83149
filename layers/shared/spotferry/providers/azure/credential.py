"""Who we are to Azure: the function's federated AWS role, a service principal, or a workload's own identity."""

import os

from azure.core.credentials import TokenCredential
from azure.identity import (
    ChainedTokenCredential,
    ClientAssertionCredential,
    EnvironmentCredential,
    ManagedIdentityCredential,
)

from spotferry.providers.web_identity import aws_token
from spotferry.types.errors import Misconfigured

FEDERATION = "AZURE_FEDERATION"
"""Variable: "aws" where the application trusts the AWS account's tokens, so that there is no secret; else empty."""
TENANT, CLIENT = "AZURE_TENANT_ID", "AZURE_CLIENT_ID"
AUDIENCE = "api://AzureADTokenExchange"
"""What a federated credential of Azure wants in a token, unless somebody changed it there."""


def credential() -> TokenCredential:
    """The credential as the environment says; the library keeps its tokens, renews them, and is safe between threads.

    Raises:
        Misconfigured: federation is asked for, but not with whom, or of another kind than "aws".
    """
    federation = os.environ.get(FEDERATION, "")
    if not federation:
        return ChainedTokenCredential(EnvironmentCredential(), ManagedIdentityCredential())
    if federation != "aws":
        raise Misconfigured(f'{FEDERATION} is {federation!r}: only "aws" is known')
    tenant, client = os.environ.get(TENANT, ""), os.environ.get(CLIENT, "")
    if not tenant or not client:
        raise Misconfigured(f"federation with Azure needs the tenant and the application: set {TENANT} and {CLIENT}")
    return ClientAssertionCredential(tenant, client, lambda: aws_token(AUDIENCE))
