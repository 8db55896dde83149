"""Azure's resource SKUs: sizes, zones, restrictions, and the GPUs that only a name tells."""

import pytest

from spotferry.providers.azure.pricing_gpus import gpu_model, vram_mib
from spotferry.providers.azure.pricing_skus import ResourceSku
from tests.unit.providers.azure.azure_answers import Json, sku


def zones(row: Json, region: str = "eastus") -> list[str]:
    """Where the SKU may be had."""
    return list(ResourceSku.model_validate(row).zones_in(region))


def restricted(kind: str, **info: object) -> Json:
    """A SKU with a restriction."""
    restriction = {
        "type": kind,
        "values": ["eastus"],
        "restrictionInfo": info,
        "reasonCode": "NotAvailableForSubscription",
    }
    return {**sku(zones=("3", "1", "2")), "restrictions": [restriction]}


def test_zones_in_order() -> None:
    """The zones come in order; the region's name may be written in any case."""
    assert zones(sku(zones=("3", "1", "2")), "EastUS") == ["1", "2", "3"]


def test_a_region_without_zones_has_one_place() -> None:
    """Where a region has no zones, the machine is placed by region."""
    assert zones(sku(zones=())) == [""]


def test_another_region_has_none() -> None:
    """A SKU that is not in the region is nowhere."""
    assert zones(sku(), "westus") == []


def test_restrictions() -> None:
    """A restricted zone is left out; a restricted location leaves nothing, also one that names no values."""
    assert zones(restricted("Zone", locations=["eastus"], zones=["2"])) == ["1", "3"]
    assert zones(restricted("Zone", locations=["eastus"], zones=["1", "2", "3"])) == []
    assert zones(restricted("Location", locations=["eastus"])) == []
    everywhere = {**sku(), "restrictions": [{"type": "Location", "values": None, "restrictionInfo": None}]}
    assert zones(everywhere) == []
    elsewhere = {**sku(), "restrictions": [{"type": "Location", "values": ["westus"]}]}
    assert zones(elsewhere) == ["1", "2"]


def test_lists_may_be_null() -> None:
    """Microsoft writes null where a list is empty."""
    row = {**sku(), "capabilities": None, "restrictions": None, "locationInfo": None}
    read = ResourceSku.model_validate(row)
    assert (read.vcpus, read.memory_gib, read.gpu_count, read.zones_in("eastus")) == (0, 0, 0, ())


def test_constrained_vcpus_count() -> None:
    """A type with constrained vCPUs has those that it shows."""
    assert ResourceSku.model_validate(sku(vCPUs="8", vCPUsAvailable="2")).vcpus == 2


@pytest.mark.parametrize(
    ("machine_type", "count", "name", "vram_gib"),
    [
        ("Standard_NC4as_T4_v3", 1, "T4", 16),
        ("Standard_NC64as_T4_v3", 4, "T4", 64),
        ("Standard_NC24ads_A100_v4", 1, "A100-80GB", 80),
        ("Standard_ND96asr_v4", 8, "A100", 320),
        ("Standard_ND96amsr_A100_v4", 8, "A100-80GB", 640),
        ("Standard_ND96isr_H100_v5", 8, "H100", 640),
        ("Standard_NC40ads_H100_v5", 1, "H100", 94),
        ("Standard_NC80adis_H100_v5", 2, "H100", 188),
        ("Standard_NC6s_v3", 1, "V100", 16),
        ("Standard_NC24rs_v3", 4, "V100", 64),
        ("Standard_ND40rs_v2", 8, "V100-32GB", 256),
        ("Standard_NV6ads_A10_v5", 1, "A10", 4),
        ("Standard_NV12ads_A10_v5", 1, "A10", 8),
        ("Standard_NV18ads_A10_v5", 1, "A10", 12),
        ("Standard_NV36adms_A10_v5", 1, "A10", 24),
        ("Standard_NV72ads_A10_v5", 2, "A10", 48),
        ("Standard_NV4as_v4", 1, "MI25", 2),
        ("Standard_NV32as_v4", 1, "MI25", 16),
        ("Standard_NV12s_v3", 1, "M60", 8),
        ("Standard_ND96isr_MI300X_v5", 8, "MI300X", 1536),
    ],
)
def test_gpus_by_name(machine_type: str, count: int, name: str, vram_gib: int) -> None:
    """A series has its model, and a part of a GPU has its part of the memory."""
    model = gpu_model(machine_type)
    assert model is not None
    assert (model.name, vram_mib(machine_type, model, count)) == (name, vram_gib * 1024)


@pytest.mark.parametrize("machine_type", ["Standard_D4s_v5", "Standard_NC4as_X9_v9", "Standard_ND96isr_GB200_v6"])
def test_an_unknown_series_has_no_model(machine_type: str) -> None:
    """A GPU is never guessed."""
    assert gpu_model(machine_type) is None
