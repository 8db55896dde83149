"""Looking machines up: a few one by one, many by the subscription's list of run states."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeVar

from azure.core.rest import HttpRequest

from spotferry.providers.azure.api import Calls, Connection
from spotferry.providers.azure.errors import NotThere, missing_or_error
from spotferry.providers.azure.names import VmId, vm_id
from spotferry.providers.azure.states import FAILED, state_of
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Attempt, Instance

# Any: a machine as Azure's JSON has it, a tree of plain values.
Seen = Mapping[str, Any]
_InstanceT = TypeVar("_InstanceT", bound=Instance)

GONE = "ResourceNotFound"
"""Azure's code for a machine that is not there."""
_NETWORK_VERSION = "2023-11-01"
_MOST_PAGES = 1000


class Condition(NamedTuple):
    """What Azure says of a machine's run.

    Attributes:
        state: a name of INSTANCE_STATES; None where Azure's words are unknown.
        reason: "code: words", "" while all is well.
        failed: it never came to be, or its last change failed.
    """

    state: str | None
    reason: str
    failed: bool


def look_up(calls: Calls, group: str, name: str) -> Seen | None:
    """One machine with its run state; None when there is none.

    Raises:
        ProviderError: the question failed; it proves nothing.
    """

    def ask(connection: Connection) -> Seen:
        machine = connection.compute.virtual_machines.get(group, name, expand="instanceView")
        return checked(machine.as_dict())

    try:
        return calls.ask(ask, missing_or_error)
    except NotThere:
        return None


def listed(calls: Calls, *, run_states: bool) -> Iterator[Seen]:
    """Every machine of the subscription, one call a page, each with a deadline of its own.

    Args:
        calls: for the first page.
        run_states: with their run states, and then without tags and times; else the other way round.

    Raises:
        ProviderError: a page failed; what came before it proves nothing about the rest.
    """
    token: str | None = None
    for number in count(1):
        rows, token = calls.ask(partial(_page, token, "true" if run_states else None))
        yield from rows
        if not token:
            return
        if number >= _MOST_PAGES:
            raise ProviderError("EndlessPages", f"the list of machines does not end after {number} pages", calls.region)
        calls = calls.again()


def _page(token: str | None, status_only: str | None, connection: Connection) -> tuple[list[Seen], str | None]:
    """One page, and what leads to the next.

    Raises:
        KeyError, TypeError: it is not what the API promises; the SDK takes an answer without machines for an empty one.
    """
    answers: list[Any] = []  # Any: the response's type depends on the transport
    machines = connection.compute.virtual_machines.list_all(
        status_only=status_only, raw_response_hook=lambda answer: answers.append(answer.http_response)
    )
    pages = machines.by_page(token)
    next(pages)
    # The plain JSON: to unpack the SDK's models of a long list takes longer than to get it.
    rows = [checked(seen) for seen in answers[-1].json()["value"]]
    # The iterator of pages knows it; its declared type does not.
    return rows, getattr(pages, "continuation_token", None)


def checked(seen: Seen) -> Seen:
    """A machine of an answer.

    Raises:
        KeyError, TypeError: it is not what the API promises.
    """
    if vm_id(seen["id"]) is None or not isinstance(seen.get("properties", {}), Mapping):
        raise TypeError(f"{str(seen)[:100]} is no machine")
    return seen


def place_of(seen: Seen) -> VmId:
    """The machine's group and name."""
    place = vm_id(seen["id"])
    assert place is not None, "answers are checked"
    return place


def is_in(seen: Seen, region: str) -> bool:
    """The machine is in the region; Azure writes a region's name in two ways."""
    return str(seen.get("location", "")).replace(" ", "").lower() == region.lower()


def condition(seen: Seen) -> Condition:
    """How the machine is, and Azure's words for it."""
    properties = seen.get("properties") or {}
    said = {
        kind.lower(): (rest, status)
        for status in (properties.get("instanceView") or {}).get("statuses") or ()
        for kind, _, rest in [str(status.get("code", "")).partition("/")]
    }
    power = said.get("powerstate", ("", {}))[0].lower()
    told, status = said.get("provisioningstate", ("", {}))
    kind, _, code = told.partition("/")
    provisioning = str(properties.get("provisioningState") or kind).lower()
    state = state_of(provisioning, power)
    if provisioning in FAILED:
        words = status.get("message") or status.get("displayStatus") or "Azure says no more"
        return Condition(state, f"{code or 'ProvisioningFailed'}: {words}", failed=True)
    if state in {"stopping", "shutting-down"}:
        word = f"PowerState/{power}" if provisioning in {"succeeded", ""} else f"ProvisioningState/{provisioning}"
        return Condition(state, f"{word}: the machine does not run any more", failed=False)
    return Condition(state, "", failed=False)


def address_of(calls: Calls, seen: Seen) -> str:
    """The machine's address, the public one if it has one; "" when Azure does not tell. One call.

    Raises:
        ProviderError: the question failed.
    """
    interfaces = ((seen.get("properties") or {}).get("networkProfile") or {}).get("networkInterfaces") or []
    if not interfaces or not str(interfaces[0].get("id", "")).startswith("/subscriptions/"):
        return ""
    question = {"api-version": _NETWORK_VERSION, "$expand": "ipConfigurations/publicIPAddress"}
    interface = calls.ask(lambda c: c.send(HttpRequest("GET", interfaces[0]["id"], params=question)).json())
    places = (interface.get("properties") or {}).get("ipConfigurations") or [{}]
    place = places[0].get("properties") or {}
    public = (place.get("publicIPAddress") or {}).get("properties") or {}
    return str(public.get("ipAddress") or place.get("privateIPAddress") or "")


def with_address(calls: Calls, instance: _InstanceT, seen: Seen) -> _InstanceT:
    """The instance with the address of its machine, once that runs; as it is where the address is known or not told."""
    if instance.ip_address or instance.state != "running":
        return instance
    with suppress(ProviderError):
        return instance.model_copy(update={"ip_address": address_of(calls, seen)})
    return instance


def as_seen(instance: _InstanceT, seen: Seen) -> _InstanceT:
    """The instance with what Azure shows of it; a state that Azure does not document leaves the known one."""
    now = condition(seen)
    properties = seen.get("properties") or {}
    zones = seen.get("zones") or [""]
    made = _time(properties.get("timeCreated"))
    changes: dict[str, object] = {
        "allocated_id": instance.allocated_id or str(seen.get("name") or place_of(seen).name),
        "state": now.state or instance.state,
        # The zone as the price list has it is what bans are compared with: it is only filled in where there is none.
        "availability_zone": instance.availability_zone or str(zones[0]),
    }
    if isinstance(instance, Attempt):
        changes["cloud_reason"] = now.reason or instance.cloud_reason
        changes["launched_at"] = made or instance.launched_at
        changes["ended_by"] = "launch" if now.failed and now.state == "terminated" else ""
    return instance.model_copy(update=changes)


def as_gone(instance: _InstanceT) -> _InstanceT:
    """The instance of which Azure has no machine; who ended it, as far as a notice or our own order tells."""
    changes: dict[str, object] = {"state": "terminated"}
    if isinstance(instance, Attempt):
        changes["cloud_reason"] = instance.cloud_reason or f"{GONE}: Azure has no such machine any more"
        known = "cloud" if instance.taken_back else "us" if instance.ending else ""
        changes["ended_by"] = instance.ended_by or known
    return instance.model_copy(update=changes)


def _time(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else None
