"""How prices are asked for in Azure's name: where its APIs are, and a token for the one that wants one."""

import os
from collections.abc import Callable

from azure.core.credentials import TokenCredential
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError, ServiceResponseError

from spotferry.providers.azure.credential import credential
from spotferry.providers.azure.pricing_api import RESOURCE_MANAGER, RETAIL, AzurePriceApi
from spotferry.providers.rest import RestApi, connection_pool
from spotferry.types.errors import Misconfigured, ProviderError, ProviderUnavailable

SUBSCRIPTION = "AZURE_SUBSCRIPTION_ID"
"""Variable: the subscription whose locations and SKUs count."""
MANAGER_ENDPOINT = "AZURE_RESOURCE_MANAGER_URL"
RETAIL_ENDPOINT = "AZURE_RETAIL_PRICES_URL"
"""Variables that lead to other endpoints: a sovereign cloud's, or a laptop's."""
SCOPE = f"{RESOURCE_MANAGER}/.default"


def price_api() -> AzurePriceApi:
    """The APIs as the environment says: a federated role, a service principal or a workload's identity.

    Raises:
        Misconfigured: no subscription is named, or `credential` lacks something.
    """
    subscription = os.environ.get(SUBSCRIPTION, "")
    if not subscription:
        raise Misconfigured(f"prices of Azure need a subscription to ask for: set {SUBSCRIPTION}")
    pool = connection_pool()
    who = credential()
    return AzurePriceApi(
        retail=RestApi(os.environ.get(RETAIL_ENDPOINT, RETAIL).rstrip("/"), pool=pool),
        manager=RestApi(os.environ.get(MANAGER_ENDPOINT, RESOURCE_MANAGER).rstrip("/"), token_source(who), pool),
        subscription=subscription,
    )


def token_source(who: TokenCredential) -> Callable[[], str]:
    """Gives the credential's token; the library keeps it, renews it, and is safe to use from many threads."""

    def token() -> str:
        try:
            return who.get_token(SCOPE).token
        except ClientAuthenticationError as error:
            raise ProviderError(type(error).__name__, f"Azure refuses us a token: {error.message}") from error
        except (ServiceRequestError, ServiceResponseError) as error:
            raise ProviderUnavailable(type(error).__name__, f"no token from Azure: {error.message}") from error

    return token
