"""The HTTP way in for clouds' signals: who may speak for a cloud, and the events in what they send.

Google Cloud's events come from our own relay, with a token of Google's that API Gateway has checked: what is left to
check is whose it is. Azure's come from Event Grid, which brings the code of its subscription's address. Neither sends
again what was answered with 400, 401 or 413 (Event Grid keeps it where its subscription has a dead-letter destination),
and both send again after a 5xx: so a malformed event is a 400, never a 5xx.
"""

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from spotferry.runtime.http import Malformed, body_text, parse_json
from spotferry.runtime.observability import count, logger
from spotferry.runtime.router import Response, Router
from spotferry.runtime.settings import Settings
from spotferry.types.errors import InvalidInput, NotFound, Problem, Unauthenticated

Event = dict[str, Any]  # Any: a cloud's event as it came

BODY_LIMIT_BYTES = 1024 * 1024
"""Event Grid sends batches of at most 1 MB."""
EVENT_LIMIT_BYTES = 128 * 1024
"""Of one event: announcements have a few KB, and one about a machine that nobody knows yet has to fit into a queue."""
VALIDATION = "Microsoft.EventGrid.SubscriptionValidationEvent"


def relayed_event(app: Router, settings: Settings) -> Event:
    """The one event that the relay of Google Cloud sends.

    Raises:
        NotFound: this deployment has no relay.
        Unauthenticated: the token is not the relay's.
        InvalidInput, TooLarge: the body is not one event.
    """
    if not settings.gcp_relay_account:
        raise NotFound("this deployment takes no events of Google Cloud: it has no GcpRelayAccount")
    if settings.auth != "NONE":
        _check_relay(_claims(app), settings.gcp_relay_account)
    events = _events(app)
    if len(events) != 1:
        raise Malformed([Problem("", f"the relay sends one event at a time, not {len(events)}")])
    return events[0]


def grid_events(app: Router, settings: Settings) -> Sequence[Event]:
    """The events that Event Grid sends: one, or a batch, in its own schema or as CloudEvents.

    Raises:
        NotFound, Unauthenticated: not taken here, or the code of the address is not right.
        InvalidInput, TooLarge: the body is no list of events.
    """
    _check_code(app, settings)
    return _events(app)


def validation_code(events: Sequence[Event]) -> str:
    """What Event Grid wants to hear before it sends anything in its own schema; "" when these are no such question.

    Raises:
        InvalidInput: it is one, but brings no code.
    """
    if len(events) != 1 or events[0].get("eventType") != VALIDATION:
        return ""
    data = events[0].get("data")
    code = data.get("validationCode") if isinstance(data, Mapping) else None
    if not isinstance(code, str) or not code:
        raise Malformed([Problem("0.data.validationCode", "must be a text that is not empty")])
    return code


def greeting(app: Router, settings: Settings) -> Response[str]:
    """The answer that Event Grid wants before it sends CloudEvents: that it may, as often as it likes.

    Raises:
        NotFound, Unauthenticated: as `grid_events`.
        InvalidInput: the question does not say who asks.
    """
    _check_code(app, settings)
    origin = app.current_event.headers.get("webhook-request-origin", "")
    if not origin:
        raise Malformed([Problem("WebHook-Request-Origin", "is missing: this is no question of CloudEvents' webhooks")])
    return Response(200, "text/plain", "", {"WebHook-Allowed-Origin": origin, "WebHook-Allowed-Rate": "*"})


def hear_all(events: Sequence[Event], hear: Callable[[Event], None]) -> None:
    """Hear each event by itself; what is malformed is logged and counted, and does not stop the next.

    Raises:
        InvalidInput: some were malformed; the others were heard.
    """
    problems: list[Problem] = []
    for number, event in enumerate(events):
        try:
            _check_event(event)
            hear(event)
        except InvalidInput as error:
            set_aside(error, event)
            problems += [Problem(f"{number}.{p.field}".removesuffix("."), p.message) for p in error.problems]
    if problems:
        raise Malformed(problems)


def set_aside(error: InvalidInput, event: Event) -> None:
    """Log and count an event that is not what its kind should be."""
    logger.error("event set aside: it is not what its kind should be", extra={"why": str(error), "event": event})
    count("EventsSetAside")


def _check_event(event: Event) -> None:
    if "detail-type" in event:
        raise InvalidInput([Problem("detail-type", "an event of EventBridge does not come this way")])
    size = len(json.dumps(event).encode())
    if size > EVENT_LIMIT_BYTES:
        raise InvalidInput(
            [Problem("", f"the event has {size:,} bytes; no announcement has over {EVENT_LIMIT_BYTES:,}")]
        )


def _check_code(app: Router, settings: Settings) -> None:
    """Let only the one pass who knows the code of the subscription's address."""
    if not settings.azure_events_code_sha256:
        raise NotFound("this deployment takes no events of Azure: it has no AzureEventsCodeSha256")
    digest = hashlib.sha256(app.current_event.query_string_parameters.get("code", "").encode()).hexdigest()
    if not hmac.compare_digest(digest, settings.azure_events_code_sha256):
        raise Unauthenticated("the code is not the one that this deployment was given the digest of")


def _check_relay(claims: Mapping[str, Any], account: str) -> None:  # Any: claims of a token
    verified = str(claims.get("email_verified", "")).lower() == "true"
    if not verified or claims.get("email") != account:
        raise Unauthenticated("the token is not that of this deployment's relay (GcpRelayAccount)")


def _claims(app: Router) -> Mapping[str, Any]:  # Any: claims of a token
    authorizer = (app.current_event.raw_event.get("requestContext") or {}).get("authorizer") or {}
    return (authorizer.get("jwt") or {}).get("claims") or {}


def _events(app: Router) -> list[Event]:
    try:
        loaded = parse_json(body_text(app, BODY_LIMIT_BYTES))
    except ValueError as error:
        raise Malformed([Problem("", f"the body is not JSON: {error}")]) from error
    events = loaded if isinstance(loaded, list) else [loaded]
    if not all(isinstance(event, dict) for event in events):
        raise Malformed([Problem("", "the body is neither an event nor a list of events")])
    return events
