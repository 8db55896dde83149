"""The cloud `gcp`: Compute Engine as the broker launches on it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from google.cloud.compute_v1 import Instance as Machine

from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.asked import described, disk_size, is_young, launch_of
from spotferry.providers.context import ProviderContext
from spotferry.providers.gcp import describe, launch, operations, status
from spotferry.providers.gcp.api import Calls, GcpApi
from spotferry.providers.gcp.images import Images
from spotferry.providers.gcp.labels import INSTANCE
from spotferry.types.errors import (
    CapacityError,
    LaunchRefused,
    NotYet,
    ProviderError,
    ProviderUnavailable,
)
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Candidate, Instance, LaunchRequest

_LOOK_AGAIN = timedelta(seconds=45)
_FEW = 2
"""Up to so many machines of a region are asked for by name; more by their label, a page at a time."""


def build(context: ProviderContext) -> CloudProvider:
    """The adapter for one deployment."""
    return GcpProvider(context, GcpApi())


class GcpProvider:
    """Compute Engine: implements `ports.cloud.CloudProvider` and `SettlesLaunches`; keeps clients and images only."""

    def __init__(self, context: ProviderContext, api: GcpApi) -> None:
        self._context = context
        self._api = api
        self._images = Images(context.clock)

    def name(self) -> str:
        """The cloud's name."""
        return "gcp"

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,
    ) -> LaunchRequest:
        """Resolve the image, and where the machine goes; see the port.

        Raises:
            CapacityError: no such image, or the fixed disk is smaller than it.
            ProviderUnavailable: no verdict; try again later.
        """
        offer = candidate.offer
        where = launch.network(settings, offer.zone)
        chosen = self._images.resolve(self._api.begin(offer.region), settings, offer, image)
        disk_gb = disk_size(chosen.path, chosen.size_gb, candidate.disk_gb, offer.region, is_fixed=disk_is_fixed)
        return launch.fixed_request(chosen, disk_gb, where, tags, own_image=bool(image))

    def create_instance(self, candidate: Instance) -> Instance:
        """Launch the attempt's machine, whose name is its `cedana_id`; asking twice makes one.

        Returns when Google accepted the launch and a few seconds brought no refusal: `settle_launch` tells the rest.
        An attempt whose machine has ended already comes back as "terminated".

        Raises:
            TypeError: the candidate is no attempt with a fixed launch request.
            CapacityError: not to be had.
            ProviderUnavailable: no verdict; the same request again later.
        """
        attempt, request = launch_of(candidate)
        user_data = self._context.user_data(attempt)
        launch.check(attempt, request, user_data)
        machine = launch.machine(attempt, request, user_data)
        calls = self._api.begin(attempt.region).as_one()
        try:
            return self._launched(calls, attempt, machine, own_image=request.own_image)
        except ProviderError as error:
            if error.code != "alreadyExists":
                raise
            return self._made_before(calls, attempt, error)

    def _launched(self, calls: Calls, attempt: Attempt, machine: Machine, *, own_image: bool) -> Attempt:
        zone, token = attempt.availability_zone, launch.request_id(attempt.cedana_id)
        operation = operations.insert(calls, zone, machine, token, own_image=own_image)
        operation = operations.watched(calls, zone, operation)
        refusal = operations.failure(operation, attempt.region, own_image=own_image)
        if refusal is not None:
            raise refusal
        made = attempt.model_copy(update={"allocated_id": machine.name, "state": "pending"})
        if operation.status != operations.DONE:
            return made
        try:
            [seen] = self._see(calls, [made])
        except ProviderError:
            return made  # the machine was made, whatever it is by now
        return seen if isinstance(seen, Attempt) else made

    def _made_before(self, calls: Calls, attempt: Attempt, error: ProviderError) -> Attempt:
        """The machine that has the attempt's name already, if it is the attempt's."""
        name = launch.machine_name(attempt.cedana_id)
        machine = describe.one(calls, attempt.availability_zone, name)
        if machine is None:
            raise ProviderUnavailable(error.code, f"{name} is in the way and not shown: {error.message}", calls.region)
        if not describe.is_of(machine, self._context.deployment, name):
            raise LaunchRefused(error.code, f"{name} is another's machine: {error.message}", calls.region, scope="pool")
        return describe.as_seen(attempt, machine)

    def settle_launch(self, attempt: Attempt) -> CapacityError | None:
        """How the accepted launch ended, from its operation: one call; see `ports.cloud.SettlesLaunches`.

        Raises:
            NotYet: Google is still at it.
            ProviderError: the question failed.
        """
        calls, name = self._api.begin(attempt.region), launch.machine_name(attempt.cedana_id)
        token = launch.request_id(attempt.cedana_id)
        operation = operations.of_launch(calls, attempt.availability_zone, name, token)
        if operation is None:
            return None
        if operation.status != operations.DONE:
            raise NotYet(f"the launch of {name} goes on: {operation.status_message or 'it is running'}", _LOOK_AGAIN)
        own_image = attempt.launch is not None and attempt.launch.own_image
        return operations.failure(operation, attempt.region, own_image=own_image)

    def destroy_instance(self, instance: Instance) -> None:
        """Delete the machine; no error when Google does not show it, for `describe_instance` is what proves the end.

        Raises:
            ProviderError: Google did not accept the order.
        """
        name = _name(instance)
        if not name:
            return
        request = {"zone": instance.availability_zone, "instance": name}
        try:
            self._api.begin(instance.region).ask(lambda c: c.instances.delete_unary, request)
        except ProviderError as error:
            if error.code != "notFound":
                raise

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002 (the seed's name)
        """The machines as Google shows them now: by name where there are few, else one call a page; see the contract.

        Of those that are missing or ending the zone's operations tell why, one call for each 50.

        Raises:
            InvalidInput: the filter is no state.
            ProviderError: a call failed; it proves nothing about any machine.
        """
        return described(instances, filter, lambda region, here: self._see(self._api.begin(region), here))

    def _see(self, calls: Calls, instances: Sequence[Instance]) -> list[Instance]:
        """The machines of one region, in the order given."""
        found = self._look_up(calls, instances)
        endings: dict[str, operations.Ending | None] = {}
        for zone in sorted({i.availability_zone for i in instances}):
            here = [_name(i) for i in instances if i.availability_zone == zone]
            unclear = [name for name in here if name and (name not in found or status.is_ending(found[name]))]
            told = operations.of_machines(calls.again(), zone, unclear) if unclear else {}
            endings |= {name: operations.ending(told.get(name, ())) for name in unclear}
        return [self._state_of(i, found.get(_name(i)), endings.get(_name(i))) for i in instances]

    def _look_up(self, calls: Calls, instances: Sequence[Instance]) -> dict[str, Machine]:
        if len(instances) > _FEW:
            return {machine.name: machine for machine in describe.owned(calls, self._context.deployment)}
        found = [
            describe.one(calls.again() if n else calls, i.availability_zone, _name(i))
            for n, i in enumerate(instances)
            if _name(i)
        ]
        return {machine.name: machine for machine in found if machine is not None}

    def _state_of(self, instance: Instance, machine: Machine | None, ending: operations.Ending | None) -> Instance:
        """The instance as seen; unseen means gone, unless it is so young that Google may not show it yet."""
        if machine is not None:
            return describe.as_seen(instance, machine, ending)
        young = is_young(instance, self._context.clock(), describe.VISIBLE_AFTER)
        return instance if young and ending is None else describe.as_ended(instance, _name(instance), ending)

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """What Google says about the machine's end; of one that runs only its own metadata service tells anything."""
        [now] = self._see(self._api.begin(instance.region), [instance])
        return status.ended(now)

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """What Google says about the end of machines, by `cedana_id`, given as `describe_instance` returned them."""
        return {i.cedana_id: event for i in instances if (event := status.ended(i))}

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The machine launched for this attempt, by its name, if it carries our labels; see the port.

        Raises:
            ProviderError: the look-up failed; it proves nothing.
        """
        name = launch.machine_name(attempt.cedana_id)
        machine = describe.one(self._api.begin(attempt.region), attempt.availability_zone, name)
        if machine is None or not describe.is_of(machine, self._context.deployment, name):
            return None
        return describe.as_seen(attempt, machine)

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Every machine of this deployment in the region; `cedana_id` is what its label says.

        Raises:
            ProviderError: the listing failed or was cut short; it proves nothing.
        """
        for machine in describe.owned(self._api.begin(region), self._context.deployment):
            known = Instance(
                cedana_id=machine.labels.get(INSTANCE, ""),
                provider=self.name(),
                region=region,
                instance_type=machine.machine_type.rpartition("/")[2],
                created_at=operations.moment(machine.creation_timestamp),
            )
            yield describe.as_seen(known, machine)


def _name(instance: Instance) -> str:
    """The machine's name; "" for an instance that nothing names."""
    return instance.allocated_id or (launch.machine_name(instance.cedana_id) if instance.cedana_id else "")
