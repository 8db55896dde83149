"""Google Cloud's GPUs: their names in its two APIs, their memory, and which N1 hosts take how many of them.

Sources: "GPU machine types" and "Attach GPUs to N1" in the Compute Engine documentation.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model.

    Attributes:
        name: as offers have it.
        catalogue_names: what the billing catalogue calls it, the name that counts first.
        vram_mib: memory of one.
    """

    name: str
    catalogue_names: tuple[str, ...]
    vram_mib: int


GPU_MODELS: Mapping[str, GpuModel] = {
    "nvidia-tesla-k80": GpuModel("K80", ("Tesla K80",), 12_288),
    "nvidia-tesla-p4": GpuModel("P4", ("Tesla P4",), 8_192),
    "nvidia-tesla-p100": GpuModel("P100", ("Tesla P100",), 16_384),
    "nvidia-tesla-v100": GpuModel("V100", ("Tesla V100",), 16_384),
    "nvidia-tesla-t4": GpuModel("T4", ("Tesla T4",), 16_384),
    "nvidia-tesla-a100": GpuModel("A100", ("Tesla A100",), 40_960),
    "nvidia-a100-80gb": GpuModel("A100-80GB", ("Tesla A100 80GB", "A100 80GB"), 81_920),
    "nvidia-l4": GpuModel("L4", ("L4",), 24_576),
    "nvidia-h100-80gb": GpuModel("H100", ("H100 80GB",), 81_920),
    "nvidia-h100-mega-80gb": GpuModel("H100-MEGA", ("H100 80GB Mega", "H100 80GB Plus"), 81_920),
    "nvidia-h200-141gb": GpuModel("H200", ("H200 141GB", "H200"), 144_384),
    "nvidia-b200": GpuModel("B200", ("B200",), 184_320),
}
"""By the name that the compute API gives accelerators."""
GPU_MAKER = "NVIDIA"


@dataclass(frozen=True, slots=True)
class HostLimit:
    """The largest N1 host that may have so many GPUs of a model."""

    count: int
    vcpus: int
    memory_gib: float


_HOST_LIMITS: Mapping[str, tuple[HostLimit, ...]] = {
    "nvidia-tesla-k80": (
        HostLimit(1, 8, 52),
        HostLimit(2, 16, 104),
        HostLimit(4, 32, 208),
        HostLimit(8, 64, 208),
    ),
    "nvidia-tesla-p4": (HostLimit(1, 24, 156), HostLimit(2, 48, 312), HostLimit(4, 96, 624)),
    "nvidia-tesla-p100": (HostLimit(1, 16, 104), HostLimit(2, 32, 208), HostLimit(4, 96, 624)),
    "nvidia-tesla-v100": (
        HostLimit(1, 12, 78),
        HostLimit(2, 24, 156),
        HostLimit(4, 48, 312),
        HostLimit(8, 96, 624),
    ),
    "nvidia-tesla-t4": (HostLimit(1, 48, 312), HostLimit(2, 48, 312), HostLimit(4, 96, 624)),
}
_NARROW_P100_ZONES = frozenset({"us-east1-c", "europe-west1-d", "europe-west1-b"})
_NARROW_P100 = HostLimit(4, 64, 208)


def counts_for_host(accelerator: str, zone: str, vcpus: float, memory_gib: float, most: int) -> Iterator[int]:
    """How many GPUs of the model an N1 host of this size may have in the zone.

    Args:
        accelerator: the compute API's name.
        zone: three zones take less with four P100.
        vcpus: of the host.
        memory_gib: of the host.
        most: the zone's own limit of GPUs to an instance.
    """
    for limit in _HOST_LIMITS.get(accelerator, ()):
        fitting = limit
        if accelerator == "nvidia-tesla-p100" and zone in _NARROW_P100_ZONES and limit.count == _NARROW_P100.count:
            fitting = _NARROW_P100
        if limit.count <= most and vcpus <= fitting.vcpus and memory_gib <= fitting.memory_gib:
            yield limit.count
