"""What Paperspace sells in the local cloud: the machine types of its price list, where, and the templates they boot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from local.market_model import PoolKey, Purchase, Shape
from spotferry.providers.paperspace.pricing import listed

PROVIDER = "paperspace"
QUOTA_FAMILY = "paperspace"
_MIB_PER_GIB = 1024


@dataclass(frozen=True, slots=True)
class Kind:
    """A machine type, its list price, and the regions that have it."""

    vcpus: int
    memory_gib: Decimal
    gpu: str
    vram_gib: int
    usd: Decimal
    regions: tuple[str, ...]

    @property
    def shape(self) -> Shape:
        """The size as the market knows it."""
        return Shape(self.vcpus, int(self.memory_gib * _MIB_PER_GIB), 1 if self.gpu else 0, QUOTA_FAMILY)


KINDS: Mapping[str, Kind] = {
    row["type"]: Kind(
        int(row["vcpus"]),
        Decimal(row["memory_gib"]),
        row["gpu"],
        int(row["vram_gib"] or 0),
        Decimal(row["usd_hour"]),
        tuple(row["regions"].split()),
    )
    for row in listed()
}
REGIONS = tuple(sorted({region for kind in KINDS.values() for region in kind.regions}))


@dataclass(frozen=True, slots=True)
class Template:
    """An operating system to boot; without types it runs on all."""

    name: str
    system: str
    size_gb: int | None
    only_with_gpu: bool = False


TEMPLATES: Mapping[str, Template] = {
    "t0nspur5": Template("Ubuntu 22.04 Server", "Ubuntu 22.04", 50),
    "tx3kjfr6": Template("Ubuntu 20.04 Server", "Ubuntu 20.04", None),
    "tilqt47t": Template("ML-in-a-Box", "Ubuntu 22.04", 50, only_with_gpu=True),
    "twnlo3zj": Template("Windows 10", "Windows Server 2019", 50),
}


def pool(region: str, instance_type: str) -> PoolKey:
    """Where the market has machines of the type; Paperspace has no zones."""
    return PoolKey(PROVIDER, region, "", instance_type, Purchase.ON_DEMAND)


def pools() -> Iterator[tuple[PoolKey, Kind]]:
    """Every pool there is."""
    for name, kind in KINDS.items():
        for region in kind.regions:
            yield pool(region, name), kind
