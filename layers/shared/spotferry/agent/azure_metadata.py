"""Azure's metadata service: what is scheduled for this machine, and the word that it is ready for it."""

from __future__ import annotations

import http.client
import json
import urllib.request
from email.utils import parsedate_to_datetime
from typing import Dict, List, Mapping, Optional

API = "2020-07-01"
FIRST_ANSWER_SECONDS = 130.0
"""The first question switches the service on for this machine, which may take two minutes."""
ANSWER_SECONDS = 5.0

Event = Dict[str, object]


class ScheduledEvents:
    """The events of this machine; each call raises OSError or HTTPException when the service does not answer.

    Asked from boot on: a service that is not asked for a day switches itself off.

    Args:
        environ: may name another metadata service, by the vendor's own variable.
        patience: seconds that the first answer may take.
    """

    def __init__(self, environ: Mapping[str, str], patience: float = FIRST_ANSWER_SECONDS) -> None:
        base = environ.get("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://169.254.169.254").rstrip("/")
        self._url = f"{base}/metadata/scheduledevents?api-version={API}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._patience = patience

    def events(self) -> List[Event]:
        """What is scheduled now.

        Raises:
            ValueError: the answer is no list of events.
        """
        answer = json.loads(self._ask(None, self._patience))
        events = answer.get("Events") if isinstance(answer, dict) else None
        if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
            raise ValueError("scheduledevents: not a list of events")
        self._patience = ANSWER_SECONDS
        return events

    def start(self, event_ids: List[str]) -> None:
        """Tell that the machine is ready: what is scheduled may happen at once."""
        requests = [{"EventId": event_id} for event_id in event_ids]
        self._ask(json.dumps({"StartRequests": requests}).encode(), ANSWER_SECONDS)

    def _ask(self, body: Optional[bytes], timeout: float) -> bytes:
        request = urllib.request.Request(  # noqa: S310  (link-local, or the vendor's own variable)
            self._url, data=body, headers={"Metadata": "true", "Content-Type": "application/json"}
        )
        with self._opener.open(request, timeout=timeout) as answer:
            content: bytes = answer.read()
        return content


def deadline_of(event: Event) -> Optional[str]:
    """When the event may begin, in RFC 3339; None when it has begun or no time is told.

    Raises:
        ValueError: what is told is no time.
    """
    told = event.get("NotBefore")
    if not isinstance(told, str) or not told:
        return None
    try:
        return parsedate_to_datetime(told).isoformat()
    except (TypeError, IndexError) as error:
        raise ValueError(f"scheduledevents: {told[:40]!r} is no time") from error


def go_ahead(environ: Mapping[str, str]) -> bool:
    """Let a take-back that is announced happen now; whether there was one. Raises nothing: the machine ends anyway."""
    service = ScheduledEvents(environ, ANSWER_SECONDS)
    try:
        ids = [str(event.get("EventId")) for event in service.events() if event.get("EventType") == "Preempt"]
        if ids:
            service.start(ids)
    except (OSError, http.client.HTTPException, ValueError):
        return False
    return bool(ids)
