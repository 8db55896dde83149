"""What a placement is asked beside the specification, and its answer: the choice with its proof."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from spotferry.types.base import RECORD_VERSION, Value
from spotferry.types.instance import Candidate

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class Limits:
    """What holds for a placement beside the job's own specification.

    Attributes:
        open_regions: the (provider, region) pairs that were set up; None when all are.
        bans: patterns over `Candidate.pool` that are left alone for all jobs, by (provider, market).
        avoid: patterns over `Candidate.pool` that this job was just taken back from.
        default_disk_gb: size of the disk where the job asks for none.
        image_gb: size of the image of machines without a GPU.
        gpu_image_gb: size of the image of machines with one.
        custom_image: the job brings its own image, whose size nobody knows here: the disk is not checked against it.
    """

    open_regions: frozenset[tuple[str, str]] | None = None
    bans: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    avoid: Sequence[str] = ()
    default_disk_gb: int = 30
    image_gb: int = 8
    gpu_image_gb: int = 45
    custom_image: bool = False


class Plan(Value):
    """The choice and its proof; data, so that it can be kept with the attempt and shown later.

    Attributes:
        version: of this format.
        chosen: the cheapest candidate that fits, disk included; None when none does.
        considered: all candidates: each offer in each market.
        excluded: how many each condition removed, in the order applied; a candidate counts once, where it fell first.
        fit: how many were left; with `excluded` it sums to `considered`.
        next: the next ten, cheapest first.
        impossible: nothing would fit even with nothing banned or avoided.
        blocker: when nothing fits, the condition that alone excludes the most (of equals the later): "banned" or
            "avoided" where the specification itself can be met; "" when something fits.
        words: the reason in one or two sentences.
    """

    version: int = RECORD_VERSION
    chosen: Candidate | None = None
    considered: int
    excluded: Mapping[str, int]
    fit: int
    next: tuple[Candidate, ...] = ()
    impossible: bool = False
    blocker: str = ""
    words: str

    def to_json(self) -> JsonObject:
        """The plan as commands and the API print it: prices are JSON numbers, nothing is nested but the candidates."""
        return {
            "version": self.version,
            "chosen": flat(self.chosen) if self.chosen else None,
            "considered": self.considered,
            "fit": self.fit,
            "excluded": dict(self.excluded),
            "next": [flat(candidate) for candidate in self.next],
            "why": self.words,
        }


def flat(candidate: Candidate) -> JsonObject:
    """A candidate as one flat JSON object; a price prints with exactly the digits that it has."""
    offer = candidate.offer
    list_price = offer.on_demand_usd_hour
    return {
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone,
        "instance_type": offer.instance_type,
        "market": candidate.market,
        "arch": offer.arch,
        "vcpus": offer.vcpus,
        "memory_gib": offer.memory_gib,
        "gpu_name": offer.gpu_name,
        "gpu_count": offer.gpu_count,
        "price_usd_hour": float(candidate.price_usd_hour),
        "disk_gb": candidate.disk_gb,
        "disk_usd_hour": float(candidate.disk_usd_hour),
        "total_usd_hour": float(candidate.total_usd_hour),
        "on_demand_usd_hour": None if list_price is None else float(list_price),
        "price_read_at": offer.read_at.isoformat().replace("+00:00", "Z") if offer.read_at else None,
    }
