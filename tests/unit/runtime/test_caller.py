"""Who calls the user API, as the gateway tells it."""

from typing import Any

import pytest

from spotferry.runtime.http import caller, resolver

USER = "arn:aws:iam::123456789012:user/ann"
ROLE = "arn:aws:sts::123456789012:assumed-role/ci/run-{}"


def _called_by(authorizer: dict[str, Any]) -> str:  # Any: whatever authorizer the deployment has
    app = resolver()
    app.get("/who")(lambda: {"caller": caller(app)})
    event = {
        "version": "2.0",
        "rawPath": "/who",
        "headers": {},
        "requestContext": {"http": {"method": "GET", "path": "/who"}, "stage": "$default", "authorizer": authorizer},
    }
    return str(app.resolve(event)["body"])


@pytest.mark.parametrize(
    ("authorizer", "who"),
    [
        ({"iam": {"userArn": USER}}, USER),
        ({"jwt": {"claims": {"sub": "u-1"}}}, "u-1"),
        ({}, "local"),
    ],
)
def test_the_caller_is_who_the_gateway_says(authorizer: dict[str, Any], who: str) -> None:
    """An IAM identity, a token's subject, or "local" where nobody authenticates."""
    assert who in _called_by(authorizer)


def test_a_role_is_one_caller_whatever_its_sessions_are_called() -> None:
    """A pipeline that assumes its role anew each run keeps its jobs and its idempotency keys."""
    first, second = (_called_by({"iam": {"userArn": ROLE.format(n)}}) for n in (1, 2))
    assert first == second
    assert "assumed-role/ci" in first
