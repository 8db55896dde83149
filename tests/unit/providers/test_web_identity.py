"""AWS's own token for another cloud, and what Azure is told with it."""

import subprocess
import sys
from collections.abc import Mapping

import botocore.session
import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from spotferry.providers.web_identity import aws_token
from spotferry.types import Misconfigured, ProviderError, ProviderUnavailable
from tests.unit.providers.replay import refused


class Sts:
    """The SDK's session and its client of STS; gives a token or fails."""

    def __init__(self, outcome: str | Exception) -> None:
        self.outcome = outcome
        self.asked: list[object] = []

    def create_client(self, service: str, region_name: str) -> "Sts":
        """Itself."""
        self.asked.append((service, region_name))
        return self

    def get_web_identity_token(self, **arguments: object) -> Mapping[str, str]:
        """The call."""
        self.asked.append(arguments)
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return {"WebIdentityToken": self.outcome}


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Sts:
    """An STS of eu-west-1 that gives tokens."""
    fake = Sts("signed")
    monkeypatch.setattr(botocore.session, "get_session", lambda: fake)
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    return fake


def test_a_token_is_asked_for_one_audience_in_the_own_region(sts: Sts) -> None:
    """Short-lived, for the one who is to believe it, from the regional STS."""
    assert aws_token("api://x") == "signed"
    assert sts.asked == [
        ("sts", "eu-west-1"),
        {"Audience": ["api://x"], "DurationSeconds": 300, "SigningAlgorithm": "RS256"},
    ]


@pytest.mark.parametrize(
    ("failure", "code", "kind"),
    [
        (ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "G"), "AccessDenied", ProviderError),
        (ClientError({"Error": {"Code": "Throttling"}}, "G"), "Throttling", ProviderUnavailable),
        (NoCredentialsError(), "NoCredentialsError", ProviderUnavailable),
    ],
)
def test_a_token_that_is_not_given_is_an_error_of_ours(
    sts: Sts, failure: Exception, code: str, kind: type[ProviderError]
) -> None:
    """A refusal keeps its code; a silence is no verdict."""
    sts.outcome = failure
    with refused(code, kind):
        aws_token("api://x")


def test_a_region_must_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the variable."""
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(Misconfigured, match="AWS_REGION"):
        aws_token("api://x")


def test_the_sdk_is_not_imported_before_a_token_is_wanted() -> None:
    """Another cloud's adapter that imports this module loads no AWS SDK."""
    code = "import sys, spotferry.providers.web_identity; sys.exit('botocore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
