"""A second opinion on placement: reads a price list by itself, and looks at every row in every market.

It shares with the product the table of disk prices, which is data, and nothing else.
"""

import ast
import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fnmatch import fnmatchcase
from pathlib import Path

from spotferry.catalog.disk_prices import disk_usd_gib_month
from spotferry.domain.placement import Limits
from spotferry.types import UserInstanceSpecs

SHARED_LISTS = Path(__file__).parents[4] / "shared" / "catalog"
ARM_FAMILIES = frozenset(
    ("a1", "t4g", "m6g", "m6gd", "c6g", "c6gd", "c6gn", "c7g", "r6g", "r6gd", "x2gd", "im4gn", "is4gen", "g5g", "mac2")
)
IMAGE_GB, GPU_IMAGE_GB, DEFAULT_DISK_GB = 8, 45, 30


@dataclass(frozen=True)
class Machine:
    """What a row says of the machine."""

    kind: str
    arch: str
    vcpus: float
    memory: float
    gpu_words: frozenset[str]
    gpus: int
    vram_mib: int

    def disk_gb(self, specs: UserInstanceSpecs) -> int:
        """Size of the disk it would get."""
        return specs.disk_gb or max(DEFAULT_DISK_GB, self.image_gb)

    @property
    def image_gb(self) -> int:
        """Size of its image."""
        return GPU_IMAGE_GB if self.gpus else IMAGE_GB


@dataclass(frozen=True)
class Price:
    """What a row says of one market; no amount where it has no price there."""

    region: str
    zone: str
    market: str
    amount: Decimal | None


List = Mapping[Machine, list[Price]]


@dataclass(frozen=True)
class Verdict:
    """The lowest total of what fits, and how many prices fail first at each condition ("fit" for none)."""

    cheapest: Decimal | None
    counts: Mapping[str, int]


def read_list(path: Path) -> List:
    """Every row of an AWS list that has a price in some market, in both markets."""
    machines: dict[Machine, list[Price]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            prices = {"spot": price_in(row["SpotPrice"]), "on_demand": price_in(row["Price"])}
            if any(prices.values()):
                listed = machines.setdefault(machine_of(row), [])
                listed += [
                    Price(row["Region"], row["AvailabilityZone"], market, amount) for market, amount in prices.items()
                ]
    return machines


def judge(machines: List, specs: UserInstanceSpecs, limits: Limits) -> Verdict:
    """Look at every price of every machine."""
    counts: Counter[str] = Counter()
    totals: list[Decimal] = []
    cap, wanted = specs.max_price_usd_hour, "spot" if specs.spot else "on_demand"
    for machine, prices in machines.items():
        unfit = next((name for name, met in _of_machine(machine, specs) if not met), "")
        for price in prices:
            failed = _fails_at(price, wanted, specs, limits) or unfit
            if not failed:
                total = _total(machine, price, specs)
                failed = "max_price_usd_hour" if cap and total > cap else _set_aside(machine, price, limits)
                totals += [] if failed else [total]
            counts[failed or "fit"] += 1
    return Verdict(min(totals, default=None), counts)


def _fails_at(price: Price, wanted: str, specs: UserInstanceSpecs, limits: Limits) -> str:
    if price.amount is None:
        return "no_price"
    if price.market != wanted:
        return "market"
    if specs.providers and "aws" not in specs.providers:
        return "providers"
    if specs.regions and price.region not in specs.regions:
        return "regions"
    opened = limits.open_regions is None or ("aws", price.region) in limits.open_regions
    return "" if opened else "region_not_set_up"


def _set_aside(machine: Machine, price: Price, limits: Limits) -> str:
    pool = f"{price.region}/{price.zone}/{machine.kind}"
    if any(fnmatchcase(pool, pattern) for pattern in limits.bans.get(("aws", price.market), ())):
        return "banned"
    return "avoided" if any(fnmatchcase(pool, pattern) for pattern in limits.avoid) else ""


def _of_machine(machine: Machine, specs: UserInstanceSpecs) -> list[tuple[str, bool]]:
    word = specs.gpu.strip().lower()
    return [
        ("arch", machine.arch == specs.arch),
        ("instance_type", specs.instance_type in {"", machine.kind}),
        ("cpu_cores", machine.vcpus >= specs.cpu_cores),
        ("memory_gb", machine.memory >= specs.memory_gb),
        ("gpu", not word or word in machine.gpu_words),
        ("gpu_count", machine.gpus >= specs.gpu_count),
        ("vram_gb", machine.vram_mib >= specs.vram_gb * 1024),
        ("disk_gb", machine.disk_gb(specs) >= machine.image_gb),
    ]


def _total(machine: Machine, price: Price, specs: UserInstanceSpecs) -> Decimal:
    assert price.amount is not None
    disk = disk_usd_gib_month("aws", price.region) * machine.disk_gb(specs) / 730
    return price.amount + disk.quantize(Decimal("1e-9"), ROUND_HALF_UP)


def machine_of(row: Mapping[str, str]) -> Machine:
    """The machine in a row of an AWS list."""
    kind = row["InstanceType"]
    words, gpus, vram_mib = _gpus(row)
    arch = "arm64" if kind.partition(".")[0] in ARM_FAMILIES else "x86_64"
    return Machine(kind, arch, float(row["vCPUs"]), float(row["MemoryGiB"]), words, gpus, vram_mib)


def _gpus(row: Mapping[str, str]) -> tuple[frozenset[str], int, int]:
    if row["GpuInfo"].startswith("{"):
        info = ast.literal_eval(row["GpuInfo"])
        (gpu,) = info["Gpus"]
        words = {row["AcceleratorName"], gpu["Name"], gpu["Manufacturer"]}
        return frozenset(word.lower() for word in words), gpu["Count"], info["TotalGpuMemoryInMiB"]
    if row["AcceleratorName"] == "A100-80GB":
        count = int(float(row["AcceleratorCount"]))
        return frozenset({"a100-80gb", "a100", "nvidia"}), count, count * 81_920
    return frozenset(), 0, 0


def price_in(text: str) -> Decimal | None:
    """A price, None for none; zero is none."""
    price = Decimal(text or 0)
    return price if price > 0 else None
