"""The handler that stands in for every function in test_deployed.py: it tries what it is asked to and says how it went.

It answers HTTP calls with the event it got, and any other event with the outcome of the calls the event names.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import boto3
from botocore.exceptions import ClientError


def attempt(call: Mapping[str, Any]) -> str:
    """Make one call of an AWS service; "ok", or the code it was refused with."""
    arguments = json.loads(os.path.expandvars(json.dumps(call["arguments"])))
    make: Any = boto3.client  # its overloads know literal names only
    try:
        getattr(make(call["service"]), call["operation"])(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "ok"


def handler(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Answer with the event (HTTP), or the outcomes of the calls in it."""
    if "routeKey" in event:
        return {"statusCode": 200, "body": json.dumps({"route": event["routeKey"], "service": SERVICE})}
    print("GOT", json.dumps(event))  # noqa: T201 - the test reads the function's log
    return {"outcomes": [attempt(call) for call in event.get("calls", [])]}


SERVICE = os.environ.get("POWERTOOLS_SERVICE_NAME", "")
