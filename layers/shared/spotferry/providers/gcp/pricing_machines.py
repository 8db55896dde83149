"""Google Cloud's machine types: what one is made of, and what its parts cost together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field

from spotferry.providers.gcp.pricing_gpus import GPU_MODELS
from spotferry.providers.gcp.pricing_rates import (
    ANY_FAMILY,
    BALANCED_DISK,
    CORE,
    DISK,
    GPU,
    HYPERDISK,
    MACHINE,
    PREMIUM,
    RAM,
    SSD,
    Part,
    Rates,
)

_MIB_PER_GIB = 1024
_SHARED_CORES: Mapping[str, Decimal] = {
    "e2-micro": Decimal("0.25"),
    "e2-small": Decimal("0.5"),
    "e2-medium": Decimal(1),
}
"""Types that show two vCPUs and are charged for a part of one core."""
_WHOLE_MACHINES = ("f1-micro", "g1-small")
_BILLED_AS: Mapping[str, str] = {
    "a3-megagpu": "a3plus",
    "a3-ultragpu": "a3ultra",
    "m4-ultramem-224": "m4ultramem224",
}
"""Types whose parts are charged by other rates than the family's in their name."""
_LOCAL_DISK_GIB: Mapping[str, int] = {"z3": 3000, "a3ultra": 3000, "a4": 3000, "a4x": 3000}
_USUAL_LOCAL_DISK_GIB = 375
_HYPERDISK_ONLY = frozenset(
    {
        "a3ultra",
        "a4",
        "a4x",
        "c4",
        "c4a",
        "c4d",
        "c4n",
        "g4",
        "h4d",
        "m4",
        "m4n",
        "m4ultramem224",
        "n4",
        "n4a",
        "n4d",
        "x4",
    }
)
"""Families that boot from Hyperdisk and from nothing else."""
_SPOT_ONLY = frozenset({"a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g"})
"""Types that have a sum of rates on demand, too, and are sold as spot or for a time ordered beforehand."""
_ARM_FAMILIES = frozenset({"a4x", "c4a", "n4a", "t2a"})


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Accelerator(_Answer):
    model: str = Field(alias="guestAcceleratorType")
    count: int = Field(alias="guestAcceleratorCount")


class _LocalDisks(_Answer):
    partition_count: int = Field(default=0, alias="partitionCount")


class _Deprecation(_Answer):
    state: str = ""


class MachineType(_Answer):
    """One machine type of a zone, as the compute API gives it."""

    name: str
    guest_cpus: int = Field(alias="guestCpus")
    memory_mb: int = Field(alias="memoryMb")
    is_shared_cpu: bool = Field(default=False, alias="isSharedCpu")
    architecture: str = ""
    accelerators: tuple[_Accelerator, ...] = ()
    local_disks: _LocalDisks = Field(default=_LocalDisks(), alias="bundledLocalSsds")
    deprecated: _Deprecation = _Deprecation()

    @property
    def memory_gib(self) -> float:
        """Its memory."""
        return self.memory_mb / _MIB_PER_GIB

    @property
    def family(self) -> str:
        """The family by whose rates it is charged."""
        return _family(self.name)

    @property
    def arch(self) -> str:
        """x86_64 or arm64; older answers do not say, and only families of one architecture are older."""
        arm = self.architecture == "ARM64" if self.architecture else self.family in _ARM_FAMILIES
        return "arm64" if arm else "x86_64"

    @property
    def is_for_sale(self) -> bool:
        """Not deprecated, obsolete or deleted."""
        return self.deprecated.state in ("", "ACTIVE")

    @property
    def takes_gpus(self) -> bool:
        """GPUs may be attached to it: to N1 machines that do not share their cores."""
        return self.family == "n1" and not self.is_shared_cpu

    @property
    def gpu(self) -> tuple[str, int]:
        """The accelerator that comes with it and how many; ("", 0) for none."""
        for accelerator in self.accelerators:
            return accelerator.model, accelerator.count
        return "", 0

    @property
    def disk_type(self) -> str:
        """The disk it boots from."""
        return HYPERDISK if boots_from_hyperdisk(self.name) else BALANCED_DISK


def boots_from_hyperdisk(name: str) -> bool:
    """The type of this name boots from Hyperdisk; every other boots from a balanced persistent disk."""
    return _family(name) in _HYPERDISK_ONLY


def _family(name: str) -> str:
    for prefix, family in _BILLED_AS.items():
        if name == prefix or name.startswith(f"{prefix}-"):
            return family
    return name.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Till:
    """Adds up what machines cost in one region."""

    rates: Rates
    region: str

    def machine_usd_hour(self, machine: MachineType, gpu: str, gpu_count: int, *, spot: bool) -> Decimal | None:
        """The machine with so many GPUs for an hour, boot disk apart.

        None when one of its parts has no rate, or when it is not sold so.
        """
        if machine.name in _SPOT_ONLY and not spot:
            return None
        total = Decimal(0)
        for amount, part in _parts(machine):
            rate = self._rate(part, spot=spot)
            if rate is None:
                return None
            total += amount * rate
        if not gpu_count:
            return total
        rate = self._gpu_rate(gpu, spot=spot)
        return None if rate is None else total + gpu_count * rate

    def disk_usd_gib_month(self, machine: MachineType) -> Decimal | None:
        """A GiB of the disk it boots from, for a month; None when the catalogue does not say."""
        return self.rates.get(self.region, Part(DISK, machine.disk_type), spot=False)

    def disks_without_rate(self) -> tuple[str, ...]:
        """The types of boot disks that the catalogue does not price here."""
        kinds = (BALANCED_DISK, HYPERDISK)
        return tuple(kind for kind in kinds if self.rates.get(self.region, Part(DISK, kind), spot=False) is None)

    def _rate(self, part: Part, *, spot: bool) -> Decimal | None:
        """A family without local-disk rates of its own has the common ones; an m2 is an m1 with its premium."""
        rate = self.rates.get(self.region, part, spot=spot)
        if rate is None and part.kind == SSD:
            return self.rates.get(self.region, Part(SSD, ANY_FAMILY), spot=spot)
        if rate is None and part.of == "m2":
            base = self.rates.get(self.region, Part(part.kind, "m1"), spot=spot)
            premium = self.rates.get(self.region, Part(part.kind, PREMIUM), spot=spot)
            return None if base is None or premium is None else base + premium
        return rate

    def _gpu_rate(self, gpu: str, *, spot: bool) -> Decimal | None:
        names = GPU_MODELS[gpu].catalogue_names if gpu in GPU_MODELS else ()
        found = (self.rates.get(self.region, Part(GPU, name), spot=spot) for name in names)
        return next((rate for rate in found if rate is not None), None)


def _parts(machine: MachineType) -> Iterator[tuple[Decimal, Part]]:
    if machine.name in _WHOLE_MACHINES:
        yield Decimal(1), Part(MACHINE, machine.name)
        return
    family = machine.family
    yield _SHARED_CORES.get(machine.name, Decimal(machine.guest_cpus)), Part(CORE, family)
    yield Decimal(machine.memory_mb) / _MIB_PER_GIB, Part(RAM, family)
    if disks := machine.local_disks.partition_count:
        yield Decimal(disks * _LOCAL_DISK_GIB.get(family, _USUAL_LOCAL_DISK_GIB)), Part(SSD, family)
