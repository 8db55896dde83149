"""The cloud `azure`: virtual machines as the broker launches on them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.asked import described, disk_size, launch_of
from spotferry.providers.azure import activity, creating, describe, launch, names
from spotferry.providers.azure.api import AzureApi, Calls
from spotferry.providers.azure.creating import AlreadyThere, Place
from spotferry.providers.azure.images import Images
from spotferry.providers.azure.sweep import Sweep, may_be_hidden
from spotferry.providers.context import DEPLOYMENT_TAG, ProviderContext
from spotferry.providers.ends import reason_code
from spotferry.types.errors import CapacityError, NotYet, ProviderError, ProviderUnavailable
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Candidate, Instance, LaunchRequest

SETTLES_WITHIN = timedelta(seconds=45)
"""How long until a launch that goes on is looked at again."""


def build(context: ProviderContext) -> CloudProvider:
    """The adapter for one deployment."""
    return AzureProvider(context, AzureApi())


class AzureProvider:
    """Azure: implements `ports.cloud.CloudProvider` and `SettlesLaunches`; keeps clients and images alone."""

    def __init__(self, context: ProviderContext, api: AzureApi) -> None:
        self._context = context
        self._api = api
        self._images = Images(context.clock)

    def name(self) -> str:
        """The cloud's name."""
        return "azure"

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,
    ) -> LaunchRequest:
        """Resolve image, zone and network; see the port.

        Raises:
            CapacityError: no such image here, or the settings lack a network, or the fixed disk is smaller than the
                image.
            ProviderUnavailable: no verdict; try again later.
        """
        offer = candidate.offer
        where = launch.network(settings, offer.zone)
        chosen = self._images.resolve(self._api.begin(offer.region), settings, offer, image)
        disk_gb = disk_size(chosen.image_id, chosen.size_gb, candidate.disk_gb, offer.region, is_fixed=disk_is_fixed)
        return launch.fixed_request(chosen, disk_gb, where, tags, own_image=bool(image))

    def create_instance(self, candidate: Instance) -> Instance:
        """Launch the attempt's machine; its name comes of the `cedana_id`, so asking twice makes one.

        Returns once Azure accepted the launch and did not refuse it in the first seconds: see `settle_launch`.

        Raises:
            TypeError: the candidate is no attempt with a fixed launch request.
            CapacityError: not to be had; nothing is left of the launch.
            ProviderUnavailable: no verdict; the same request again later.
        """
        attempt, request = launch_of(candidate)
        body = launch.machine(attempt, request, self._context.user_data(attempt))
        place = Place(_group(attempt), names.vm_name(attempt), request.own_image)
        calls = self._api.begin(attempt.region).as_one()
        try:
            accepted = creating.put(calls, place, body)
        except AlreadyThere:
            return self._made_before(calls, attempt, place)
        creating.await_verdict(calls, accepted, place)
        return describe.as_seen(attempt, accepted.seen)

    def _made_before(self, calls: Calls, attempt: Attempt, place: Place) -> Attempt:
        """The machine that this launch made before, or why it came to nothing."""
        seen = describe.look_up(calls, place.group, place.name)
        if seen is None:
            message = f"{place.name} is there and is not shown"
            raise ProviderUnavailable("MachineNotShown", message, attempt.region)
        if not names.carries(seen.get("tags") or {}, names.tags(attempt.launch.tags if attempt.launch else {})):
            raise ProviderError("NameTaken", f"{place.name} is there and is not ours", attempt.region)
        made = describe.as_seen(attempt, seen)
        if describe.condition(seen).failed:
            raise creating.undone(calls, place, *_words(made))
        return describe.with_address(calls, made, seen)

    def settle_launch(self, attempt: Attempt) -> CapacityError | None:
        """How the launch that was accepted ended: None when the machine was made, or has ended since; else why it
        came to nothing, and then the order to delete what it left has been given.

        Raises:
            NotYet: Azure is still at it.
            ProviderError: the question failed; it proves nothing.
        """
        place = Place(_group(attempt), names.vm_name(attempt), bool(attempt.launch and attempt.launch.own_image))
        calls = self._api.begin(attempt.region)
        seen = describe.look_up(calls, place.group, place.name)
        if seen is None:
            if may_be_hidden(attempt, self._context.clock()):
                raise NotYet(f"{place.name} is not shown yet", SETTLES_WITHIN)
            return None
        now = describe.condition(seen)
        if now.failed:
            return creating.undone(calls, place, *_words(describe.as_seen(attempt, seen)))
        if now.state == "pending":
            raise NotYet(f"{place.name} is still being made", SETTLES_WITHIN)
        return None

    def destroy_instance(self, instance: Instance) -> None:
        """Delete the machine with all that belongs to it; no error when there is none.

        Raises:
            ProviderError: Azure did not accept the order.
        """
        calls = self._api.begin(instance.region)
        group = _group(instance) or Sweep(calls, self._context.clock()).group_of(instance)
        if group and names.vm_name(instance):
            creating.delete(calls, Place(group, names.vm_name(instance)))

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002 (the seed's name)
        """The machines as Azure shows them now: a few one by one, many by the list of the subscription; see the
        contract.

        Raises:
            InvalidInput: the filter is no state.
            ProviderError: a call failed; it proves nothing about any machine.
        """
        return described(instances, filter, self._see)

    def _see(self, region: str, instances: list[Instance]) -> Sequence[Instance]:
        return Sweep(self._api.begin(region), self._context.clock()).see(instances)

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """What Azure says about the machine's end; it announces none but to the machine itself."""
        [now] = self.describe_instance([instance], "")
        return self.get_instance_statuses([now]).get(instance.cedana_id)

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """What Azure says about the end of machines, by `cedana_id`, given as `describe_instance` returned them.

        Asks nothing about machines that run; one call for each of a few that are gone for an unknown cause.

        Raises:
            ProviderError: the question failed.
        """
        events = {i.cedana_id: event for i in instances if (event := _ended(i))}
        unknown = [i for i in instances if _is_vague(i) and _group(i)]
        for instance in unknown[: activity.MOST_QUESTIONS]:
            calls = self._api.begin(instance.region)
            exact = activity.told(calls, instance, _group(instance), self._context.clock())
            events[instance.cedana_id] = exact or events[instance.cedana_id]
        return events

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The machine launched for this attempt, by its name, if it carries the attempt's tags; see the port.

        Raises:
            ProviderError: the look-up failed; it proves nothing.
        """
        calls = self._api.begin(attempt.region)
        seen = describe.look_up(calls, _group(attempt), names.vm_name(attempt))
        wanted = names.tags(attempt.launch.tags if attempt.launch else {})
        if seen is None or not names.carries(seen.get("tags") or {}, wanted):
            return None
        found = describe.as_seen(attempt, seen)
        return None if found.state == "terminated" else describe.with_address(calls, found, seen)

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Every machine of this deployment in the region, also one that came to nothing; `cedana_id` is its name.

        Raises:
            ProviderError: the listing failed or was cut short; it proves nothing.
        """
        ours = {DEPLOYMENT_TAG: self._context.deployment}
        yield from Sweep(self._api.begin(region), self._context.clock()).owned(ours)


def _group(instance: Instance) -> str:
    """The resource group that the machine is in; "" when the record does not tell."""
    if isinstance(instance, Attempt) and instance.launch is not None:
        return instance.launch.network.get("resource_group", "")
    place = names.vm_id(instance.tag)
    return place.group if place else ""


def _words(attempt: Attempt) -> tuple[str, str]:
    """Code and words of a reason written as "code: words"."""
    code, _, message = attempt.cloud_reason.partition(": ")
    return code, message


def _ended(instance: Instance) -> ProviderEvent | None:
    """The end of a machine as its state tells it; None while it lives."""
    if instance.state in {"", "pending", "running"} or not instance.allocated_id:
        return None
    reason, by = (instance.cloud_reason, instance.ended_by) if isinstance(instance, Attempt) else ("", "")
    code = reason_code(reason)
    return ProviderEvent(
        instance_id=instance.allocated_id, fault_code=code or instance.state, marked_for_termination=by == "launch"
    )


def _is_vague(instance: Instance) -> bool:
    """Azure does not show the machine any more, and nobody knows yet who ended it."""
    if instance.state != "terminated" or not instance.allocated_id:
        return False
    known = isinstance(instance, Attempt) and (instance.ending or instance.taken_back or bool(instance.ended_by))
    return not known
