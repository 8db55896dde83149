"""The cloud `paperspace`: its machines as the broker launches on them, on demand only."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.asked import check_filter, is_young, launch_of
from spotferry.providers.context import ProviderContext
from spotferry.providers.ends import reason_code
from spotferry.providers.paperspace import launch, machines
from spotferry.providers.paperspace.api import Calls, Json, PaperspaceApi, pages, text_of
from spotferry.providers.paperspace.credentials import ApiKey
from spotferry.providers.paperspace.errors import event_error, launch_error
from spotferry.providers.paperspace.fate import FAILED, fate_of, unseen
from spotferry.providers.paperspace.launch import USER_DATA_LIMIT_BYTES
from spotferry.providers.paperspace.templates import Templates
from spotferry.types.errors import (
    CapacityError,
    NotYet,
    ProviderError,
    ProviderUnavailable,
    TryAgainLater,
)
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Candidate, Instance, LaunchRequest

__all__ = ["USER_DATA_LIMIT_BYTES", "PaperspaceProvider", "build"]

VISIBLE_AFTER = timedelta(minutes=5)
"""How long Paperspace may fail to show a machine that it made."""
_SETTLES_WITHIN = timedelta(seconds=45)


def build(context: ProviderContext) -> CloudProvider:
    """The adapter for one deployment."""
    return PaperspaceProvider(context, PaperspaceApi(ApiKey(context.secret)))


class PaperspaceProvider:
    """Paperspace: implements `ports.cloud.CloudProvider` and `SettlesLaunches`; keeps client and templates alone.

    The API has no idempotency token and machines have no tags. The machine's name is both: it is looked up before a
    machine is made, and again afterwards, and of machines that two deliveries made at the same time the oldest is kept.
    """

    def __init__(self, context: ProviderContext, api: PaperspaceApi) -> None:
        self._context = context
        self._api = api
        self._templates = Templates(context.clock)

    def name(self) -> str:
        """The cloud's name."""
        return "paperspace"

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,  # noqa: ARG002 - disks are sold in steps, so a named size means at least as well
    ) -> LaunchRequest:
        """Resolve template and disk; see the port. A disk is made as large as the next size that is sold.

        Raises:
            CapacityError: no such template, or no disk so large.
            ProviderUnavailable: no verdict; try again later.
        """
        offer = candidate.offer
        template = self._templates.resolve(self._api.begin(offer.region), settings, offer, image)
        disk_gb = launch.disk_size(template, candidate.disk_gb, offer.region)
        return launch.fixed_request(template, disk_gb, settings, tags, own_image=bool(image))

    def create_instance(self, candidate: Instance) -> Instance:
        """Launch the attempt's machine, unless one of its name is there; see the contract.

        Raises:
            TypeError: the candidate is no attempt with a fixed launch request.
            CapacityError: not to be had.
            ProviderUnavailable: no verdict; the same request again later.
        """
        attempt, request = launch_of(candidate)
        user_data = self._context.user_data(attempt)
        launch.check(attempt, user_data)
        calls = self._api.begin(attempt.region).as_one()
        name = self._name(attempt)
        made = self._kept(calls, name)
        if made is None:
            made = self._buy(calls, attempt, request, name, user_data)
        return machines.as_seen(attempt, made)

    def _buy(self, calls: Calls, attempt: Attempt, request: LaunchRequest, name: str, user_data: str) -> Json:
        """Make the machine and its script; the scripts of all calls for it go when it is refused.

        Raises:
            CapacityError: refused; nothing is left.
            ProviderUnavailable: no verdict, or no time for what follows it: whoever asks again finds what there is.
        """
        script = calls.post("/startup-scripts", launch.script(name, user_data))
        script_id = text_of(script, "id", calls.region)
        refusal = partial(launch_error, own_image=request.own_image)
        try:
            answer = calls.post("/machines", launch.machine(attempt, request, name, script_id), refusal)
        except TryAgainLater:
            raise  # an earlier call may have made the machine, which boots its script: that goes with the last word
        except CapacityError:
            self._delete_scripts(calls, name)
            raise
        made = answer.get("data")
        if not isinstance(made, dict):
            raise ProviderUnavailable("MalformedAnswer", "POST /machines answered without a machine", calls.region)
        text_of(made, "id", calls.region)
        return self._kept(calls, name) or made

    def _kept(self, calls: Calls, name: str) -> Json | None:
        """The machine of this name: the oldest of them; what a race made beside it is ended."""
        found = machines.named(calls, name)
        for surplus in found[1:]:
            self._end(calls.again(), surplus["id"])
        return found[0] if found else None

    def settle_launch(self, attempt: Attempt) -> CapacityError | None:
        """How the launch that was accepted ended, by the machine's create event; the machine of a failed one is ended.

        Returns:
            None when the machine was made; else why it came to nothing.

        Raises:
            NotYet: Paperspace is still at it.
            ProviderError: the question failed; it proves nothing.
        """
        fate = fate_of(self._api.begin(attempt.region), attempt.allocated_id)
        if fate.launch == FAILED:
            self.destroy_instance(attempt)
            own_image = attempt.launch is not None and attempt.launch.own_image
            return event_error(fate.words, attempt.region, own_image=own_image)
        if not fate.launch:
            raise NotYet(f"Paperspace is still making {attempt.allocated_id}", _SETTLES_WITHIN)
        return None

    def destroy_instance(self, instance: Instance) -> None:
        """Delete the machine and its script; see the contract.

        A machine that Paperspace does not delete while it runs is stopped first: the order has to be repeated then.

        Raises:
            ProviderError: Paperspace did not accept the order.
        """
        calls = self._api.begin(instance.region)
        name = self._name(instance) if instance.cedana_id else ""
        ids = [instance.allocated_id] if instance.allocated_id else []
        if not ids and name:
            ids = [seen["id"] for seen in machines.named(calls, name)]
        for machine_id in ids:
            self._end(calls, machine_id)
        if name:
            self._delete_scripts(calls.again(), name)

    def _end(self, calls: Calls, machine_id: str) -> None:
        try:
            calls.delete(f"/machines/{machine_id}")
        except (ProviderUnavailable, CapacityError):
            raise
        except ProviderError as error:
            calls.again().patch(f"/machines/{machine_id}/stop")
            words = f"{machine_id} is stopped first, since Paperspace does not delete it yet: {error.message}"
            raise ProviderUnavailable(error.code, words, calls.region) from error

    def _delete_scripts(self, calls: Calls, name: str) -> None:
        """The scripts of all calls for it: they hold an agent's token, which is void by now, and would only pile up."""
        scripts = [item for item in pages(calls, "/startup-scripts", {"name": name}) if item.get("name") == name]
        for script in scripts:
            calls.again().delete(f"/startup-scripts/{text_of(script, 'id', calls.region)}")

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002 (the seed's name)
        """The machines as Paperspace shows them now, a page for each 120 that the region has; see the contract.

        Those without an `allocated_id` are looked up by their name.

        Raises:
            InvalidInput: the filter is no state.
            ProviderError: a call failed; it proves nothing about any machine.
        """
        check_filter(filter)
        seen: dict[str, Json] = {}
        for region in sorted({i.region for i in instances}):
            ids = sorted({i.allocated_id for i in instances if i.region == region and i.allocated_id})
            seen |= machines.by_id(self._api.begin(region), region, ids)
        for unnamed in (i for i in instances if not i.allocated_id and i.cedana_id):
            found = machines.named(self._api.begin(unnamed.region), self._name(unnamed))
            seen |= {self._name(unnamed): found[0]} if found else {}
        looked_at = [self._state_of(i, seen.get(i.allocated_id or self._name(i))) for i in instances]
        return [i for i in looked_at if not filter or i.state == filter]

    def _state_of(self, instance: Instance, seen: Json | None) -> Instance:
        """The instance as seen; unseen means gone, unless it is so young that Paperspace may not show it yet.

        Of a young one its events tell whether it was shown before, and ended since.
        """
        if seen is not None:
            return machines.as_seen(instance, seen)
        if not is_young(instance, self._context.clock(), VISIBLE_AFTER):
            return instance.model_copy(update={"state": "terminated"})
        if not instance.allocated_id:
            return instance
        return unseen(instance, fate_of(self._api.begin(instance.region), instance.allocated_id))

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """What the machine's state says about its end; Paperspace announces nothing and takes nothing back."""
        [now] = self.describe_instance([instance], "")
        return _ended(now)

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """What the states say about the end of machines, by `cedana_id`; nothing is asked for it."""
        return {i.cedana_id: event for i in instances if (event := _ended(i))}

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The machine launched for this attempt, by its name; see the port.

        Raises:
            ProviderError: the look-up failed; it proves nothing.
        """
        found = machines.named(self._api.begin(attempt.region), self._name(attempt))
        return machines.as_seen(attempt, found[0]) if found else None

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Every machine in the region whose name is one of this deployment's.

        Raises:
            ProviderError: the listing failed or was cut short; it proves nothing.
        """
        for seen in machines.in_region(self._api.begin(region), region):
            cedana_id = launch.cedana_id_of(self._context.deployment, str(seen.get("name") or ""))
            if cedana_id:
                known = Instance(
                    cedana_id=cedana_id,
                    provider=self.name(),
                    region=region,
                    instance_type=str(seen.get("machineType") or ""),
                    created_at=machines.time_of(seen, "dtCreated"),
                )
                yield machines.as_seen(known, seen)

    def _name(self, instance: Instance) -> str:
        return launch.name_of(self._context.deployment, instance.cedana_id)


def _ended(instance: Instance) -> ProviderEvent | None:
    """The end of the machine, as its state tells it; None while it lives."""
    if instance.state in {"", "pending", "running"} or not instance.allocated_id:
        return None
    reason = instance.cloud_reason if isinstance(instance, Attempt) else ""
    return ProviderEvent(instance_id=instance.allocated_id, fault_code=reason_code(reason) or instance.state)
