"""What the laptop's other clouds sell, as a catalogue has it: the prices that their faces open the market with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from local import azure_facts, gcp_facts, paperspace_facts
from spotferry.catalog.starter import READ_AT
from spotferry.types.instance import Offer

_MIB_PER_GIB = 1024
_GIB_USD_MONTH = Decimal("0.10")
"""What a GiB of disk costs a month wherever a cloud's facts name no price of one."""
_AZURE_DISK_GIB = 128
_VRAM_GIB = {"nvidia-tesla-a100": 40, "nvidia-l4": 24, "nvidia-tesla-t4": 16}


def regions_of(cloud: str) -> tuple[str, ...]:
    """The regions that the cloud has here.

    Raises:
        KeyError: there is no such cloud beside AWS.
    """
    return _REGIONS[cloud]


def network_of(cloud: str) -> Mapping[str, str]:
    """What the settings of the cloud's regions say of its network; nothing where the default one serves."""
    return _NETWORKS.get(cloud, {})


def offers_of(cloud: str) -> tuple[Offer, ...]:
    """All that the cloud sells here.

    Raises:
        KeyError: there is no such cloud beside AWS.
    """
    return tuple(_OFFERS[cloud]())


def _gcp() -> Iterator[Offer]:
    for region, zones in gcp_facts.ZONES.items():
        for name, kind in gcp_facts.KINDS.items():
            for zone in zones:
                yield Offer(
                    provider=gcp_facts.PROVIDER,
                    region=region,
                    zone=zone,
                    instance_type=name,
                    arch=kind.shape.arch,
                    vcpus=kind.vcpus,
                    memory_gib=float(kind.memory_gib),
                    gpu_name=kind.gpu.rpartition("-")[2].upper(),
                    gpu_maker="NVIDIA" if kind.gpu else "",
                    gpu_count=kind.gpus,
                    vram_mib=kind.gpus * _VRAM_GIB.get(kind.gpu, 0) * _MIB_PER_GIB,
                    spot_usd_hour=gcp_facts.machine_usd(region, name, spot=True),
                    on_demand_usd_hour=gcp_facts.machine_usd(region, name, spot=False),
                    disk_usd_gib_month=gcp_facts.DISKS["Balanced PD"],
                    read_at=READ_AT,
                )


def _azure() -> Iterator[Offer]:
    for region, zones in azure_facts.ZONES.items():
        for name, kind in azure_facts.KINDS.items():
            for zone in zones:
                yield Offer(
                    provider=azure_facts.PROVIDER,
                    region=region,
                    zone=zone,
                    instance_type=name,
                    arch=kind.shape.arch,
                    vcpus=kind.vcpus,
                    memory_gib=kind.memory_gib,
                    gpu_name=name.split("_")[2] if kind.gpus else "",
                    gpu_maker="NVIDIA" if kind.gpus else "",
                    gpu_count=kind.gpus,
                    spot_usd_hour=azure_facts.machine_usd(region, name, spot=True),
                    on_demand_usd_hour=azure_facts.machine_usd(region, name, spot=False),
                    disk_usd_gib_month=azure_facts.DISK_USD_MONTH / _AZURE_DISK_GIB,
                    read_at=READ_AT,
                )


def _paperspace() -> Iterator[Offer]:
    for pool, kind in paperspace_facts.pools():
        yield Offer(
            provider=paperspace_facts.PROVIDER,
            region=pool.region,
            zone=pool.zone,
            instance_type=pool.instance_type,
            vcpus=kind.vcpus,
            memory_gib=float(kind.memory_gib),
            gpu_name=kind.gpu,
            gpu_maker="NVIDIA" if kind.gpu else "",
            gpu_count=1 if kind.gpu else 0,
            vram_mib=kind.vram_gib * _MIB_PER_GIB,
            on_demand_usd_hour=kind.usd,
            disk_usd_gib_month=_GIB_USD_MONTH,
            read_at=READ_AT,
        )


_REGIONS: Mapping[str, tuple[str, ...]] = {
    "gcp": tuple(gcp_facts.ZONES),
    "azure": tuple(azure_facts.ZONES),
    "paperspace": paperspace_facts.REGIONS,
}
_GROUP = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/spotferry"
_NETWORKS: Mapping[str, Mapping[str, str]] = {
    "azure": {
        "resource_group": "spotferry",
        "subnet_id": f"{_GROUP}/providers/Microsoft.Network/virtualNetworks/machines/subnets/machines",
    },
}
_OFFERS: Mapping[str, Callable[[], Iterator[Offer]]] = {"gcp": _gcp, "azure": _azure, "paperspace": _paperspace}
CLOUDS = ("aws", *_OFFERS)
"""The clouds that can be opened here."""
