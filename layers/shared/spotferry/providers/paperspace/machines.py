"""Looking machines up: by name, by id, and in whole listings, whole or not at all."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from spotferry.providers.paperspace.api import Calls, Json, is_gone, pages, text_of
from spotferry.providers.paperspace.launch import api_region, listed_region
from spotferry.providers.paperspace.states import LOST, STATES
from spotferry.types.errors import ProviderError
from spotferry.types.instance import Attempt, Instance

_InstanceT = TypeVar("_InstanceT", bound=Instance)
FEW = 2
"""So many machines are asked for one by one; for more a page of all is no dearer."""


def named(calls: Calls, name: str) -> list[Json]:
    """The machines of this name that are not deleted, the oldest first.

    The API's filter may find more than was asked for; the name decides.

    Raises:
        ProviderError: the look-up failed; it proves nothing.
    """
    found = [
        seen for seen in pages(calls, "/machines", {"name": name}) if seen.get("name") == name and not _deleted(seen)
    ]
    return sorted(found, key=lambda seen: (str(seen.get("dtCreated") or ""), text_of(seen, "id", calls.region)))


def by_id(calls: Calls, region: str, ids: Sequence[str]) -> dict[str, Json]:
    """Those of the machines that Paperspace has: a call each for a few, else the region's pages, until all are found.

    Raises:
        ProviderError: a call failed; it proves nothing about any machine.
    """
    if len(ids) <= FEW:
        return {machine_id: seen for machine_id in ids if (seen := _one(calls, machine_id)) is not None}
    missing, found = set(ids), dict[str, Json]()
    for seen in in_region(calls, region):
        machine_id = text_of(seen, "id", region)
        if machine_id in missing:
            found[machine_id] = seen
            missing.discard(machine_id)
        if not missing:
            break
    return found


def in_region(calls: Calls, region: str) -> Iterator[Json]:
    """Every machine of the account in the region that is not deleted.

    Raises:
        ProviderError: a page failed, perhaps after some were yielded.
    """
    for seen in pages(calls, "/machines", {"region": api_region(region)}):
        if listed_region(text_of(seen, "region", region)) == region and not _deleted(seen):
            yield seen


def _one(calls: Calls, machine_id: str) -> Json | None:
    try:
        seen = calls.get(f"/machines/{machine_id}")
    except ProviderError as error:
        if not is_gone(error):
            raise
        return None
    text_of(seen, "id", calls.region)
    return None if _deleted(seen) else seen


def _deleted(seen: Json) -> bool:
    return bool(seen.get("dtDeleted"))


def as_seen(instance: _InstanceT, seen: Json) -> _InstanceT:
    """The instance with what Paperspace shows of it; a state that it does not document leaves the known one."""
    said = str(seen.get("state") or "").lower()
    changes: dict[str, object] = {
        "allocated_id": seen["id"],
        "state": STATES.get(said, instance.state),
        "ip_address": seen.get("publicIp") or seen.get("privateIp") or instance.ip_address,
    }
    if isinstance(instance, Attempt):
        changes["cloud_reason"] = f"{said}: {LOST[said]}" if said in LOST else instance.cloud_reason
        changes["launched_at"] = time_of(seen, "dtCreated") or instance.launched_at
    return instance.model_copy(update=changes)


def time_of(item: Json, key: str) -> datetime | None:
    """A time that the API tells; None where there is none, or none that can be read."""
    try:
        told = datetime.fromisoformat(str(item.get(key) or ""))
    except ValueError:
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)
