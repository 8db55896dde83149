"""Two clouds over the local market, in process: one takes client tokens, one goes by the machine's name."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Protocol

from local.market import Market
from local.market_model import (
    LaunchRequest as Asked,
)
from local.market_model import (
    Machine,
    NoCapacityError,
    PriceTooLowError,
    QuotaExceededError,
    Timings,
    UnknownMachineError,
)
from local.market_model import (
    MachineState as State,
)
from spotferry.ports.cloud import RegionSettings
from spotferry.providers.aws.states import STATE_REASONS, STATES
from spotferry.providers.ends import ended_by
from spotferry.types.errors import CapacityError, NotYet, TryNextRegion, TryNextZone
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Candidate, Instance, LaunchRequest
from tests.simulation.offers import SHAPE, pool_key, price_rows
from tests.simulation.virtual import VirtualTime

OURS = "sim"
"""Name of the deployment."""

_YOUNG = timedelta(minutes=5)
_OVER = (State.SHUTTING_DOWN, State.TERMINATED)


class CloudWatch(Protocol):
    """Sees what clouds are asked for."""

    def asked_for(self, attempt: Attempt) -> None:
        """A launch was asked for."""

    def told_to_end(self, machine: Machine) -> None:
        """The end of a machine was asked for."""


class SimMarket(Market):
    """The market on virtual time: it moves as soon as something of it is due."""

    def __init__(self, time: VirtualTime, seed: int, timings: Timings) -> None:
        self._time = time
        super().__init__(time, seed=seed, timings=timings)
        self.set_prices(price_rows())

    def _at(self, due: datetime, action: Callable[[datetime], None]) -> None:
        super()._at(due, action)
        self._time.at(due, lambda: self._move(due))

    def _move(self, due: datetime) -> None:
        if self._timers and self._timers[0][0] <= due:
            self.advance()


def tags_of(machine: Machine) -> Mapping[str, str]:
    """What the machine carries."""
    return machine.request.tags


class SimCloud:
    """One cloud: implements `ports.cloud.CloudProvider`, and tells launch prices.

    Args:
        name: the cloud's.
        market: sells its machines.
        watch: sees what is asked.
        by_name: it has no tokens: a machine has the name it is asked for by, which is free again once it is gone.
    """

    def __init__(self, name: str, market: SimMarket, watch: CloudWatch, *, by_name: bool) -> None:
        self._name = name
        self._market = market
        self._watch = watch
        self.by_name = by_name

    def name(self) -> str:
        """Its name."""
        return self._name

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,
    ) -> LaunchRequest:
        """A request for the region's only image."""
        assert disk_is_fixed in {True, False}
        return LaunchRequest(
            image_id=image or f"image-{settings.region}",
            disk_gb=candidate.disk_gb,
            tags=tags,
            agent_sha256="",
            broker_url="",
        )

    def create_instance(self, candidate: Instance) -> Attempt:
        """One machine for the attempt's token, or name."""
        assert isinstance(candidate, Attempt)
        self._watch.asked_for(candidate)
        known = self._named(candidate) if self.by_name else None
        return _as_seen(candidate, known or self._sold(candidate))

    def _named(self, attempt: Attempt) -> Machine | None:
        here = self._market.everything()
        return next((m for m in here if _is_for(m, attempt) and m.state is not State.TERMINATED), None)

    def _sold(self, attempt: Attempt) -> Machine:
        assert attempt.launch is not None
        asked = Asked(
            pool=pool_key(self._name, attempt.region, attempt.availability_zone, attempt.instance_type, attempt.market),
            shape=SHAPE,
            fingerprint=attempt.launch.model_dump_json(),
            client_token=None if self.by_name else attempt.cedana_id,
            tags=attempt.launch.tags,
        )
        try:
            return self._market.launch(asked)
        except (NoCapacityError, PriceTooLowError) as error:
            raise TryNextZone("InsufficientInstanceCapacity", str(error), attempt.region) from error
        except QuotaExceededError as error:
            raise TryNextRegion("MaxSpotInstanceCountExceeded", str(error), attempt.region) from error

    def destroy_instance(self, instance: Instance) -> None:
        """Its end begins; one that is not shown is none."""
        ids = [instance.allocated_id] if instance.allocated_id else [m.allocated_id for m in self._living(instance)]
        for allocated_id in ids:
            self._watch.told_to_end(self._market.get(allocated_id))
            try:
                self._market.terminate(self._name, instance.region, [allocated_id])
            except UnknownMachineError:
                continue

    def _living(self, instance: Instance) -> Iterator[Machine]:
        shown = self._market.visible(self._name, instance.region)
        return (m for m in shown if _is_for(m, instance) and m.state is not State.TERMINATED)

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002 (the seed's name)
        """As the cloud shows them."""
        seen = [self._seen(instance) for instance in instances]
        return [i for i in seen if not filter or i.state == filter]

    def _seen(self, instance: Instance) -> Instance:
        shown = {m.allocated_id: m for m in self._market.visible(self._name, instance.region)}
        machine = shown.get(instance.allocated_id)
        if machine is not None:
            return _as_seen(instance, machine) if isinstance(instance, Attempt) else instance
        since = (instance.launched_at or instance.requested_at) if isinstance(instance, Attempt) else None
        young = since is not None and self._market.now() - since < _YOUNG
        return instance if young else instance.model_copy(update={"state": "terminated"})

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """What was announced, and why those that ended did."""
        shown = {m.allocated_id: m for i in instances for m in self._market.visible(self._name, i.region)}
        found = {i.cedana_id: _said(shown[i.allocated_id]) for i in instances if i.allocated_id in shown}
        return {instance_id: said for instance_id, said in found.items() if said is not None}

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """The same for one."""
        return self.get_instance_statuses([instance]).get(instance.cedana_id)

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The attempt's machine, by what it carries."""
        machine = next(self._living(attempt), None)
        return None if machine is None else _as_seen(attempt, machine)

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Every machine of this deployment in the region that is not terminated."""
        for machine in self._market.visible(self._name, region):
            if machine.state is not State.TERMINATED and tags_of(machine).get("spotferry:deployment") == OURS:
                known = Instance(
                    cedana_id=tags_of(machine).get("spotferry:instance", ""),
                    allocated_id=machine.allocated_id,
                    provider=self._name,
                    region=region,
                    instance_type=machine.pool.instance_type,
                    created_at=machine.launched_at,
                    state=STATES[machine.state],
                )
                yield known

    def settle_launch(self, attempt: Attempt) -> CapacityError | None:
        """How an accepted launch ended, where machines go by their names.

        Raises:
            NotYet: it has not.
        """
        machine = next((m for m in self._market.everything() if m.allocated_id == attempt.allocated_id), None)
        if machine is None or machine.running_at is not None:
            return None
        if machine.state is not State.TERMINATED:
            raise NotYet("the machine is still being made", timedelta(seconds=30))
        return TryNextZone("ZONE_RESOURCE_POOL_EXHAUSTED", "the zone had none left", attempt.region)

    def launch_price(self, attempt: Attempt) -> Decimal | None:
        """What the machine began at."""
        return self._market.get(attempt.allocated_id).price_usd_hour


def _is_for(machine: Machine, instance: Instance) -> bool:
    return tags_of(machine).get("spotferry:instance") == instance.cedana_id


def _as_seen(attempt: Attempt, machine: Machine) -> Attempt:
    reason = machine.reason.message if machine.reason else attempt.cloud_reason
    code = machine.reason.code if machine.reason else ""
    over = machine.state in _OVER
    changes: dict[str, object] = {
        "allocated_id": machine.allocated_id,
        "state": STATES[machine.state],
        "ip_address": f"10.0.0.{machine.serial}",
        "cloud_reason": reason,
        "launched_at": machine.launched_at,
        "billed_until": machine.billing_ended_at if over else None,
        "ended_by": ended_by(STATE_REASONS.get(code)) if over else "",
    }
    return attempt.model_copy(update=changes)


def _said(machine: Machine) -> ProviderEvent | None:
    if machine.state in _OVER and machine.reason is not None:
        taken = machine.taken_back
        return ProviderEvent(
            instance_id=machine.allocated_id, fault_code=machine.reason.code, marked_for_termination=taken
        )
    if machine.notice is None:
        return None
    return ProviderEvent(
        instance_id=machine.allocated_id,
        fault_code="marked-for-termination",
        marked_for_termination=True,
        termination_time=int(machine.notice.due_at.timestamp()),
    )
