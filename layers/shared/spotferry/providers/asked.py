"""What the broker asks of an adapter, checked and sorted alike for every cloud. No SDK."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from spotferry.types.errors import InvalidInput, LaunchRefused, Problem
from spotferry.types.instance import INSTANCE_STATES, Attempt, Instance, LaunchRequest

_Item = TypeVar("_Item")
See = Callable[[str, list[Instance]], Sequence[Instance]]
"""The machines of one region as their cloud shows them now, in the order given."""


def launch_of(candidate: Instance) -> tuple[Attempt, LaunchRequest]:
    """The attempt that is to be launched, and its request.

    Raises:
        TypeError: the candidate is no attempt with a fixed launch request.
    """
    if not isinstance(candidate, Attempt) or candidate.launch is None:
        msg = "create_instance wants an Attempt whose launch request is fixed"
        raise TypeError(msg)
    return candidate, candidate.launch


def disk_size(image: str, image_gb: int, disk_gb: int, region: str, *, is_fixed: bool) -> int:
    """Size of the boot disk in GB: as wanted, and where the job did not name it, no less than the image's.

    Raises:
        LaunchRefused: the job named a disk that is smaller than the image.
    """
    if is_fixed and disk_gb < image_gb:
        message = f"the disk of {disk_gb} GB is smaller than the image {image}, which needs {image_gb} GB"
        raise LaunchRefused("DiskTooSmall", f"{message}: ask for disk_gb: {image_gb} or more", region, scope="none")
    return max(disk_gb, image_gb)


def made_at(instance: Instance) -> datetime | None:
    """When the machine was launched, or else ordered, as far as its record tells."""
    if isinstance(instance, Attempt):
        return instance.launched_at or instance.requested_at
    return instance.created_at


def is_young(instance: Instance, now: datetime, visible_after: timedelta) -> bool:
    """The machine was made so recently that its cloud may not show it yet: unseen does not mean gone."""
    made = made_at(instance)
    return made is not None and now - made < visible_after


def check_filter(state: str) -> None:
    """See that the filter of `describe_instance` is one.

    Raises:
        InvalidInput: it is neither empty nor a state.
    """
    if state and state not in INSTANCE_STATES:
        raise InvalidInput([Problem("filter", f"must be empty or one of {', '.join(INSTANCE_STATES)}")])


def described(instances: Sequence[Instance], state: str, see: See) -> list[Instance]:
    """The machines as they are now, in the order given, each region looked at once; of one state, if one is named.

    Raises:
        InvalidInput: as `check_filter`.
    """
    check_filter(state)
    seen: dict[int, Instance] = {}
    for region in sorted({i.region for i in instances}):
        here = [n for n, i in enumerate(instances) if i.region == region]
        seen |= zip(here, see(region, [instances[n] for n in here]), strict=True)
    return [seen[n] for n in range(len(instances)) if not state or seen[n].state == state]


def batches(items: Iterable[_Item], size: int) -> Iterator[list[_Item]]:
    """The items in lists of that size; the last may be shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
