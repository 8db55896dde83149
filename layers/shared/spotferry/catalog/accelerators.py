"""The GPUs in a row of a price list."""

from dataclasses import dataclass
from functools import lru_cache

from spotferry.types.gpu import parse_gpus

_NVIDIA_MIB = {
    "A10": 24_576,
    "A100": 40_960,
    "A100-80GB": 81_920,
    "A10G": 24_576,
    "B200": 183_359,
    "H100": 81_920,
    "H100-80GB": 81_920,
    "H200": 144_384,
    "K520": 4_096,
    "K80": 12_288,
    "L4": 24_576,
    "L40S": 49_152,
    "M60": 8_192,
    "P100": 16_384,
    "P4": 8_192,
    "T4": 16_384,
    "T4g": 16_384,
    "V100": 16_384,
    "V100-32GB": 32_768,
}


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of one machine; `vram_mib` is theirs together."""

    name: str = ""
    maker: str = ""
    count: int = 0
    vram_mib: int = 0


@lru_cache(maxsize=4096)
def gpus_of(name: str, count: float, info: str) -> Gpus:
    """What accelerator name, accelerator count and GPU text of a row say together.

    The text decides; where it is empty or malformed, the name, if it is that of a GPU we know. An accelerator that is
    no GPU (an FPGA, an inference chip, a TPU) gives none: no job that asks for a GPU may get it.
    """
    described = parse_gpus(info)
    if described.gpus:
        first = described.gpus[0]
        total = described.total_gpu_memory_in_mib or sum(g.count * g.memory_info.size_in_mib for g in described.gpus)
        return Gpus(name or first.name, first.manufacturer, sum(g.count for g in described.gpus), total)
    if name in _NVIDIA_MIB and count >= 1:
        return Gpus(name, "NVIDIA", int(count), int(count) * _NVIDIA_MIB[name])
    return Gpus()
