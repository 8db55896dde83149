"""Starts the function that refreshes prices, without waiting for it."""

import json
from collections.abc import Callable
from datetime import datetime

from spotferry.runtime.aws_clients import Client


class RefreshFunction:
    """Invokes one function as an event.

    Args:
        name: of the function, with its alias.
        client: makes the Lambda client, on first use.
    """

    def __init__(self, name: str, client: Callable[[], Client]) -> None:
        self._name = name
        self._client = client

    def __call__(self, asked_at: datetime, asked_by: str) -> None:
        """Have prices refreshed soon."""
        order = {"asked_at": asked_at.isoformat(), "asked_by": asked_by}
        self._client().invoke(FunctionName=self._name, InvocationType="Event", Payload=json.dumps(order).encode())
