"""An AWS price list that is made here, for where the public one is not at hand."""

import random
from collections.abc import Iterator

HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
ZONES = {"us-east-1": "use1", "us-west-2": "usw2", "eu-west-1": "euw1", "eu-west-3": "euw3", "sa-east-1": "sae1"}


def made_up_list(dice: random.Random) -> str:
    """The list as CSV text."""
    return "\n".join([HEADER, *_rows(dice)])


def _rows(dice: random.Random) -> Iterator[str]:
    """Types with and without GPUs, rows without prices, prices that tie, regions whose disks differ in price."""
    for family, accelerator, maker, mib in (
        ("m5", "", "", 0),
        ("c6g", "", "", 0),
        ("t3", "", "", 0),
        ("g4dn", "T4", "NVIDIA", 16_384),
        ("g4ad", "Radeon Pro V520", "AMD", 8_192),
        ("p3dn", "V100-32GB", "NVIDIA", 32_768),
        ("p4de", "A100-80GB", "", 0),
    ):
        for size in range(6):
            yield from _rows_of_type(dice, f"{family}.{size or ''}large", accelerator, maker, mib, 2 << size)


def _rows_of_type(dice: random.Random, kind: str, accelerator: str, maker: str, mib: int, vcpus: int) -> Iterator[str]:
    memory, count, listed = vcpus * dice.choice([2, 4, 8]), max(1, vcpus // 8), vcpus * dice.choice([0.03, 0.05, 0.4])
    info = accelerator if accelerator and not maker else ""
    if maker:
        gpu = {
            "Name": accelerator.partition("-")[0],
            "Manufacturer": maker,
            "Count": count,
            "MemoryInfo": {"SizeInMiB": mib},
        }
        info = str({"Gpus": [gpu], "TotalGpuMemoryInMiB": count * mib})
    for region, short in ZONES.items():
        for zone in range(1, dice.choice([2, 4, 7])):
            spot = dice.choice(["", "0", f"{listed * 0.4:.4f}", f"{listed * dice.uniform(0.2, 1.1):.4f}"])
            price = dice.choice(["", "0.0", f"{listed:.4f}", f"{listed:.4f}", f"{listed:.4f}"])
            name, number = (accelerator, count) if accelerator else ("", "")
            yield f'{kind},{name},{number},{vcpus}.0,{memory}.0,"{info}",{price},{spot},{region},{short}-az{zone}'
