"""The cloud `aws`: EC2 as the broker launches on it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.asked import described, disk_size, is_young, launch_of
from spotferry.providers.aws import describe, launch, status
from spotferry.providers.aws.api import AwsApi, Calls
from spotferry.providers.aws.images import Images
from spotferry.providers.aws.spot_price import price_at_launch
from spotferry.providers.aws.zones import ZoneNames
from spotferry.providers.context import DEPLOYMENT_TAG, ProviderContext
from spotferry.types.errors import ProviderError
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Candidate, Instance, LaunchRequest

VISIBLE_AFTER = timedelta(minutes=5)
"""How long EC2 may fail to show a machine that it made."""


def build(context: ProviderContext) -> CloudProvider:
    """The adapter for one deployment."""
    return AwsProvider(context, AwsApi())


class AwsProvider:
    """EC2: implements `ports.cloud.CloudProvider`; keeps clients, images and zone names, nothing about machines."""

    def __init__(self, context: ProviderContext, api: AwsApi) -> None:
        self._context = context
        self._api = api
        self._images = Images(context.clock)
        self._zones = ZoneNames()

    def name(self) -> str:
        """The cloud's name."""
        return "aws"

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,
    ) -> LaunchRequest:
        """Resolve image, zone and subnet; see the port.

        Raises:
            CapacityError: no such zone, subnet or image here, or the fixed disk is smaller than the image.
            ProviderUnavailable: no verdict; try again later.
        """
        offer = candidate.offer
        calls = self._api.begin(offer.region)
        zone = self._zones.name(calls, offer.zone)
        where = launch.network(settings, offer.zone, zone)
        chosen = self._images.resolve(calls, settings, offer, image)
        disk_gb = disk_size(chosen.image_id, chosen.size_gb, candidate.disk_gb, offer.region, is_fixed=disk_is_fixed)
        return launch.fixed_request(chosen, disk_gb, where, tags, own_image=bool(image))

    def create_instance(self, candidate: Instance) -> Instance:
        """Launch the attempt's machine; the client token is its `cedana_id`, so asking twice makes one.

        An attempt whose machine has ended already comes back as "terminated".

        Raises:
            TypeError: the candidate is no attempt with a fixed launch request.
            CapacityError: not to be had.
            ProviderUnavailable: no verdict; the same request again later.
        """
        attempt, request = launch_of(candidate)
        params = launch.run_instances(attempt, request, self._context.user_data(attempt))
        calls = self._api.begin(attempt.region).as_one()
        try:
            answer = calls.run_instances(attempt.instance_type, params, own_image=request.own_image)
            seen = describe.launched(answer, attempt.region)
        except ProviderError as error:
            return self._made_before(calls, attempt, error)
        return describe.as_seen(attempt, seen)

    def _made_before(self, calls: Calls, attempt: Attempt, error: ProviderError) -> Attempt:
        """The machine that this token bought before, where EC2's refusal says that there is one; else the refusal."""
        if error.code not in {"IdempotentParameterMismatch", "IdempotentInstanceTerminated"}:
            raise error
        machines = describe.by_filter(calls, "client-token", [attempt.cedana_id])
        if not machines:
            raise error
        return describe.as_seen(attempt, machines[0])

    def destroy_instance(self, instance: Instance) -> None:
        """Terminate the machine; no error when EC2 does not show it, for `describe_instance` is what proves the end.

        Raises:
            ProviderError: EC2 did not accept the order.
        """
        calls = self._api.begin(instance.region)
        ids = [instance.allocated_id] if instance.allocated_id else self._ids_by_token(calls, instance)
        for allocated_id in ids:
            try:
                calls.ec2("terminate_instances", InstanceIds=[allocated_id])
            except ProviderError as error:
                if error.code not in describe.NOT_FOUND:
                    raise

    def _ids_by_token(self, calls: Calls, instance: Instance) -> list[str]:
        seen = describe.living(calls, {"client-token": instance.cedana_id}) if instance.cedana_id else ()
        return [machine["InstanceId"] for machine in seen]

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002 (the seed's name)
        """The machines as EC2 shows them now, one call for each 500 of a region; see the contract.

        Those without an `allocated_id` are looked up by their client token.

        Raises:
            InvalidInput: the filter is no state.
            ProviderError: a call failed; it proves nothing about any machine.
        """
        return described(instances, filter, lambda region, here: self._see(self._api.begin(region), here))

    def _see(self, calls: Calls, instances: Sequence[Instance]) -> list[Instance]:
        """The machines of one region, in the order given."""
        seen = dict(self._look_up(calls, instances))
        now = self._context.clock()
        return [_state_of(i, seen.get(i.allocated_id or i.cedana_id), now) for i in instances]

    def _look_up(self, calls: Calls, instances: Iterable[Instance]) -> Iterator[tuple[str, describe.Seen]]:
        """The machines of one region, keyed by allocated_id, or by cedana_id where that is all there is."""
        known = [i.allocated_id for i in instances if i.allocated_id]
        tokens = [i.cedana_id for i in instances if not i.allocated_id and i.cedana_id]
        yield from describe.by_id(calls, known).items()
        for machine in describe.by_filter(calls.again() if known else calls, "client-token", tokens):
            yield machine["ClientToken"], machine

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """What EC2 has announced for the machine; of a spot machine that still runs, the request is asked as well."""
        calls = self._api.begin(instance.region)
        [now] = self._see(calls, [instance])
        event = status.ended(now)
        if not (status.is_vague(now) if event else status.may_be_announced(now)):
            return event
        requests = status.spot_requests(calls, [now.allocated_id])
        return status.announced(now, requests.get(now.allocated_id)) or event

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """What EC2 says about the end of machines, by `cedana_id`, given as `describe_instance` returned them.

        Asks nothing about machines that run; one call for each 200 spot machines of a region of whose end EC2 told no
        exact cause or time.

        Raises:
            ProviderError: the question failed.
        """
        events = {i.cedana_id: event for i in instances if (event := status.ended(i))}
        vague = [i for i in instances if i.cedana_id in events and status.is_vague(i)]
        for region in sorted({i.region for i in vague}):
            requests = status.spot_requests(
                self._api.begin(region), [i.allocated_id for i in vague if i.region == region]
            )
            for instance in (i for i in vague if i.region == region):
                exact = status.announced(instance, requests.get(instance.allocated_id))
                events[instance.cedana_id] = exact or events[instance.cedana_id]
        return events

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The machine launched for this attempt, by its client token, if it carries the attempt's tags; see the port.

        Raises:
            ProviderError: the look-up failed; it proves nothing.
        """
        wanted = dict(attempt.launch.tags) if attempt.launch else {}
        for seen in describe.living(self._api.begin(attempt.region), {"client-token": attempt.cedana_id}):
            if wanted.items() <= describe.tags(seen).items():
                return describe.as_seen(attempt, seen)
        return None

    def launch_price(self, attempt: Attempt) -> Decimal | None:
        """The spot price in the machine's zone at its launch, one call; see `ports.cloud.TellsLaunchPrice`.

        Raises:
            ProviderError: the question failed.
        """
        return price_at_launch(self._api.begin(attempt.region), attempt)

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Every machine of this deployment in the region that is not terminated; `cedana_id` is its client token.

        Raises:
            ProviderError: the listing failed or was cut short; it proves nothing.
        """
        ours = {f"tag:{DEPLOYMENT_TAG}": self._context.deployment}
        for seen in describe.living(self._api.begin(region), ours):
            known = Instance(
                cedana_id=seen.get("ClientToken", ""),
                provider=self.name(),
                region=region,
                instance_type=seen.get("InstanceType", ""),
                created_at=seen.get("LaunchTime"),
            )
            yield describe.as_seen(known, seen)


def _state_of(instance: Instance, seen: describe.Seen | None, now: datetime) -> Instance:
    """The instance as seen; unseen means gone, unless it is so young that EC2 may not show it yet."""
    if seen is not None:
        return describe.as_seen(instance, seen)
    young = is_young(instance, now, VISIBLE_AFTER)
    return instance if young else instance.model_copy(update={"state": "terminated"})
