"""What the providers' contract needs: the levers of a cloud's wire face, and attempts to launch on it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Protocol

from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.types.instance import Attempt, Candidate, Instance

SDKS = ("boto3", "botocore", "google.auth", "azure", "httpx")
"""The packages, whole or their roots, that the clouds' adapters speak through."""
_serials = count(1)


@dataclass
class World:
    """What a test decides for the adapter under test."""

    deployment: str = "contract"
    user_data: str = "#!/bin/sh\ntrue\n"
    late: timedelta = field(default_factory=timedelta)

    def clock(self) -> datetime:
        """Now, and as much later as the test says."""
        return datetime.now(UTC) + self.late


class Cloud(Protocol):
    """A cloud's wire face and its levers; each lever holds until `calm`, which runs after each test.

    A lever that this face has not skips the test, with the reason (`pytest.skip`).

    Attributes:
        name: the provider's.
        sdks: the packages of those in `SDKS` that loading the provider may import.
        user_data_limit_bytes: the largest user data that it takes.
        sells_spot: it has a spot market; else candidates are on demand.
        takes_price_cap: it refuses a machine whose price has passed `max_price_usd_hour`.
        sells_once: it sees to it itself that a token, however often and at once it is sent, sells one machine; else
            deliveries at the same time may buy several, of which the adapter keeps one and ends the others.
        patience_seconds: how long it may take until a machine runs, or has ended.
        tells_take_backs: of a machine that it took back it tells so, also when the machine is gone.
        disks_grow: disks are sold in steps: a size between two, also one that a job named, becomes the larger one.
        nonsense: bodies that, with status 200, are no answers of its API.
    """

    name: str
    sdks: frozenset[str]
    user_data_limit_bytes: int
    sells_spot: bool
    takes_price_cap: bool
    sells_once: bool
    patience_seconds: float
    tells_take_backs: bool
    disks_grow: bool
    nonsense: Sequence[bytes]

    def provider(self, world: World) -> CloudProvider:
        """An adapter that speaks to the face with good credentials, and does not really sleep between retries."""
        ...

    def provider_at(self, world: World, url: str) -> CloudProvider:
        """The same adapter, but before another service at that address."""
        ...

    def settle(self, provider: CloudProvider, made: Attempt) -> Attempt:
        """What became of an accepted launch: as it is where the cloud decides at once, else as CheckLaunch finds out.

        Returns when the cloud will certainly make the machine; it need not run yet.

        Raises:
            CapacityError: the cloud had accepted the launch and could not carry it out.
        """
        ...

    def provider_without_credentials(self, world: World) -> AbstractContextManager[CloudProvider]:
        """An adapter in an environment that has no credentials."""
        ...

    def provider_of_a_mute_service(self, world: World) -> AbstractContextManager[tuple[CloudProvider, timedelta]]:
        """An adapter whose service never answers, its limits scaled down; and the limit of 20 s on that scale."""
        ...

    def slow(self, world: World, share: float) -> AbstractContextManager[tuple[CloudProvider, Callable[[], float]]]:
        """An adapter each of whose calls takes this share of the longest that one may take; and its clock, in seconds.

        The time does not really pass.
        """
        ...

    def candidate(self, region: int = 0) -> Candidate:
        """A machine that is to be had, in the first or the second of two regions."""
        ...

    def candidate_not_sold_there(self) -> Candidate:
        """A machine whose zone (or region, where there are no zones) does not sell its type."""
        ...

    def unknown_id(self, number: int = 0) -> str:
        """An id in the cloud's own form that no machine has; another one for each number."""
        ...

    def settings(self, candidate: Candidate) -> RegionSettings:
        """The launch settings of its region."""
        ...

    def bought(self, attempt: Attempt) -> Sequence[str]:
        """Ids of all machines that the cloud ever sold for this attempt."""
        ...

    def billing(self, attempt: Attempt) -> Sequence[str]:
        """Ids of its machines of which the cloud still bills something, be it only the disk."""
        ...

    def calls(self) -> int:
        """How many calls reached for the wire so far."""
        ...

    def calls_for(self, machines: int) -> int:
        """How many calls a look-up of so many machines of one region takes at most, in the largest batches or pages."""
        ...

    def calm(self) -> None:
        """Undo every lever."""
        ...

    def stock_up(self, machines: int) -> None:
        """Have so many machines, and the quota for them."""
        ...

    def exhaust(self, candidate: Candidate) -> None:
        """Leave nothing in its pool."""
        ...

    def use_up_quota(self, candidate: Candidate) -> None:
        """Leave no quota for its type."""
        ...

    def throttle(self, times: int) -> None:
        """Throttle the next calls."""
        ...

    def fail_next(self, code: str) -> None:
        """Refuse the next launch with a code that no table knows."""
        ...

    def lose_answers(self, times: int) -> None:
        """Carry out the next launches, and lose their answers."""
        ...

    def hide_new_machines(self) -> None:
        """Leave new machines out of every listing for longer than a test takes."""
        ...

    def revoke_credentials(self) -> None:
        """Refuse the adapter's credentials everywhere."""
        ...

    def deny_region(self, candidate: Candidate) -> None:
        """Deny everything in its region, by a policy of the organisation."""
        ...

    def end_without_notice(self, attempt: Attempt) -> None:
        """Take the machine back at once, as the cloud would; without a spot market, let it fail and be gone."""
        ...

    def switch_off(self, attempt: Attempt) -> None:
        """Have the machine's own system shut it down."""
        ...


def tags(deployment: str = "contract") -> Mapping[str, str]:
    """What machines carry."""
    return {"spotferry:deployment": deployment, "spotferry:job": "j-contract"}


def a_token() -> str:
    """An id that no other attempt has."""
    return f"i-{datetime.now(UTC).timestamp():.0f}-{next(_serials):05d}"


def an_attempt(
    cloud: Cloud, provider: CloudProvider | None, candidate: Candidate | None = None, deployment: str = "contract"
) -> Attempt:
    """An attempt on a candidate, its request fixed by the provider (without one: as it was fixed for the last)."""
    candidate = candidate or cloud.candidate()
    if provider is not None:
        launch = provider.prepare(candidate, cloud.settings(candidate), "", tags(deployment))
        _LAST[candidate.pool] = an_empty_attempt(candidate).model_copy(update={"launch": launch})
    return _LAST[candidate.pool].model_copy(update={"cedana_id": a_token()})


_LAST: dict[str, Attempt] = {}


def an_empty_attempt(candidate: Candidate) -> Attempt:
    """An attempt as placement makes it."""
    return Attempt(
        job_id="j-contract",
        epoch=1,
        provider=candidate.offer.provider,
        instance_type=candidate.offer.instance_type,
        region=candidate.offer.region,
        availability_zone=candidate.offer.zone,
        price=candidate.price_usd_hour,
        market=candidate.market,
        arch=candidate.offer.arch,
        disk_gb=candidate.disk_gb,
        requested_at=datetime.now(UTC),
    )


def made_now(provider: CloudProvider, attempt: Attempt) -> Attempt:
    """The attempt after its launch, as the broker records it."""
    made = provider.create_instance(attempt)
    assert isinstance(made, Attempt)
    return made.model_copy(update={"launched_at": datetime.now(UTC)})


def launched(cloud: Cloud, provider: CloudProvider, attempt: Attempt) -> Attempt:
    """The attempt after its launch, once the cloud has decided about it; raises what the launch comes to."""
    return cloud.settle(provider, made_now(provider, attempt))


def states(provider: CloudProvider, *instances: Instance) -> list[str]:
    """The states that the cloud shows."""
    return [i.state for i in provider.describe_instance(instances, "")]


def lookups(provider: CloudProvider, made: Instance) -> Sequence[Callable[[], object]]:
    """Every question that can be asked about a machine."""
    assert isinstance(made, Attempt)
    return [
        lambda: provider.describe_instance([made], ""),
        lambda: provider.get_instance_status(made),
        lambda: provider.find_instance(made),
        lambda: list(provider.owned_instances(made.region)),
    ]
