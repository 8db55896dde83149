"""What Azure sells in the local cloud: regions, machine types, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from local.market_model import Shape

PROVIDER = "azure"
ZONES: Mapping[str, tuple[str, ...]] = {
    "eastus": ("1", "2", "3"),
    "westeurope": ("1", "2", "3"),
    "northcentralus": ("",),
}
"""By region; a region without zones has one that has no name."""
_DEARER: Mapping[str, Decimal] = {
    "eastus": Decimal(1),
    "westeurope": Decimal("1.2"),
    "northcentralus": Decimal("1.05"),
}
_SPOT_SHARE = Decimal("0.2")
_MIB_PER_GIB = 1024
DISK_USD_MONTH = Decimal("9.60")
"""An E10 disk, 128 GiB."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A machine type and its list price in the cheapest region."""

    vcpus: int
    memory_gib: int
    usd: Decimal
    series: str
    gpus: int = 0
    arch: str = "x64"
    spot: bool = True

    @property
    def shape(self) -> Shape:
        """The size as the market knows it."""
        arch = "arm64" if self.arch == "Arm64" else "x86_64"
        return Shape(self.vcpus, self.memory_gib * _MIB_PER_GIB, self.gpus, "azure", arch)


KINDS: Mapping[str, Kind] = {
    "Standard_D2s_v5": Kind(2, 8, Decimal("0.096"), "Dsv5"),
    "Standard_D4s_v5": Kind(4, 16, Decimal("0.192"), "Dsv5"),
    "Standard_D8s_v5": Kind(8, 32, Decimal("0.384"), "Dsv5"),
    "Standard_E2s_v5": Kind(2, 16, Decimal("0.126"), "Esv5"),
    "Standard_E4s_v5": Kind(4, 32, Decimal("0.252"), "Esv5"),
    "Standard_D2ps_v5": Kind(2, 8, Decimal("0.077"), "Dpsv5", arch="Arm64"),
    "Standard_D4ps_v5": Kind(4, 16, Decimal("0.154"), "Dpsv5", arch="Arm64"),
    "Standard_B2s": Kind(2, 4, Decimal("0.0416"), "BS", spot=False),
    "Standard_NC4as_T4_v3": Kind(4, 28, Decimal("0.526"), "NCasT4 v3", gpus=1),
    "Standard_NC24ads_A100_v4": Kind(24, 220, Decimal("3.673"), "NCads A100 v4", gpus=1),
}


def machine_usd(region: str, name: str, *, spot: bool) -> Decimal | None:
    """What a machine costs an hour; None where it is not sold so."""
    kind = KINDS[name]
    if spot and not kind.spot:
        return None
    return kind.usd * _DEARER[region] * (_SPOT_SHARE if spot else 1)
