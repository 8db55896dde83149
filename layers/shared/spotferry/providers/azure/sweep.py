"""Seeing many machines of one region, with as few questions as prove something."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from spotferry.providers import asked
from spotferry.providers.azure import describe
from spotferry.providers.azure.api import Calls
from spotferry.providers.azure.describe import Seen
from spotferry.providers.azure.names import VmId, carries, vm_id, vm_name
from spotferry.types.instance import Attempt, Instance

VISIBLE_AFTER = timedelta(seconds=30)
"""How long Azure may fail to show a machine that it makes; its own address knows it at once, as a rule."""
FEW = 4
"""So many machines are asked for one by one; the list of a whole subscription is longer."""
MOST_CONFIRMED = 20
"""So many that the list misses are asked for in one look; the others stay as they are known until the next."""
_InstanceT = TypeVar("_InstanceT", bound=Instance)


@dataclass(frozen=True, slots=True)
class Sweep:
    """One look at a region.

    Attributes:
        calls: to the region.
        now: the time of the look.
    """

    calls: Calls
    now: datetime

    def see(self, instances: Sequence[Instance]) -> list[Instance]:
        """The machines, in the order given.

        Raises:
            ProviderError: a call failed; it proves nothing.
        """
        if len(instances) <= FEW and all(_place(i) for i in instances):
            return [self._one(i) for i in instances]
        shown = {describe.place_of(seen): seen for seen in describe.listed(self.calls, run_states=True)}
        by_name = {place.name: seen for place, seen in shown.items()}
        left = MOST_CONFIRMED
        found: list[Instance] = []
        for instance in instances:
            place = _place(instance)
            seen = shown.get(place) if place else by_name.get(vm_name(instance).lower())
            if seen is None and place is not None and not may_be_hidden(instance, self.now):
                # A list may be a little behind: only the machine's own address proves that it is gone.
                found.append(self._one(instance) if left > 0 else instance)
                left -= 1
            else:
                found.append(self._state_of(instance, seen))
        return found

    def _one(self, instance: Instance) -> Instance:
        place = _place(instance)
        assert place is not None, "the caller knows the group"
        calls = self.calls.again()
        seen = describe.look_up(calls, place.group, place.name)
        now = self._state_of(instance, seen)
        return describe.with_address(calls, now, seen) if seen is not None else now

    def _state_of(self, instance: _InstanceT, seen: Seen | None) -> _InstanceT:
        """The instance as seen; unseen means gone, unless it is so young that Azure may not show it yet."""
        if seen is not None:
            return describe.as_seen(instance, seen)
        return instance if may_be_hidden(instance, self.now) else describe.as_gone(instance)

    def group_of(self, instance: Instance) -> str:
        """The resource group of a machine whose record does not tell it, from the list; "" when it is not there.

        Raises:
            ProviderError: the listing failed.
        """
        wanted = vm_name(instance).lower()
        places = (describe.place_of(seen) for seen in describe.listed(self.calls, run_states=True))
        return next((place.group for place in places if place.name == wanted), "")

    def owned(self, ours: Mapping[str, str]) -> Iterator[Instance]:
        """Every machine of the region with these tags; `tag` is its resource id. One that came to nothing is
        "stopping": it is there, and bills its disk and address.

        Raises:
            ProviderError: a listing failed or was cut short; it proves nothing.
        """
        models = describe.listed(self.calls, run_states=False)
        mine = [seen for seen in models if describe.is_in(seen, self.calls.region) and carries(_tags(seen), ours)]
        if not mine:
            return
        states = {describe.place_of(s): s for s in describe.listed(self.calls.again(), run_states=True)}
        for seen in mine:
            known = Instance(
                cedana_id=str(seen.get("name", "")),
                provider="azure",
                region=self.calls.region,
                instance_type=str(((seen.get("properties") or {}).get("hardwareProfile") or {}).get("vmSize", "")),
                created_at=(seen.get("properties") or {}).get("timeCreated"),
                tag=str(seen["id"]),
            )
            now = describe.as_seen(known, _merged(seen, states.get(describe.place_of(seen))))
            lost = now.state == "terminated"
            yield now.model_copy(update={"state": "stopping"}) if lost else now


def may_be_hidden(instance: Instance, now: datetime) -> bool:
    """It was made so recently that Azure may not show it yet; not one that was seen, or is ordered to end."""
    known = isinstance(instance, Attempt) and (instance.arrived_at or instance.ending)
    return not known and asked.is_young(instance, now, VISIBLE_AFTER)


def _place(instance: Instance) -> VmId | None:
    """The machine's group and name in small letters, where the record tells the group."""
    if isinstance(instance, Attempt) and instance.launch is not None:
        group = instance.launch.network.get("resource_group", "")
    else:
        place = vm_id(instance.tag)
        group = place.group if place else ""
    name = vm_name(instance)
    return VmId(group.lower(), name.lower()) if group and name else None


def _merged(model: Seen, run_state: Seen | None) -> Seen:
    """A machine of the one list with the run state of the other."""
    if run_state is None:
        return model
    return {**model, "properties": {**(model.get("properties") or {}), **(run_state.get("properties") or {})}}


def _tags(seen: Seen) -> Mapping[str, str]:
    return seen.get("tags") or {}
