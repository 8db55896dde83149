"""How prices are asked for in Azure's name; with the real library."""

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError, ServiceRequestError

from spotferry.providers.azure import pricing, pricing_auth
from spotferry.providers.context import PricingContext
from spotferry.types.errors import Misconfigured, ProviderUnavailable
from tests.unit.providers.azure.azure_answers import NOW
from tests.unit.providers.replay import refused


class Credential:
    """A credential that gives a token or fails."""

    def __init__(self, outcome: AccessToken | Exception) -> None:
        self._outcome = outcome
        self.scopes: list[str] = []

    def get_token(
        self,
        *scopes: str,
        claims: str | None = None,  # noqa: ARG002 - the library's protocol
        tenant_id: str | None = None,  # noqa: ARG002
        enable_cae: bool = False,  # noqa: ARG002
        **_more: object,
    ) -> AccessToken:
        """Give it, or fail."""
        self.scopes.extend(scopes)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def test_the_subscription_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable."""
    monkeypatch.delenv(pricing_auth.SUBSCRIPTION, raising=False)
    with pytest.raises(Misconfigured, match=pricing_auth.SUBSCRIPTION):
        pricing_auth.price_api()


def test_endpoints_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the resource manager is sent a token; other endpoints are a matter of two variables."""
    monkeypatch.setenv(pricing_auth.SUBSCRIPTION, "s1")
    monkeypatch.setenv(pricing_auth.MANAGER_ENDPOINT, "http://127.0.0.1:1/arm/")
    monkeypatch.delenv(pricing_auth.RETAIL_ENDPOINT, raising=False)
    api = pricing_auth.price_api()
    assert (api.subscription, api.manager.base, api.retail.base) == (
        "s1",
        "http://127.0.0.1:1/arm",
        "https://prices.azure.com",
    )
    assert api.manager.token is not None
    assert api.retail.token is None
    assert pricing.build_pricing(PricingContext(lambda: NOW)) is not None


def test_a_token_is_asked_for_the_resource_manager() -> None:
    """The scope is the resource manager's."""
    credential = Credential(AccessToken("t1", 0))
    assert pricing_auth.token_source(credential)() == "t1"
    assert credential.scopes == ["https://management.azure.com/.default"]


def test_a_token_that_is_refused() -> None:
    """A refusal and a silence are told apart, as errors of ours."""
    with refused("ClientAuthenticationError"):
        pricing_auth.token_source(Credential(ClientAuthenticationError("no")))()
    with refused("ServiceRequestError", ProviderUnavailable):
        pricing_auth.token_source(Credential(ServiceRequestError("no route")))()
