"""Runs on Google Cloud: forwards preemptions from its audit log to the broker, in the name of its own account.

Eventarc calls it with each entry of the audit log that its trigger lets through. BROKER_URL is where the broker's API
is; BROKER_AUDIENCE what the broker wants its tokens to be for, the address itself unless it is set.
"""

import logging
import os
from functools import lru_cache
from http import HTTPStatus

import functions_framework
from cloudevents.http import CloudEvent, to_structured
from google.auth.transport.requests import AuthorizedSession, Request
from google.oauth2.id_token import fetch_id_token_credentials
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

METHOD = "compute.instances.preempted"
ANSWER_SECONDS = 10.0
AGAIN = Retry(
    total=4, backoff_factor=0.3, status_forcelist=(429, 500, 502, 503, 504), allowed_methods=None, raise_on_status=False
)
SET_ASIDE = (HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY)
"""The broker has set the event aside: another delivery of it would end the same."""

logger = logging.getLogger("relay")


@lru_cache(maxsize=1)
def broker() -> AuthorizedSession:
    """Speaks to the broker with identity tokens of this function's account, made on first use and renewed in time."""
    url = os.environ["BROKER_URL"]
    # The library is typed only in part.
    account = fetch_id_token_credentials(os.environ.get("BROKER_AUDIENCE") or url, Request())  # type: ignore[no-untyped-call]
    session = AuthorizedSession(account)  # type: ignore[no-untyped-call]
    session.mount("https://", HTTPAdapter(max_retries=AGAIN))
    session.mount("http://", HTTPAdapter(max_retries=AGAIN))
    return session


@functions_framework.cloud_event
def relay(event: CloudEvent) -> None:
    """Entry point: forward a preemption as it came; what else the log has is dropped."""
    entry = event.data if isinstance(event.data, dict) else {}
    payload = entry.get("protoPayload") or {}
    if payload.get("methodName") != METHOD:
        logger.info("dropped %s: it is no preemption", payload.get("methodName") or event["type"])
        return
    headers, body = to_structured(event)
    url = f"{os.environ['BROKER_URL'].rstrip('/')}/events/gcp"
    answer = broker().post(url, data=body, headers=headers, timeout=ANSWER_SECONDS)
    if answer.status_code in SET_ASIDE:
        logger.error("the broker set %s aside: %s %s", event["id"], answer.status_code, answer.text[:500])
        return
    answer.raise_for_status()  # Eventarc delivers it again
    logger.info("forwarded the preemption of %s", payload.get("resourceName"))
