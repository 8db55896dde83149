"""What EC2 offers where: the zones of a region, the types in each, and the size of a type."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spotferry.providers.asked import batches
from spotferry.providers.aws.api import Calls
from spotferry.providers.aws.describe import PAGE, answers
from spotferry.types.errors import ProviderError

_TYPES_A_CALL = 100
_LARGE_MEMORY_MIB: Mapping[str, int] = {"A100": 81_920, "V100": 32_768}
_ARCHITECTURES = ("x86_64", "arm64")


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of an instance type; `vram_mib` is that of all its GPUs together."""

    arch: str
    vcpus: int
    memory_gib: float
    gpu_name: str = ""
    gpu_maker: str = ""
    gpu_count: int = 0
    vram_mib: int = 0


def zone_ids(calls: Calls) -> dict[str, str]:
    """Names of the region's own zones, to their ids.

    Zones outside of the region (local zones and those in carriers' networks) have prices of their own, which the price
    list of the region does not tell: they are left out.

    Raises:
        ProviderError: the question failed.
    """
    zones = calls.ec2("describe_availability_zones").get("AvailabilityZones", [])
    own = [z for z in zones if z.get("ZoneType", "availability-zone") == "availability-zone"]
    return {z["ZoneName"]: z["ZoneId"] for z in own if z.get("ZoneId") and z.get("State", "available") == "available"}


def offered(calls: Calls) -> set[tuple[str, str]]:
    """The pairs of type and zone id in which the type is offered.

    Raises:
        ProviderError: the listing failed; a part of it is worth nothing.
    """
    listing = answers(calls, "describe_instance_type_offerings", LocationType="availability-zone-id", MaxResults=PAGE)
    return {
        (str(row["InstanceType"]), str(row["Location"]))
        for answer in listing
        for row in answer.get("InstanceTypeOfferings", [])
    }


# Any: a type as the SDK gives it, a tree of plain values.
def shape_of(fact: Mapping[str, Any]) -> Shape | None:
    """The size of a type as DescribeInstanceTypes tells it; None for one that runs no Linux of ours (a Mac, 32 bits).

    A type that has only a share of a GPU counts as having none.
    """
    arch = next((a for a in _ARCHITECTURES if a in fact.get("ProcessorInfo", {}).get("SupportedArchitectures", [])), "")
    vcpus = int(fact.get("VCpuInfo", {}).get("DefaultVCpus", 0))
    memory_mib = int(fact.get("MemoryInfo", {}).get("SizeInMiB", 0))
    if not (arch and vcpus and memory_mib):
        return None
    return Shape(arch, vcpus, memory_mib / 1024, *_gpus(fact.get("GpuInfo") or {}))


def _gpus(info: Mapping[str, Any]) -> tuple[str, str, int, int]:
    """Name, maker, count and memory in MiB; a GPU that is sold with two sizes of memory has the larger in its name."""
    gpus = [gpu for gpu in info.get("Gpus", []) if int(gpu.get("Count", 0)) > 0]
    if not gpus:
        return "", "", 0, 0
    name, one = str(gpus[0].get("Name", "")), int(gpus[0].get("MemoryInfo", {}).get("SizeInMiB", 0))
    if one and one == _LARGE_MEMORY_MIB.get(name):
        name = f"{name}-{one // 1024}GB"
    count = sum(int(gpu["Count"]) for gpu in gpus)
    memory = sum(int(gpu["Count"]) * int(gpu.get("MemoryInfo", {}).get("SizeInMiB", 0)) for gpu in gpus)
    return name, str(gpus[0].get("Manufacturer", "")), count, int(info.get("TotalGpuMemoryInMiB", 0)) or memory


@dataclass
class Shapes:
    """The sizes of types, the same in every region, so that each type is asked for once; safe between threads."""

    _known: dict[str, Shape | None] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, calls: Calls, types: Iterable[str]) -> Mapping[str, Shape | None]:
        """The sizes of these types, all of which the region offers; one that EC2 does not describe is missing.

        Raises:
            ProviderError: a call failed.
        """
        wanted = set(types)
        # One region asks while the others wait: they would ask for the same types.
        with self._lock:
            for batch in batches(sorted(wanted - self._known.keys()), _TYPES_A_CALL):
                self._known |= _described(calls.again(), batch)
            return {name: self._known[name] for name in wanted & self._known.keys()}


def _described(calls: Calls, types: list[str]) -> dict[str, Shape | None]:
    try:
        listing = list(answers(calls, "describe_instance_types", InstanceTypes=types))
    except ProviderError as error:
        if error.code != "InvalidInstanceType":
            raise
        # One type that EC2 does not know fails the call for all.
        listing = list(answers(calls.again(), "describe_instance_types", MaxResults=_TYPES_A_CALL))
    return {str(fact["InstanceType"]): shape_of(fact) for answer in listing for fact in answer.get("InstanceTypes", [])}
