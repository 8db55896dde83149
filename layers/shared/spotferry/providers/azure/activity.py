"""Who ended a machine, as the subscription's activity log tells it, minutes late."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from azure.core.rest import HttpRequest

from spotferry.providers.asked import made_at
from spotferry.providers.azure.api import Calls
from spotferry.providers.azure.states import OPERATIONS
from spotferry.providers.ends import Cause
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Instance

MOST_QUESTIONS = 20
"""Machines that one poll asks about; those that it leaves out ended without a known cause."""
_VERSION = "2015-04-01"
_KEPT = timedelta(days=89)
_WANTED = "operationName,status,eventTimestamp"


def told(calls: Calls, instance: Instance, group: str, now: datetime) -> ProviderEvent | None:
    """The end of a machine that Azure does not show any more; None when the log has none (yet). One call.

    Raises:
        ProviderError: the question failed.
    """
    subscription = calls.connection.subscription
    machine = (
        f"/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/"
        f"{instance.allocated_id}"
    )
    since = max(made_at(instance) or now - timedelta(days=1), now - _KEPT)
    question = {
        "api-version": _VERSION,
        "$filter": f"eventTimestamp ge '{since:%Y-%m-%dT%H:%M:%SZ}' and resourceUri eq '{machine}'",
        "$select": _WANTED,
    }
    path = f"/subscriptions/{subscription}/providers/Microsoft.Insights/eventtypes/management/values"
    rows = calls.ask(lambda c: list(c.send(HttpRequest("GET", path, params=question)).json()["value"]))
    return _end(instance, rows)


# Any: rows of the log, as its JSON has them.
def _end(instance: Instance, rows: Iterable[Mapping[str, Any]]) -> ProviderEvent | None:
    """The eviction if there was one, since a deletion follows it; else the last order to end."""
    ends = [
        (cause is Cause.TAKEN_BACK, str(row.get("eventTimestamp") or ""), _value(row, "operationName"))
        for row in rows
        if (cause := OPERATIONS.get(_value(row, "operationName").lower())) is not None
        and _value(row, "status").lower() != "failed"
    ]
    if not ends:
        return None
    taken_back, at, operation = max(ends)
    return ProviderEvent(
        instance_id=instance.allocated_id,
        fault_code=operation,
        marked_for_termination=taken_back,
        termination_time=int(datetime.fromisoformat(at).timestamp()) if at else 0,
    )


# Any: as above.
def _value(row: Mapping[str, Any], name: str) -> str:
    return str((row.get(name) or {}).get("value") or "")
