"""Azure's GPUs: which model a machine type has, and how much of its memory. The resource SKUs say only how many.

Sources: the size tables of the N-series in the Azure Virtual Machines documentation.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spotferry.domain.azure_types import azure_type

NVIDIA, AMD = "NVIDIA", "AMD"


@dataclass(frozen=True, slots=True)
class GpuModel:
    """One model; vram_mib is the memory of one whole GPU."""

    name: str
    maker: str
    vram_mib: int


_SERIES: Mapping[str, GpuModel] = {
    r"NC\d+r?": GpuModel("K80", NVIDIA, 12_288),
    r"NC\d+r?s_v2": GpuModel("P100", NVIDIA, 16_384),
    r"NC\d+r?s_v3": GpuModel("V100", NVIDIA, 16_384),
    r"NC\d+as_T4_v3": GpuModel("T4", NVIDIA, 16_384),
    r"NC\d+ads_A100_v4": GpuModel("A100-80GB", NVIDIA, 81_920),
    r"NC\d+ads_A10_v4": GpuModel("A10", NVIDIA, 24_576),
    r"NC\d+adi?s_H100_v5": GpuModel("H100", NVIDIA, 96_256),
    r"NCC\d+ads_H100_v5": GpuModel("H100", NVIDIA, 96_256),
    r"ND\d+r?s": GpuModel("P40", NVIDIA, 24_576),
    r"ND\d+rs_v2": GpuModel("V100-32GB", NVIDIA, 32_768),
    r"ND\d+asr_v4": GpuModel("A100", NVIDIA, 40_960),
    r"ND\d+amsr_A100_v4": GpuModel("A100-80GB", NVIDIA, 81_920),
    r"ND\d+isr_H100_v5": GpuModel("H100", NVIDIA, 81_920),
    r"ND\d+isr_H200_v5": GpuModel("H200", NVIDIA, 144_384),
    r"ND\d+isr_MI300X_v5": GpuModel("MI300X", AMD, 196_608),
    r"NV\d+": GpuModel("M60", NVIDIA, 8_192),
    r"NV\d+s_v[23]": GpuModel("M60", NVIDIA, 8_192),
    r"NV\d+as_v4": GpuModel("MI25", AMD, 16_384),
    r"NV\d+adm?s_A10_v5": GpuModel("A10", NVIDIA, 24_576),
    r"NG\d+adm?s_V620_v1": GpuModel("V620", AMD, 32_768),
}
_MODELS = {re.compile(rf"Standard_{series}", re.IGNORECASE): model for series, model in _SERIES.items()}
_VCPUS_OF_A_WHOLE_GPU: Mapping[tuple[str, str], int] = {
    ("MI25", "_v4"): 32,
    ("V620", "_v620_v1"): 32,
    ("A10", "_a10_v4"): 16,
    ("A10", "_a10_v5"): 36,
}
"""Where a machine may have a part of a GPU, by model and version: with so many vCPUs it has the whole one."""


def gpu_model(machine_type: str) -> GpuModel | None:
    """The model in a machine type; None when no table knows the series."""
    return next((model for pattern, model in _MODELS.items() if pattern.fullmatch(machine_type)), None)


def vram_mib(machine_type: str, model: GpuModel, count: int) -> int:
    """The GPU memory that the machine sees: less than a whole GPU's where it has a part of one."""
    named = azure_type(machine_type)
    vcpus_of_whole = _VCPUS_OF_A_WHOLE_GPU.get((model.name, named.version.lower())) if named else None
    if named is None or vcpus_of_whole is None or named.size >= vcpus_of_whole:
        return count * model.vram_mib
    return model.vram_mib * named.size // vcpus_of_whole
