"""Looking machines up: one by its name, many by their label in pages, whole or not at all."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

from google.cloud.compute_v1 import Instance as Machine

from spotferry.providers.gcp.api import Calls
from spotferry.providers.gcp.labels import DEPLOYMENT, INSTANCE, value
from spotferry.providers.gcp.operations import Ending, moment
from spotferry.providers.gcp.states import STATES
from spotferry.types.errors import ProviderError, ProviderUnavailable
from spotferry.types.instance import Attempt, Instance

_InstanceT = TypeVar("_InstanceT", bound=Instance)

PAGE = 500
"""Machines on one page: the most that Google gives."""
VISIBLE_AFTER = timedelta(minutes=5)
"""How long a machine that was asked for may be missing without being gone."""
_NO_ROWS = "NO_RESULTS_ON_PAGE"


def one(calls: Calls, zone: str, name: str) -> Machine | None:
    """The machine of this name; None when Google shows none.

    Raises:
        ProviderError: the look-up failed, or its answer is not about the machine.
    """
    try:
        machine = calls.ask(lambda c: c.instances.get, {"zone": zone, "instance": name})
    except ProviderError as error:
        if error.code != "notFound":
            raise
        return None
    if machine.name != name:
        raise ProviderUnavailable("MalformedAnswer", f"asked for {name}, Google told of {machine.name!r}", calls.region)
    return machine


def owned(calls: Calls, deployment: str) -> Iterator[Machine]:
    """Every machine of the deployment in the region of the calls; one call for each page.

    Raises:
        ProviderError: a page failed, or a zone of the region could not be asked; what came before is not the whole.
    """
    zones = f".*/zones/{calls.region}-[a-z0-9]+"
    wanted = f'(labels.{DEPLOYMENT} eq "{value(deployment)}") (zone eq "{zones}")'
    token, turn = "", calls
    while True:
        page = turn.ask(
            lambda c: c.instances.aggregated_list,
            {"filter": wanted, "max_results": PAGE, "page_token": token},
        )
        turn.must_be(page.kind, "compute#instanceAggregatedList")
        for scope, listed in page.items.items():
            _must_be_whole(scope, listed.warning, calls.region)
            for machine in listed.instances:
                if not machine.name:
                    raise ProviderUnavailable("MalformedAnswer", f"{scope} has a machine without a name", calls.region)
                yield machine
        _must_reach(page.unreachables, calls.region)
        token = page.next_page_token
        if not token:
            return
        turn = calls.again()


def is_of(machine: Machine, deployment: str, name: str) -> bool:
    """The machine carries our labels, and was launched for this attempt."""
    return machine.labels.get(DEPLOYMENT) == value(deployment) and machine.labels.get(INSTANCE) == name


def as_seen(instance: _InstanceT, machine: Machine, ending: Ending | None = None) -> _InstanceT:
    """The instance with what Google shows of it; a status that Google does not document leaves the known state."""
    state = STATES.get(machine.status, instance.state)
    changes: dict[str, object] = {
        "allocated_id": machine.name,
        "state": state,
        "ip_address": _address(machine) or instance.ip_address,
        "availability_zone": instance.availability_zone or machine.zone.rpartition("/")[2],
    }
    if isinstance(instance, Attempt):
        started = moment(machine.last_start_timestamp) or moment(machine.creation_timestamp)
        stopped = moment(machine.last_stop_timestamp) if machine.status in {"TERMINATED", "STOPPED"} else None
        changes["launched_at"] = started or instance.launched_at
        changes["billed_until"] = stopped
        changes["cloud_reason"] = ending.reason if ending else machine.status_message or instance.cloud_reason
        changes["ended_by"] = ending.ended_by if ending and state != "running" else ""
    return instance.model_copy(update=changes)


def as_ended(instance: _InstanceT, name: str, ending: Ending | None) -> _InstanceT:
    """The instance as one that Google does not show any more."""
    changes: dict[str, object] = {"state": "terminated", "allocated_id": name}
    if isinstance(instance, Attempt) and ending:
        changes |= {"cloud_reason": ending.reason, "ended_by": ending.ended_by, "billed_until": ending.at}
    return instance.model_copy(update=changes)


def _address(machine: Machine) -> str:
    for interface in machine.network_interfaces:
        for access in interface.access_configs:
            if access.nat_i_p:
                return str(access.nat_i_p)
        return str(interface.network_i_p)
    return ""


def _must_be_whole(scope: str, warning: Any, region: str) -> None:  # Any: the SDK's type has the name of a builtin's
    """A zone that could not be asked comes as a warning in an answer that is otherwise good."""
    if warning.code and warning.code != _NO_ROWS and scope.startswith(f"zones/{region}-"):
        raise ProviderUnavailable(warning.code, f"{scope} could not be listed: {warning.message}", region)


def _must_reach(unreachables: Iterable[str], region: str) -> None:
    missing = [scope for scope in unreachables if f"/{region}-" in scope]
    if missing:
        raise ProviderUnavailable("UNREACHABLE", f"{', '.join(missing)} could not be listed", region)
