"""HTTP for all functions that have it: one router, one table from errors to answers, one way to read a body."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from spotferry.runtime.observability import count, logger
from spotferry.runtime.router import Response, Router
from spotferry.types.errors import (
    Conflict,
    IdempotencyConflict,
    InvalidInput,
    Misconfigured,
    NotFound,
    NotPossibleNow,
    NotYet,
    Problem,
    ProviderError,
    SpotferryError,
    StaleAttempt,
    TooLarge,
    Unauthenticated,
    wrong,
)
from spotferry.types.faults import problems_of

BODY_LIMIT_BYTES = 128 * 1024
"""A job file takes 64 KiB at most, and JSON may need more for the same text."""

AGENT_BODY_LIMIT_BYTES = 6 * 1024 * 1024
"""What Lambda hands over at most: an agent's call brings a piece of log, or the list of its outputs' files."""

_KEY_LENGTH = 256
_MOST_DIGITS = 1000

STATUS: Mapping[type[SpotferryError], HTTPStatus] = {
    InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    NotFound: HTTPStatus.NOT_FOUND,
    IdempotencyConflict: HTTPStatus.CONFLICT,
    NotPossibleNow: HTTPStatus.CONFLICT,
    Unauthenticated: HTTPStatus.UNAUTHORIZED,
    StaleAttempt: HTTPStatus.GONE,
    Conflict: HTTPStatus.SERVICE_UNAVAILABLE,
    NotYet: HTTPStatus.SERVICE_UNAVAILABLE,
    ProviderError: HTTPStatus.BAD_GATEWAY,
    Misconfigured: HTTPStatus.INTERNAL_SERVER_ERROR,
}
"""What each class of error is over HTTP; a subclass is what its nearest ancestor here is."""


class Malformed(InvalidInput):
    """The body cannot even be read: 400, where 422 means read but wrong."""


def status_of(error: SpotferryError) -> HTTPStatus:
    """The status of an error."""
    if isinstance(error, Malformed):
        return HTTPStatus.BAD_REQUEST
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), HTTPStatus.INTERNAL_SERVER_ERROR)


def problem(error: SpotferryError) -> Response[str]:
    """The error as a problem document (RFC 9457), with the fields that are wrong."""
    status = status_of(error)
    document: dict[str, Any] = {  # Any: JSON
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": str(error),
        "kind": type(error).__name__,
    }
    if isinstance(error, InvalidInput):
        document["errors"] = [
            {"field": p.field, "message": p.message} | ({"line": p.line} if p.line else {}) for p in error.problems
        ]
    logger.info("refused", extra={"status": status.value, "detail": str(error)})
    count(f"Answer{status.value}")
    return Response(status.value, "application/problem+json", json.dumps(document))


def invalid(error: ValidationError) -> InvalidInput:
    """A value that is not what it should be, as problems that name the field."""
    return InvalidInput(problems_of(error))


def resolver() -> Router:
    """Routes that answer every error of ours as a problem document."""
    return Router(lambda error: problem(invalid(error) if isinstance(error, ValidationError) else error))


def body_text(app: Router, limit_bytes: int = BODY_LIMIT_BYTES) -> str:
    """The request's body as text.

    Raises:
        TooLarge: it is over the limit.
        InvalidInput: it is empty or not UTF-8.
    """
    event = app.current_event
    try:
        content = base64.b64decode(event.body, validate=True) if event.is_base64_encoded else event.body.encode()
        text = content.decode()
    except (binascii.Error, UnicodeError) as error:
        raise Malformed([Problem("", "the body is not UTF-8 text")]) from error
    if len(content) > limit_bytes:
        raise TooLarge(f"the body has {len(content):,} bytes; at most {limit_bytes:,} are taken")
    if not text.strip():
        raise Malformed([Problem("", "the body is empty")])
    return text


def parse_json(text: str) -> Any:  # Any: JSON
    """What strict JSON says: no NaN, no Infinity.

    Raises:
        ValueError: it is not JSON, or nested deeper than anybody writes.
        Malformed: it holds half of a character, which nothing could store.
    """
    try:
        loaded = json.loads(text, parse_constant=_refuse_constant, parse_int=_whole)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if "\\ud" in text.lower():
        try:
            json.dumps(loaded, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise Malformed([Problem("", "the body holds half of a character (a lone surrogate escape)")]) from error
    return loaded


def _whole(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits is too long")
    return int(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


def json_body(app: Router, limit_bytes: int = BODY_LIMIT_BYTES) -> dict[str, Any]:  # Any: JSON
    """The request's body as a JSON object.

    Raises:
        TooLarge, InvalidInput: it is not one.
    """
    try:
        loaded = parse_json(body_text(app, limit_bytes))
    except ValueError as error:
        raise Malformed([Problem("", f"the body is not JSON: {error}")]) from error
    if not isinstance(loaded, dict):
        raise Malformed([Problem("", "the body is not a JSON object")])
    return loaded


def optional_json(app: Router) -> dict[str, Any]:  # Any: JSON
    """The request's body as a JSON object; {} where there is none.

    Raises:
        TooLarge, InvalidInput: it is something else.
    """
    return json_body(app) if (app.current_event.body or "").strip() else {}


def idempotency_key(app: Router) -> str:
    """The request's Idempotency-Key; "" without one.

    Raises:
        InvalidInput: it is not what a key can be.
    """
    key = app.current_event.headers.get("idempotency-key")
    if key is not None and (not 0 < len(key) <= _KEY_LENGTH or not key.isprintable()):
        raise wrong("Idempotency-Key", f"must be 1 to {_KEY_LENGTH} printable characters")
    return key or ""


def query(app: Router) -> Mapping[str, str]:
    """The query string; an empty cursor is none, as loops over pages begin with it.

    Raises:
        InvalidInput: a parameter is empty: whoever said it meant something.
    """
    given = app.current_event.query_string_parameters
    said = {name: value for name, value in given.items() if value or name != "cursor"}
    empty = [Problem(name, "is empty; leave it out if it is not meant") for name, value in said.items() if not value]
    if empty:
        raise InvalidInput(empty)
    return said


def whole_number(app: Router, name: str, default: int, most: int) -> int:
    """A number of the query string.

    Raises:
        InvalidInput: it is not a whole number from 1 to `most`.
    """
    said = query(app).get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,9}", said) or not 1 <= int(said) <= most:
        raise InvalidInput([Problem(name, f"must be a whole number from 1 to {most}")])
    return int(said)


def caller(app: Router) -> str:
    """Who calls: the IAM user or role, or the token's subject; "local" where nobody authenticates."""
    context = app.current_event.raw_event.get("requestContext") or {}
    authorizer: Mapping[str, Any] = context.get("authorizer") or {}  # Any: whatever authorizer the deployment has
    iam, jwt = authorizer.get("iam") or {}, authorizer.get("jwt") or {}
    return str(_identity(str(iam.get("userArn") or "")) or (jwt.get("claims") or {}).get("sub") or "local")


def _identity(arn: str) -> str:
    """The identity that lasts: of an assumed role the role, since the session's name is another one every time."""
    role, session, _ = arn.partition(":assumed-role/")
    return f"{role}{session}{arn.split('/')[1]}" if session else arn
