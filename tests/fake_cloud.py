"""A cloud that is steered by hand: refuses, loses answers, hides machines, takes them away."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from spotferry.ports.cloud import RegionSettings
from spotferry.types import (
    Attempt,
    Candidate,
    Instance,
    LaunchRefused,
    LaunchRequest,
    Misconfigured,
    ProviderError,
    ProviderEvent,
    ProviderUnavailable,
    SpotferryError,
)


@dataclass(slots=True)
class _Fault:
    error: ProviderError
    times: int
    after: bool = False


@dataclass(slots=True)
class FakeCloud:
    """A cloud that launches at once.

    Attributes:
        machines: every machine ever made, by the token it was asked for with.
        calls: how often each method was called, by "method" and "method:region".
        statuses: what it announces, by our id of the machine.
        hidden: machines do not show in listings (yet), but run.
        image_gb: size of every image.
        dead_regions: what a look-up there raises.
        launch_prices: what it asks at launch by type, where that is not what the catalogue has.
        names_by_token: machines are called by the token that they were asked for with.
    """

    provider_name: str = "aws"
    machines: dict[str, Attempt] = field(default_factory=dict)
    destroyed: list[str] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    statuses: dict[str, ProviderEvent] = field(default_factory=dict)
    hidden: bool = False
    image_gb: int = 0
    dead_regions: dict[str, SpotferryError] = field(default_factory=dict)
    launch_prices: dict[str, Decimal] = field(default_factory=dict)
    names_by_token: bool = False
    _faults: dict[str, list[_Fault]] = field(default_factory=dict)

    def refuse(self, error: ProviderError, times: int = 1, on: str = "create") -> None:
        """The next calls of `create`, `prepare`, `destroy`, `find`, `price`, `describe` or `owned` raise this."""
        self._faults.setdefault(on, []).append(_Fault(error, times))

    def lose_answer(self) -> None:
        """The next launch makes its machine, but its answer is lost."""
        lost = ProviderUnavailable("RequestTimeout", "no answer")
        self._faults.setdefault("create", []).append(_Fault(lost, 1, after=True))

    def _call(self, name: str, region: str, *, after: bool = False) -> None:
        if not after:
            self.calls[name] += 1
            self.calls[f"{name}:{region}"] += 1
            if region in self.dead_regions:
                raise self.dead_regions[region]
        fault = next((f for f in self._faults.get(name, ()) if f.times), None)
        if fault is not None and fault.after == after:
            fault.times -= 1
            raise fault.error

    def name(self) -> str:
        """Its name."""
        return self.provider_name

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,
    ) -> LaunchRequest:
        """A request with an image of the region's, of `image_gb`."""
        self._call("prepare", candidate.offer.region)
        if disk_is_fixed and candidate.disk_gb < self.image_gb:
            raise LaunchRefused("DiskTooSmall", f"the disk needs {self.image_gb} GB", scope="none")
        return LaunchRequest(
            image_id=image or f"ami-{settings.region}",
            disk_gb=max(candidate.disk_gb, self.image_gb),
            tags=tags,
            agent_sha256="",
            broker_url="",
            own_image=bool(image),
        )

    def create_instance(self, candidate: Instance) -> Attempt:
        """One machine a token."""
        assert isinstance(candidate, Attempt)
        self._call("create", candidate.region)
        made = self.machines.get(candidate.cedana_id)
        if made is None:
            number = len(self.machines) + 1
            name = candidate.cedana_id if self.names_by_token else f"i-{number:017x}"
            known = {"allocated_id": name, "state": "pending", "ip_address": f"10.0.0.{number}"}
            made = self.machines[candidate.cedana_id] = candidate.model_copy(update=known)
        self._call("create", candidate.region, after=True)
        return made

    def launch_price(self, attempt: Attempt) -> Decimal | None:
        """What it asked at the launch."""
        self._call("price", attempt.region)
        return self.launch_prices.get(attempt.instance_type)

    def destroy_instance(self, instance: Instance) -> None:
        """It begins to end; one that is not shown is not found by its name either."""
        self._call("destroy", instance.region)
        self.destroyed.append(instance.cedana_id)
        if self.hidden and not instance.allocated_id:
            return
        if instance.cedana_id in self.machines and self.machines[instance.cedana_id].state != "terminated":
            self.set_state(instance.cedana_id, "shutting-down")

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002 (the seed's name)
        """As the cloud sees them."""
        assert not filter
        for region in sorted({i.region for i in instances}):
            self._call("describe", region)
        return [i if self.hidden else self._seen(i) for i in instances]

    def _seen(self, instance: Instance) -> Instance:
        machine = self.machines.get(instance.cedana_id)
        if machine is None:
            return instance.model_copy(update={"state": "terminated"})
        told = ("state", "cloud_reason", "ended_by", "billed_until")
        return instance.model_copy(update={name: getattr(machine, name) for name in told})

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """What was announced for any of them."""
        return {i.cedana_id: self.statuses[i.cedana_id] for i in instances if i.cedana_id in self.statuses}

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """What was announced for it."""
        return self.statuses.get(instance.cedana_id)

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The machine of the attempt."""
        self._call("find", attempt.region)
        machine = self.machines.get(attempt.cedana_id)
        return None if self.hidden or machine is None or machine.state == "terminated" else machine

    def owned_instances(self, region: str) -> Iterator[Attempt]:
        """Its machines in the region that are not terminated, unless they are hidden."""
        self._call("owned", region)
        living = [m for m in self.machines.values() if m.region == region and m.state != "terminated"]
        yield from () if self.hidden else living

    def set_state(self, instance_id: str, state: str, reason: str = "") -> None:
        """The machine is in this state from now on."""
        changes = {"state": state, "cloud_reason": reason}
        self.machines[instance_id] = self.machines[instance_id].model_copy(update=changes)

    def terminate(self, instance_id: str, reason: str = "Server.SpotInstanceTermination") -> None:
        """The machine is gone."""
        self.set_state(instance_id, "terminated", reason)

    def finish_ending(self) -> None:
        """What began to end has ended."""
        for instance_id, machine in list(self.machines.items()):
            if machine.state in {"shutting-down", "stopping"}:
                self.set_state(instance_id, "terminated", machine.cloud_reason)

    def living(self) -> list[str]:
        """Our ids of the machines that run and cost."""
        return [i for i, machine in self.machines.items() if machine.state in {"pending", "running"}]


@dataclass(slots=True)
class FakeClouds:
    """The clouds by name."""

    by_name: dict[str, FakeCloud]

    def provider(self, name: str) -> FakeCloud:
        """The cloud of this name."""
        if name not in self.by_name:
            raise Misconfigured(f"there is no provider {name!r} in this deployment")
        return self.by_name[name]
