"""Who we are to Azure, as the environment says."""

import pytest
from azure.identity import ChainedTokenCredential, ClientAssertionCredential

from spotferry.providers.azure import credential as azure_credential
from spotferry.providers.azure.credential import CLIENT, FEDERATION, TENANT, credential
from spotferry.types import Misconfigured


@pytest.fixture(autouse=True)
def _nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (FEDERATION, TENANT, CLIENT):
        monkeypatch.delenv(name, raising=False)


def test_without_federation_the_library_looks_for_itself() -> None:
    """A service principal in the environment, or a workload's identity."""
    assert isinstance(credential(), ChainedTokenCredential)


def test_federation_shows_the_aws_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """The assertion is a token of AWS for Azure's exchange, asked for when one is needed."""
    asked: list[str] = []
    made: list[object] = []

    def token(audience: str) -> str:
        asked.append(audience)
        return "signed"

    def build(tenant: str, client: str, assertion: object) -> ClientAssertionCredential:
        made.extend((tenant, client, assertion))
        return ClientAssertionCredential(tenant, client, lambda: "")

    monkeypatch.setattr(azure_credential, "aws_token", token)
    monkeypatch.setattr(azure_credential, "ClientAssertionCredential", build)
    for name, value in ((FEDERATION, "aws"), (TENANT, "t1"), (CLIENT, "c1")):
        monkeypatch.setenv(name, value)
    credential()
    assert made[:2] == ["t1", "c1"]
    assert asked == []
    assert callable(made[2])
    assert made[2]() == "signed"
    assert asked == ["api://AzureADTokenExchange"]


@pytest.mark.parametrize(("federation", "tenant", "names"), [("gcp", "t1", FEDERATION), ("aws", "", TENANT)])
def test_what_federation_lacks_is_named(
    monkeypatch: pytest.MonkeyPatch, federation: str, tenant: str, names: str
) -> None:
    """The message names the variable."""
    monkeypatch.setenv(FEDERATION, federation)
    monkeypatch.setenv(TENANT, tenant)
    with pytest.raises(Misconfigured, match=names):
        credential()
