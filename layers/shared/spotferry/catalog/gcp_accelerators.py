"""GCP prices accelerators apart from the machines that take them: this puts the two together.

N1 machines take a number of accelerators of one kind, within limits; the limits are those of Compute Engine's page
"GPU machine types" (cloud.google.com/compute/docs/gpus, as of 2025). Types of the A2, A3 and G2 series come with
theirs.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from spotferry.catalog.accelerators import gpus_of
from spotferry.types.instance import Offer

_N1 = re.compile(r"n1-(standard|highmem|highcpu)-\d+")
_MOST_VCPUS: Mapping[str, Mapping[int, int]] = {
    "K80": {1: 8, 2: 16, 4: 32, 8: 64},
    "P4": {1: 24, 2: 48, 4: 96},
    "P100": {1: 16, 2: 32, 4: 96},
    "T4": {1: 48, 2: 48, 4: 96},
    "V100": {1: 12, 2: 24, 4: 48, 8: 96},
}
"""vCPUs of an N1 machine at most, by accelerator and count; other counts are not sold."""
_MOST_GIB_PER_VCPU = 6.5
_NARROW = {
    ("P100", 4): (frozenset({"us-east1-c", "europe-west1-b", "europe-west1-d"}), 64, 208),
    ("K80", 8): (frozenset({"us-east1-d", "asia-east1-a"}), 64, 208),
}
"""Zones where less is possible: vCPUs and GiB at most."""

_SERIES = ("a2-", "a3-", "a4-", "ct", "g2-")
_COUNTED = re.compile(r"(a2-highgpu|a2-megagpu|a2-ultragpu|a3-highgpu|a3-megagpu)-(\d+)g")
_COUNTED_NAMES: Mapping[str, tuple[str, ...]] = {
    "a2-highgpu": ("A100",),
    "a2-megagpu": ("A100",),
    "a2-ultragpu": ("A100-80GB",),
    "a3-highgpu": ("H100", "H100-80GB"),
    "a3-megagpu": ("H100-MEGA",),
}
_G2_COUNTS = {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A number of accelerators in one zone, at a price of their own; `row` tells the list's rows apart."""

    row: int
    name: str
    count: int
    region: str
    zone: str
    spot_usd_hour: Decimal | None
    on_demand_usd_hour: Decimal | None


@dataclass(frozen=True, slots=True)
class Host:
    """A machine whose price lacks its accelerators."""

    row: int
    offer: Offer


def comes_with_accelerators(instance_type: str) -> bool:
    """The type's series has its accelerators built in."""
    return instance_type.startswith(_SERIES)


def joined(
    accelerators: Iterable[Accelerator], machines: Iterable[Offer], hosts: Iterable[Host]
) -> Iterator[tuple[Offer, frozenset[int]]]:
    """Every machine with the accelerators that it can have in its zone, and the rows that were used for it.

    Args:
        accelerators: those priced alone; what is no GPU that we know is passed over.
        machines: machines that run without accelerators as well.
        hosts: machines that never do.
    """
    by_zone: dict[tuple[str, str], list[Accelerator]] = defaultdict(list)
    for accelerator in accelerators:
        by_zone[accelerator.region, accelerator.zone].append(accelerator)
    for machine in machines:
        if _N1.fullmatch(machine.instance_type) and not machine.gpu_count:
            for accelerator in filter(partial(_takes, machine), by_zone.get((machine.region, machine.zone), ())):
                yield from _together(machine, accelerator)
    for host in hosts:
        for accelerator in filter(partial(_has, host.offer), by_zone.get((host.offer.region, host.offer.zone), ())):
            yield from _together(host.offer, accelerator, host.row)


def _has(host: Offer, accelerator: Accelerator) -> bool:
    names, count = _built_in(host.instance_type)
    return accelerator.name in names and accelerator.count == count


def _takes(machine: Offer, accelerator: Accelerator) -> bool:
    most = _MOST_VCPUS.get(accelerator.name, {}).get(accelerator.count, 0)
    zones, narrow_vcpus, narrow_gib = _NARROW.get((accelerator.name, accelerator.count), (frozenset(), 0, 0))
    if machine.zone in zones:
        return machine.vcpus <= narrow_vcpus and machine.memory_gib <= narrow_gib
    return machine.vcpus <= most and machine.memory_gib <= most * _MOST_GIB_PER_VCPU


def _built_in(instance_type: str) -> tuple[tuple[str, ...], int]:
    if counted := _COUNTED.fullmatch(instance_type):
        return _COUNTED_NAMES[counted[1]], int(counted[2])
    series, _, vcpus = instance_type.rpartition("-")
    if series == "g2-standard" and vcpus.isdecimal():
        return ("L4",), _G2_COUNTS.get(int(vcpus), 0)
    return (), 0


def _together(machine: Offer, accelerator: Accelerator, *rows: int) -> Iterator[tuple[Offer, frozenset[int]]]:
    gpus = gpus_of(accelerator.name, accelerator.count, "")
    spot = _sum(machine.spot_usd_hour, accelerator.spot_usd_hour)
    on_demand = _sum(machine.on_demand_usd_hour, accelerator.on_demand_usd_hour)
    if gpus.count and (spot or on_demand):
        whole = {
            "gpu_name": gpus.name,
            "gpu_maker": gpus.maker,
            "gpu_count": gpus.count,
            "vram_mib": gpus.vram_mib,
            "spot_usd_hour": spot,
            "on_demand_usd_hour": on_demand,
        }
        yield machine.model_copy(update=whole), frozenset({accelerator.row, *rows})


def _sum(machine: Decimal | None, accelerator: Decimal | None) -> Decimal | None:
    """Together they have a price in a market only when both have one there."""
    return None if machine is None or accelerator is None else machine + accelerator
