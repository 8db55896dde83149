"""What a placement is asked beside the specification, and its answer: the choice with its proof."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from types import MappingProxyType
from typing import Self

from spotferry.domain.interruption_rates import History
from spotferry.types.base import RECORD_VERSION, Money, Value
from spotferry.types.instance import Candidate
from spotferry.types.job_file import Input, JobFile, Objective

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
        inputs: what is copied to the machine; what that costs counts, and it needs room on the disk.
        expected_hours: how long the work takes; 0 when nobody knows, which counts as one hour where it matters.
        objective: what is to be least.
        history: what happened to our own machines; only `expected_cost` asks.
        cpu_families: (provider, family) pairs where the job's checkpoint can go on, see `cpu_families`; None: anywhere.
    """

    open_regions: frozenset[tuple[str, str]] | None = None
    bans: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    avoid: Sequence[str] = ()
    default_disk_gb: int = 30
    image_gb: int = 8
    gpu_image_gb: int = 45
    custom_image: bool = False
    inputs: Sequence[Input] = ()
    expected_hours: Decimal = Decimal(0)
    objective: Objective = "price"
    history: History = field(default_factory=lambda: MappingProxyType({}))
    cpu_families: frozenset[tuple[str, str]] | None = None

    @classmethod
    def of_job(cls, job: JobFile) -> Self:
        """What the job file itself says, beside `instance_specs`."""
        return cls(
            custom_image=bool(job.machine_image),
            inputs=job.inputs,
            expected_hours=job.expected_hours,
            objective=job.objective,
        )

    @property
    def hours(self) -> Decimal:
        """How long the work is taken to be."""
        return self.expected_hours or Decimal(1)

    @property
    def inputs_gb(self) -> Decimal:
        """Size of all inputs together."""
        return sum((given.size_gb for given in self.inputs), Decimal(0))

    @property
    def room_gb(self) -> int:
        """Room on the disk that the inputs need."""
        return int(self.inputs_gb.to_integral_value(ROUND_CEILING))

    @property
    def weighs_runs(self) -> bool:
        """More is asked than the price of an hour: the plan tells what whole runs cost."""
        return bool(self.inputs or self.expected_hours or self.objective != "price")


class RunCost(Value):
    """What a whole run on a candidate is expected to cost.

    Attributes:
        hours: machine time; with `expected_cost` starts, restarts and lost work are in it.
        interruptions: how many are expected; 0 where the objective does not ask.
        interruptions_source: where their rate is from: "class", or what the cloud told; "own_history+" before it where
            our own machines corrected it; "" where the objective does not ask.
        transfer_usd: what it costs to copy the inputs there, as often as it is expected to happen.
        usd: machine, disk and transfer.
    """

    hours: Money
    interruptions: Money = Decimal(0)
    interruptions_source: str = ""
    transfer_usd: Money = Decimal(0)
    usd: Money

    def to_json(self) -> JsonObject:
        """Beside the candidate, in its flat object."""
        return {
            "run_hours": float(round(self.hours, 4)),
            "run_interruptions": float(round(self.interruptions, 6)),
            **({"run_interruptions_source": self.interruptions_source} if self.interruptions_source else {}),
            "run_transfer_usd": float(round(self.transfer_usd, 6)),
            "run_usd": float(round(self.usd, 6)),
        }


class Plan(Value):
    """The choice and its proof; data, so that it can be kept with the attempt and shown later.

    Attributes:
        version: of this format.
        chosen: the cheapest candidate that fits, disk included; None when none does.
        considered: all candidates: each offer in each market.
        excluded: how many each condition removed, in the order applied; a candidate counts once, where it fell first.
        fit: how many were left; with `excluded` it sums to `considered`.
        next: the next ten, cheapest first.
        runs: what whole runs on the chosen and the next cost, in this order; empty where nobody asked.
        objective: what was to be least.
        impossible: nothing would fit even with nothing banned or avoided.
        blocker: when nothing fits, "max_price_usd_hour" where something would without it, else the condition that alone
            excludes the most (of equals the later); "banned" or "avoided" where the specification itself can be met; ""
            when something fits.
        words: the reason in one or two sentences.
    """

    version: int = RECORD_VERSION
    chosen: Candidate | None = None
    considered: int
    excluded: Mapping[str, int]
    fit: int
    next: tuple[Candidate, ...] = ()
    runs: tuple[RunCost, ...] = ()
    objective: Objective = "price"
    impossible: bool = False
    blocker: str = ""
    words: str

    def to_json(self) -> JsonObject:
        """The plan as commands and the API print it: prices are JSON numbers, nothing is nested but the candidates."""
        ranked = [flat(candidate) for candidate in (*((self.chosen,) if self.chosen else ()), *self.next)]
        if self.runs:
            ranked = [candidate | run.to_json() for candidate, run in zip(ranked, self.runs, strict=True)]
        return {
            "version": self.version,
            **({"objective": self.objective} if self.objective != "price" else {}),
            "chosen": ranked[0] if self.chosen else None,
            "considered": self.considered,
            "fit": self.fit,
            "excluded": dict(self.excluded),
            "next": ranked[1:],
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
