"""Calls of the HTTP API (payload format 2.0): the function of ours that takes each, and its answer as the API wants it.

The libraries' own resolvers bring asyncio and the classes of every kind of event along: a quarter of a cold start.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from spotferry.types.base import Json
from spotferry.types.errors import NotFound, SpotferryError
from spotferry.types.words import cut

_PARAMETER = re.compile(r"<(\w+)>")
_SEGMENT = r"(?P<\1>[^/]+)"

Body = TypeVar("Body")
Handler = TypeVar("Handler", bound=Callable[..., object])


class Response(Generic[Body]):
    """An answer with a status of its own.

    Args:
        status_code: of HTTP.
        content_type: of the body.
        body: text and bytes go as they are, anything else as JSON.
        headers: beside the type of the content.
    """

    def __init__(
        self, status_code: int, content_type: str, body: Body, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.status_code = status_code
        self.content_type = content_type
        self.body = body
        self.headers = headers

    def to_json(self) -> Json:
        """The answer as the API takes it."""
        body, encoded = _encode(self.body)
        return {
            "statusCode": self.status_code,
            "headers": {"Content-Type": self.content_type, **self.headers},
            "body": body,
            "isBase64Encoded": encoded,
        }


class Call:
    """One call, as the API hands it over.

    Attributes:
        raw_event: all of it.
    """

    def __init__(self, raw_event: Mapping[str, Any]) -> None:  # Any: the API's JSON
        self.raw_event = raw_event

    @property
    def http_method(self) -> str:
        """The verb, in capitals."""
        return str(self.raw_event["requestContext"]["http"]["method"]).upper()

    @property
    def path(self) -> str:
        """The path, without the query."""
        return str(self.raw_event["rawPath"])

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by their names in lower case."""
        return {str(name).lower(): str(value) for name, value in (self.raw_event.get("headers") or {}).items()}

    @property
    def query_string_parameters(self) -> Mapping[str, str]:
        """The query; a name that was given twice has both values, with a comma between."""
        return self.raw_event.get("queryStringParameters") or {}

    @property
    def body(self) -> str:
        """The body as it came: see `is_base64_encoded`."""
        return self.raw_event.get("body") or ""

    @property
    def is_base64_encoded(self) -> bool:
        """The body is the base64 of the one that was sent."""
        return bool(self.raw_event.get("isBase64Encoded"))


class Router:
    """Routes of one function, by verb and path; `<name>` in a path is a parameter, which holds no slash.

    A function that is not shared between threads has one call at a time: `current_event`.

    Args:
        problem: the answer to an error of ours, or to a value that is not what it should be; others are Lambda's.
    """

    current_event: Call

    def __init__(self, problem: Callable[[SpotferryError | ValidationError], Response[str]]) -> None:
        self._problem = problem
        self._routes: list[tuple[str, re.Pattern[str], Callable[..., object]]] = []

    def get(self, path: str) -> Callable[[Handler], Handler]:
        """Have GETs of this path answered by the function; what it returns goes as JSON unless it is a `Response`."""
        return self._route("GET", path)

    def post(self, path: str) -> Callable[[Handler], Handler]:
        """The same for POSTs."""
        return self._route("POST", path)

    def options(self, path: str) -> Callable[[Handler], Handler]:
        """The same for the question what may be sent here."""
        return self._route("OPTIONS", path)

    def resolve(self, event: Mapping[str, Any]) -> Json:  # Any: the API's JSON
        """The answer to one call."""
        self.current_event = Call(event)
        try:
            answer = self._answer()
        except (SpotferryError, ValidationError) as error:
            answer = self._problem(error)
        response = answer if isinstance(answer, Response) else Response(HTTPStatus.OK.value, "application/json", answer)
        return response.to_json()

    def _answer(self) -> object:
        method, path = self.current_event.http_method, self.current_event.path
        for verb, pattern, handler in self._routes:
            found = pattern.fullmatch(path) if verb == method else None
            if found is not None:
                return handler(**found.groupdict())
        raise NotFound(f"there is no {cut(method)} {cut(path)}")

    def _route(self, method: str, path: str) -> Callable[[Handler], Handler]:
        pattern = re.compile(_PARAMETER.sub(_SEGMENT, path))

        def register(handler: Handler) -> Handler:
            # Paths without parameters come first: they mean one thing only.
            self._routes.insert(len(self._routes) if pattern.groups else 0, (method, pattern, handler))
            return handler

        return register


def _encode(body: object) -> tuple[str, bool]:
    """The body as text, and whether that is base64."""
    if isinstance(body, bytes):
        return base64.b64encode(body).decode(), True
    return body if isinstance(body, str) else json.dumps(body, separators=(",", ":"), default=str), False
