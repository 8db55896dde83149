"""The world around a use case: queues, objects, clock, catalogue, clouds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal, Protocol, get_args, runtime_checkable

from spotferry.domain.placement import OfferIndex
from spotferry.domain.view import Effect
from spotferry.types.base import Value
from spotferry.types.errors import CapacityError
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Candidate, Instance, LaunchRequest
from spotferry.types.provider import Provider


class Clock(Protocol):
    """Tells the time."""

    def __call__(self) -> datetime:
        """Now, aware, UTC."""
        ...


class EffectQueue(Protocol):
    """Carries effects to the functions that perform them; at least once, in any order."""

    def send(self, effects: Sequence[Effect], now: datetime) -> None:
        """Send all of them; delays are kept (a queue that cannot wait that long delivers early)."""
        ...


class ObjectStore(Protocol):
    """The bucket."""

    def head(self, key: str) -> int | None:
        """Size of the object in bytes; None when there is none."""
        ...

    def get(self, key: str) -> bytes:
        """The object.

        Raises:
            NotFound: there is none.
        """
        ...

    def put(self, key: str, body: bytes, content_type: str = "application/octet-stream") -> None:
        """Write the object whole."""
        ...

    def keys(self, prefix: str, after: str = "", limit: int = 1000) -> Sequence[tuple[str, int]]:
        """Keys below the prefix and the objects' sizes, in order, beginning after the key `after`."""
        ...

    def url_to_get(self, key: str, expires: timedelta) -> str:
        """An address that reads the object without credentials until it expires."""
        ...

    def written_at(self, key: str) -> datetime | None:
        """When the object was written; None when there is none."""
        ...

    def url_to_put(self, key: str, size_bytes: int, sha256: str, expires: timedelta) -> tuple[str, Mapping[str, str]]:
        """An address that writes the object, of exactly this size and digest (hex), until it expires.

        Returns:
            The address, and the headers that have to go with the bytes.
        """
        ...

    def begin_multipart(self, key: str) -> str:
        """Begin an upload in chunks; its id. Nothing is at the key until it is completed."""
        ...

    def urls_to_put_chunks(
        self, key: str, upload_id: str, count: int, expires: timedelta, first: int = 1
    ) -> Sequence[str]:
        """An address for each of so many chunks, in order; `first` is the number of the first, from 1."""
        ...

    def complete_multipart(self, key: str, upload_id: str, etags: Sequence[str]) -> None:
        """Make the object of its chunks; a repeat succeeds when the object is there.

        Raises:
            InvalidInput: chunks are missing or not as said, or the upload is not known.
        """
        ...

    def abort_multipart(self, key: str, upload_id: str) -> None:
        """Give an upload up; succeeds when it is gone."""
        ...

    def open_uploads(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Key and id of uploads below a prefix that were begun, and neither completed nor given up; at most 1,000."""
        ...

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; those that are gone already are no failure."""
        ...


class Catalogue(Protocol):
    """Today's offers."""

    def offers(self) -> OfferIndex:
        """All offers, indexed for placement; cached, looked at again every minute."""
        ...


def image_key(arch: str, *, with_gpu: bool) -> str:
    """The kind of machine that an image is for, as settings write it: "arm64", "x86_64/gpu"."""
    return f"{arch}/gpu" if with_gpu else arch


class RegionSettings(Value):
    """How machines are launched in one region of one cloud: written by the operator.

    Attributes:
        provider, region: which.
        network: where machines go, by the keys that `settings.py` in the cloud's folder lists; empty means the default
            network, where the cloud has one.
        image_ids: image overrides by "arch" or "arch/gpu".
    """

    provider: str
    region: str
    network: Mapping[str, str] = {}
    image_ids: Mapping[str, str] = {}

    def image_for(self, arch: str, *, with_gpu: bool) -> str:
        """The image override for such machines; "" for none."""
        return self.image_ids.get(image_key(arch, with_gpu=with_gpu), "")


class RegionStore(Protocol):
    """The launch regions that were set up."""

    def regions(self) -> Sequence[RegionSettings]:
        """All of them; cached for a minute."""
        ...


@runtime_checkable
class TellsLaunchPrice(Protocol):
    """A cloud whose prices move between two readings of the catalogue, and that tells what a machine began at."""

    def launch_price(self, attempt: Attempt) -> Decimal | None:
        """What the cloud asked for the machine when it was launched, US dollars an hour without its disk.

        Args:
            attempt: its `launched_at` is known.

        Returns:
            None where the cloud names no price, or none that differs by zone and time.

        Raises:
            ProviderError: the question failed; the price of the catalogue stands.
        """
        ...


@runtime_checkable
class SettlesLaunches(Protocol):
    """A cloud whose `create_instance` returns when the launch was accepted, and that tells later how it ended."""

    def settle_launch(self, attempt: Attempt) -> CapacityError | None:
        """How the launch that was accepted for the attempt ended; whatever a failed one left behind is ordered away.

        Returns:
            None when the machine was made; else why it came to nothing. That is final: the token is used up. It is
            returned, not raised, since a `SkipProvider` that is raised says that the question was denied.

        Raises:
            NotYet: the cloud is still at it.
            ProviderError: the question failed; it proves nothing.
        """
        ...


class CloudProvider(Provider, Protocol):
    """One cloud, as the broker launches on it: the contract of `types.Provider`, and what comes before and after a
    launch.
    """

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,
    ) -> LaunchRequest:
        """Resolve image, zone and network to a fixed request; `agent_sha256` and `broker_url` are "", and
        `max_price_usd_hour` is None, for the caller to fill.

        Args:
            candidate: what is to be bought.
            settings: of its region.
            image: the job's own `machine_image`, "" for the resolver's.
            tags: what the machine will carry.
            disk_is_fixed: the job named the size of its disk; else the request's disk grows to the image's size, and
                its `disk_gb` may be more than the candidate's.

        Raises:
            CapacityError: the candidate cannot be launched here (no such image, a fixed disk smaller than it, ...).
            ProviderUnavailable: no verdict; try again later.
        """
        ...

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """What the cloud has announced for any of the machines, by their `cedana_id`; those it says nothing of are
        left out.

        The batched form of `get_instance_status`, for polls: the instances are as `describe_instance` returned them.

        Raises:
            ProviderError: the look-up failed; it proves nothing.
        """
        ...

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The machine launched for this attempt, found by its tag and token, with state, allocated_id and address
        filled in.

        None when the cloud shows none (yet), or only one that is terminated.

        Raises:
            ProviderError: the look-up failed; it proves nothing.
        """
        ...

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Every machine of this deployment in the region that is not terminated, by its tags; for the reaper.

        Each has allocated_id, state, the region and `created_at`; `cedana_id` is the attempt it was launched for, ""
        where the cloud does not tell.

        Raises:
            ProviderError: the listing failed or was cut short, perhaps after some were yielded; it proves nothing about
                those that are missing.
        """
        ...


class Clouds(Protocol):
    """The clouds that this deployment can launch on."""

    def provider(self, name: str) -> CloudProvider:
        """The cloud of this name; loads its SDK on first use.

        Raises:
            Misconfigured: there is no such cloud here.
        """
        ...


class SecretStore(Protocol):
    """Secrets of jobs, resolved when an agent says hello."""

    def resolve(self, names: Iterable[str]) -> Mapping[str, str]:
        """The values by name.

        Raises:
            Misconfigured: one of them is not there; the message names it, never a value.
        """
        ...


Command = Literal["post_setup", "pre_checkpoint", "post_checkpoint", "pre_restore", "post_restore"]
COMMANDS: tuple[Command, ...] = get_args(Command)
"""The points of a job's life that lines can be put at, beside setup and the task itself."""


class CommandStore(Protocol):
    """The deployment's own lines around every job's life."""

    def commands(self) -> Mapping[str, Sequence[str]]:
        """The lines by the name of their point, of COMMANDS; a point without lines may be left out.

        Raises:
            Misconfigured: what the operator put there is not that.
        """
        ...
