"""What the faces of REST APIs have in common: JSON answers, bearer tokens, ordered trouble, rows in pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from local.market_faults import Faults

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

# Any: JSON as each protocol has it.
Json = dict[str, Any]


class RestError(Exception):
    """A refusal; each face puts it in its cloud's form."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.code = code
        self.message = message


def parameters_of(environ: WSGIEnvironment) -> dict[str, str]:
    """The query's parameters; of one that is given twice the last."""
    parsed = parse_qs(str(environ.get("QUERY_STRING", "")), keep_blank_values=True)
    return {name: values[-1] for name, values in parsed.items()}


def own_url(environ: WSGIEnvironment) -> str:
    """Where the client reached this server."""
    return f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}"


def send(start_response: StartResponse, status: int, answer: Json) -> Iterable[bytes]:
    """Answer with JSON."""
    raw = json.dumps(answer).encode()
    headers = [("Content-Type", "application/json; charset=UTF-8"), ("Content-Length", str(len(raw)))]
    start_response(f"{status} {HTTPStatus(status).phrase}", headers)
    return [raw]


def admit(environ: WSGIEnvironment, faults: Faults, account: str, token: str) -> None:
    """Let a request in that carries the token.

    Args:
        environ: the request.
        faults: has the account's credentials revoked, or not.
        account: the name that the levers know the credentials by.
        token: the one that was given out.

    Raises:
        RestError: it carries none, another one, or credentials that were revoked.
    """
    if environ.get("HTTP_AUTHORIZATION") != f"Bearer {token}" or faults.revoked(account):
        raise RestError(401, "UNAUTHENTICATED", "The request has no valid access token.")


def suffer(faults: Faults, operation: str, region: str) -> None:
    """Give the call the trouble that was ordered for it.

    Raises:
        RestError: an error was ordered for the operation, or the region is denied.
    """
    if (code := faults.denial(region)) is not None:
        raise RestError(403, code, f"Access to {region} is denied.")
    if (fault := faults.take_error(operation, region)) is not None:
        raise RestError(fault.status, fault.code, fault.message)


def page_of(rows: Sequence[Json], start: str, size: int) -> tuple[Sequence[Json], int | None]:
    """The rows from a place on, and the place of the next page.

    Raises:
        RestError: the place is none that was given.
    """
    if start and not start.isdecimal():
        raise RestError(400, "INVALID_ARGUMENT", f"{start} is no page.")
    first = int(start or 0)
    following = first + size
    return rows[first:following], following if following < len(rows) else None
