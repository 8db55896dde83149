"""Who asks: nobody (a local broker), an AWS identity (signed requests), or the bearer of a token."""

import os
import re
from collections.abc import Generator
from urllib.parse import urlsplit

import httpx

from cli.errors import Failed, UsageProblem
from cli.lazy import load

METHODS = ("auto", "none", "iam", "token")
_REGION_IN_HOST = re.compile(r"\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")


def authentication(method: str, url: str) -> httpx.Auth | None:
    """What goes with each request to this address; None for nothing.

    "auto" is a token where SPOTFERRY_TOKEN is set, a signature for an address of AWS, nothing elsewhere.

    Raises:
        UsageProblem: the method lacks something that the environment should have.
    """
    token = os.environ.get("SPOTFERRY_TOKEN", "")
    host = urlsplit(url).hostname or ""
    if method == "auto":
        method = "token" if token else "iam" if _REGION_IN_HOST.search(host) else "none"
    if method == "token":
        if not token:
            raise UsageProblem("--auth token: set SPOTFERRY_TOKEN to the token")
        return BearerToken(token)
    return Signature(_region(host)) if method == "iam" else None


def region_in(host: str) -> str:
    """The region in the name of an API's host; "" when it names none."""
    found = _REGION_IN_HOST.search(host)
    return found[1] if found else ""


def _region(host: str) -> str:
    region = region_in(host) or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
    if not region:
        raise UsageProblem("--auth iam: set AWS_REGION to the broker's region; its address does not tell")
    return region


class BearerToken(httpx.Auth):
    """A token in the Authorization header."""

    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class Signature(httpx.Auth):
    """An AWS signature (version 4) by the credentials that the AWS tools would take here."""

    requires_request_body = True

    def __init__(self, region: str) -> None:
        self._region = region
        self._credentials = load("botocore.session", "Session")().get_credentials()
        if self._credentials is None:
            raise Failed("--auth iam: there are no AWS credentials here; sign in (`aws sso login`) or set AWS_PROFILE")

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the headers of the signature."""
        aws_request = load("botocore.awsrequest", "AWSRequest")(
            method=request.method,
            url=str(request.url),
            data=request.content,
            headers={"host": request.headers["host"]},
        )
        signer = load("botocore.auth", "SigV4Auth")(self._credentials, "execute-api", self._region)
        signer.add_auth(aws_request)
        request.headers.update(dict(aws_request.headers.items()))
        yield request
