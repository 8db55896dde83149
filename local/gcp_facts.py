"""What Google Cloud sells in the local cloud: zones, machine types, and the rates of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from local.market_model import Shape

PROVIDER = "gcp"
ZONES: Mapping[str, tuple[str, ...]] = {
    "us-central1": ("us-central1-a", "us-central1-b", "us-central1-c"),
    "europe-west4": ("europe-west4-a", "europe-west4-b"),
}
PLACES: Mapping[str, str] = {"us-central1": "Americas", "europe-west4": "Netherlands"}
"""As the catalogue's descriptions call the regions."""
_DEARER: Mapping[str, Decimal] = {"us-central1": Decimal(1), "europe-west4": Decimal("1.1")}
_SPOT_SHARE = Decimal("0.3")
_MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True)
class Family:
    """A machine family: its name in descriptions, and what a core and a GiB cost an hour on demand."""

    words: str
    core: Decimal
    ram: Decimal


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: its name in descriptions, and what one costs an hour on demand."""

    words: str
    usd: Decimal
    most: int


@dataclass(frozen=True, slots=True)
class Kind:
    """A machine type, and the GPUs that come with it; `cores` are those that are paid for."""

    vcpus: int
    memory_gib: Decimal
    cores: Decimal
    gpu: str = ""
    gpus: int = 0
    arch: str = "X86_64"
    shared: bool = False

    @property
    def shape(self) -> Shape:
        """The size as the market knows it."""
        arch = "arm64" if self.arch == "ARM64" else "x86_64"
        return Shape(self.vcpus, int(self.memory_gib * _MIB_PER_GIB), self.gpus, "gcp", arch)


FAMILIES: Mapping[str, Family] = {
    "n1": Family("N1 Predefined Instance", Decimal("0.031611"), Decimal("0.004237")),
    "n2": Family("N2 Instance", Decimal("0.031611"), Decimal("0.004237")),
    "e2": Family("E2 Instance", Decimal("0.021811590"), Decimal("0.002923530")),
    "t2a": Family("T2A Arm Instance", Decimal("0.0245"), Decimal("0.0033")),
    "a2": Family("A2 Instance", Decimal("0.031611"), Decimal("0.004237")),
    "g2": Family("G2 Instance", Decimal("0.024988"), Decimal("0.002927")),
}
GPUS: Mapping[str, Gpu] = {
    "nvidia-tesla-t4": Gpu("Nvidia Tesla T4 GPU", Decimal("0.35"), 4),
    "nvidia-tesla-a100": Gpu("Nvidia Tesla A100 GPU", Decimal("2.933908"), 16),
    "nvidia-l4": Gpu("Nvidia L4 GPU", Decimal("0.560040"), 8),
}
DISKS: Mapping[str, Decimal] = {"Balanced PD": Decimal("0.10"), "Hyperdisk Balanced": Decimal("0.08")}
"""What a GiB costs a month."""


def _plain(
    family: str, kind: str, sizes: tuple[int, ...], gib: str, arch: str = "X86_64"
) -> Iterator[tuple[str, Kind]]:
    for size in sizes:
        yield f"{family}-{kind}-{size}", Kind(size, size * Decimal(gib), Decimal(size), arch=arch)


KINDS: Mapping[str, Kind] = {
    **dict(_plain("n1", "standard", (1, 2, 4, 8, 16), "3.75")),
    **dict(_plain("n2", "standard", (2, 4, 8, 16), "4")),
    **dict(_plain("n2", "highmem", (2, 4), "8")),
    **dict(_plain("e2", "standard", (2, 4, 8), "4")),
    "e2-medium": Kind(2, Decimal(4), Decimal(1), shared=True),
    **dict(_plain("t2a", "standard", (1, 2, 4), "4", "ARM64")),
    "a2-highgpu-1g": Kind(12, Decimal(85), Decimal(12), "nvidia-tesla-a100", 1),
    "g2-standard-4": Kind(4, Decimal(16), Decimal(4), "nvidia-l4", 1),
    "g2-standard-24": Kind(24, Decimal(96), Decimal(24), "nvidia-l4", 2),
}


def core_and_ram_usd(region: str, family: str, *, spot: bool) -> tuple[Decimal, Decimal]:
    """What a core and a GiB cost an hour."""
    factor = _factor(region, spot=spot)
    return FAMILIES[family].core * factor, FAMILIES[family].ram * factor


def gpu_usd(region: str, gpu: str, *, spot: bool) -> Decimal:
    """What a GPU costs an hour."""
    return GPUS[gpu].usd * _factor(region, spot=spot)


def machine_usd(region: str, name: str, *, spot: bool) -> Decimal:
    """What a machine with all that comes with it costs an hour."""
    kind = KINDS[name]
    core, ram = core_and_ram_usd(region, name.partition("-")[0], spot=spot)
    gpus = kind.gpus * gpu_usd(region, kind.gpu, spot=spot) if kind.gpus else Decimal(0)
    return kind.cores * core + kind.memory_gib * ram + gpus


def _factor(region: str, *, spot: bool) -> Decimal:
    return _DEARER[region] * (_SPOT_SHARE if spot else 1)
