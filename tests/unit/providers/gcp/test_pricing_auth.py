"""How prices are asked for in Google Cloud's name; with the real library."""

import json
from typing import Any

import pytest
from google.auth.exceptions import RefreshError, TransportError

from spotferry.providers.context import PricingContext
from spotferry.providers.gcp import pricing, pricing_auth
from spotferry.types.errors import Misconfigured, ProviderUnavailable
from tests.unit.providers.gcp.gcp_answers import NOW
from tests.unit.providers.replay import refused

# The library is typed only in part.
REFUSAL: Exception = RefreshError("unauthorized_client")  # type: ignore[no-untyped-call]
SILENCE: Exception = TransportError("no route")  # type: ignore[no-untyped-call]
FEDERATION = {
    "type": "external_account",
    "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/aws",
    "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
    "token_url": "https://sts.googleapis.com/v1/token",
    "credential_source": {
        "environment_id": "aws1",
        "regional_cred_verification_url": "https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15",
    },
}


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:  # Any: pytest's own path
    """Take everything away from which the library could make credentials."""
    for name in (
        pricing_auth.FEDERATION,
        pricing_auth.PROJECT,
        pricing_auth.COMPUTE_ENDPOINT,
        pricing_auth.BILLING_ENDPOINT,
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


def test_federation_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a federation configuration and a project there is a pricing model, and nobody is asked anything yet."""
    monkeypatch.setenv(pricing_auth.FEDERATION, json.dumps(FEDERATION))
    monkeypatch.setenv(pricing_auth.PROJECT, "p1")
    monkeypatch.setenv(pricing_auth.COMPUTE_ENDPOINT, "http://127.0.0.1:1/compute/v1/")
    api = pricing_auth.price_api()
    assert (api.project, api.compute.base) == ("p1", "http://127.0.0.1:1/compute/v1")
    assert api.billing.base == "https://cloudbilling.googleapis.com/v1"
    assert pricing.build_pricing(PricingContext(lambda: NOW)) is not None


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", '{"type": "external_account", "credential_source": {"environment_id": "aws9"}}']
)
def test_a_wrong_federation_says_how_to_write_one(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What is no configuration is the operator's to mend, and the message says with what."""
    monkeypatch.setenv(pricing_auth.FEDERATION, text)
    monkeypatch.setenv(pricing_auth.PROJECT, "p1")
    with pytest.raises(Misconfigured, match="create-cred-config --aws"):
        pricing_auth.price_api()


def test_without_a_project_nothing_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable."""
    monkeypatch.setenv(pricing_auth.FEDERATION, json.dumps(FEDERATION))
    with pytest.raises(Misconfigured, match=pricing_auth.PROJECT):
        pricing_auth.price_api()


def test_without_credentials_nothing_can_be_asked() -> None:
    """The message names the variable."""
    with pytest.raises(Misconfigured, match=pricing_auth.FEDERATION):
        pricing_auth.price_api()


class Credentials:
    """Credentials whose renewal may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        self.valid = False
        self.token = ""
        self.renewals = 0
        self._error = error

    def refresh(self, _request: object) -> None:
        """Renew, or fail."""
        if self._error is not None:
            raise self._error
        self.renewals += 1
        self.valid, self.token = True, f"t{self.renewals}"


def test_a_token_is_renewed_when_it_ends() -> None:
    """A valid token is used again; one that ended is renewed first."""
    credentials = Credentials()
    token = pricing_auth.token_source(credentials, None)
    assert [token(), token()] == ["t1", "t1"]
    credentials.valid = False
    assert token() == "t2"


def test_a_token_that_is_refused() -> None:
    """A refusal and a silence are told apart, as errors of ours."""
    with refused("RefreshError"):
        pricing_auth.token_source(Credentials(REFUSAL), None)()
    with refused("TransportError", ProviderUnavailable):
        pricing_auth.token_source(Credentials(SILENCE), None)()
