"""Clouds' signals over HTTP, through the deployed API."""

import json
from typing import Any

import httpx
import pytest

from local.deploy import EVENTS_CODE
from local.packaging import ROOT
from local.stack import Stack

pytestmark = pytest.mark.e2e


def sent(stack: Stack, case: str, code: str = EVENTS_CODE) -> httpx.Response:
    """The answer to a stored event, sent as its cloud would."""
    event: dict[str, Any] = json.loads((ROOT / "events" / "handle_interruption" / f"{case}.json").read_text())
    method, path = event["routeKey"].split()
    headers = {"Content-Type": event["headers"]["content-type"]}
    query = {"code": code} if "azure" in path else {}
    return httpx.request(
        method, f"{stack.api_url}{path}", content=event["body"], headers=headers, params=query, timeout=30
    )


def test_event_grid_is_answered_by_the_deployed_broker(local_cloud: Stack) -> None:
    """Its question gets the code back, its events are heard in both schemas, and a wrong code is kept out."""
    asked = sent(local_cloud, "azure_validation")
    assert (asked.status_code, asked.json()) == (200, {"validationResponse": "512d38b6-c7b8-40c8-89fe-f46f9e9622b6"})
    for case in ("azure_preempted", "azure_preempted_cloudevent"):
        assert sent(local_cloud, case).status_code == 204
    refused = sent(local_cloud, "azure_preempted", code="another")
    assert (refused.status_code, refused.json()["kind"]) == (401, "Unauthenticated")


def test_the_relay_is_heard_by_the_deployed_broker(local_cloud: Stack) -> None:
    """A preemption in the relay's form; where nobody authenticates it needs no token."""
    assert sent(local_cloud, "gcp_preemption").status_code == 204
