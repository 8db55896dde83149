"""Google's machine types: what they are made of, and what that costs."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from spotferry.providers.gcp.pricing_gpus import GPU_MODELS, counts_for_host
from spotferry.providers.gcp.pricing_machines import MachineType, Till
from spotferry.providers.gcp.pricing_rates import Rates
from spotferry.providers.rest import Json
from tests.unit.providers.gcp.gcp_answers import family_skus, machine, sku, with_gpus


def till(*skus: Json) -> Till:
    """A till with the rates of these SKUs."""
    rates = Rates(datetime(2026, 12, 1, tzinfo=UTC))
    for row in skus:
        assert not list(rates.add(row))
    return Till(rates, "us-central1")


def price(adder: Till, row: Json, *, spot: bool = False) -> Decimal | None:
    """What a machine type costs with what comes with it."""
    kind = MachineType.model_validate(row)
    return adder.machine_usd_hour(kind, *kind.gpu, spot=spot)


def test_a_machine_costs_its_cores_and_its_memory() -> None:
    """Cores times the core's rate and GiB times the memory's, exactly."""
    adder = till(*family_skus("N2 Instance", "0.031611", "0.004237"))
    assert price(adder, machine("n2-standard-4", 4, 16)) == Decimal("0.194236")
    assert price(adder, machine("n2-standard-4", 4, 16), spot=True) is None


@pytest.mark.parametrize(("name", "cores"), [("e2-micro", "0.25"), ("e2-small", "0.5"), ("e2-medium", "1")])
def test_shared_cores_cost_a_part(name: str, cores: str) -> None:
    """Shared-core types show two vCPUs and are charged for a part of one core."""
    adder = till(*family_skus("E2 Instance", "0.02", "0.003"))
    assert price(adder, machine(name, 2, 2, isSharedCpu=True)) == Decimal(cores) * Decimal("0.02") + Decimal("0.006")


def test_the_oldest_types_have_a_price_of_their_own() -> None:
    """g1-small is charged as a whole."""
    adder = till(sku("Small Instance with 1 VCPU running in Americas", "0.0257"))
    assert price(adder, machine("g1-small", 1, 1.7, isSharedCpu=True)) == Decimal("0.0257")


def test_gpus_that_come_with_it_are_part_of_the_price() -> None:
    """An A2 costs its cores, its memory and its A100s; without the GPU's rate it has no price."""
    skus = family_skus("A2 Instance", "0.03", "0.004")
    row = with_gpus("a2-highgpu-2g", 24, 170, "nvidia-tesla-a100", 2)
    assert price(till(*skus, sku("Nvidia Tesla A100 GPU running in Americas", "2.9")), row) == Decimal("7.2")
    assert price(till(*skus), row) is None


def test_what_is_sold_as_spot_alone_has_no_price_on_demand() -> None:
    """The smaller A3 have rates in both markets and are sold in one."""
    adder = till(
        *family_skus("A3 Instance", "0.03", "0.004"),
        *family_skus("A3 Instance", "0.01", "0.001", spot=True),
        sku("Nvidia H100 80GB GPU running in Americas", "9.8"),
        sku("Nvidia H100 80GB GPU attached to Spot Preemptible VMs running in Americas", "2.5"),
    )
    small = with_gpus("a3-highgpu-1g", 26, 234, "nvidia-h100-80gb", 1)
    assert price(adder, small) is None
    assert price(adder, small, spot=True) == Decimal("2.994")
    assert price(adder, with_gpus("a3-highgpu-8g", 208, 1872, "nvidia-h100-80gb", 8)) == Decimal("92.128")


def test_local_disks_that_come_with_it_are_part_of_the_price() -> None:
    """Bundled local disks are charged on top: by the family's rate, else by the common one, else there is no price."""
    skus = family_skus("C4D Instance", "0.03", "0.004")
    row = machine("c4d-standard-8-lssd", 8, 31, bundledLocalSsds={"partitionCount": 1, "defaultInterface": "NVME"})
    bare = Decimal(8) * Decimal("0.03") + 31 * Decimal("0.004")
    common = sku("SSD backed Local Storage in Iowa", "0.0001", "GiBy.h")
    own = sku("C4D Instance Local SSD running in Americas", "0.0002", "GiBy.h")
    assert price(till(*skus), row) is None
    assert price(till(*skus, common), row) == bare + 375 * Decimal("0.0001")
    assert price(till(*skus, common, own), row) == bare + 375 * Decimal("0.0002")


def test_an_m2_is_an_m1_with_its_premium() -> None:
    """The base rates alone are not its price."""
    base = family_skus("Memory-optimized Instance", "0.035", "0.005")
    premium = family_skus("Memory Optimized Upgrade Premium for Memory-optimized Instance", "0.005", "0.001")
    assert price(till(*base), machine("m2-ultramem-208", 208, 5888)) is None
    assert price(till(*base, *premium), machine("m2-ultramem-208", 208, 5888)) == 208 * Decimal(
        "0.04"
    ) + 5888 * Decimal("0.006")


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("n2-standard-4", "n2"),
        ("a3-highgpu-8g", "a3"),
        ("a3-megagpu-8g", "a3plus"),
        ("a3-ultragpu-8g", "a3ultra"),
        ("m4-ultramem-224", "m4ultramem224"),
        ("m4-ultramem-112", "m4"),
        ("e2-medium", "e2"),
    ],
)
def test_families_by_name(name: str, family: str) -> None:
    """A type is charged by its family's rates, but for those that have rates of their own."""
    assert MachineType.model_validate(machine(name, 2, 8)).family == family


@pytest.mark.parametrize(
    ("row", "arch"),
    [
        (machine("t2a-standard-1", 1, 4), "arm64"),
        (machine("n2-standard-2", 2, 8), "x86_64"),
        (machine("n9-standard-2", 2, 8, architecture="ARM64"), "arm64"),
        (machine("c4a-standard-2", 2, 8, architecture="X86_64"), "x86_64"),
    ],
)
def test_architecture(row: Json, arch: str) -> None:
    """The answer decides; where it is silent, the family does."""
    assert MachineType.model_validate(row).arch == arch


def test_disks_by_family() -> None:
    """Families that boot from Hyperdisk alone are given its price, the others that of balanced disks."""
    adder = till(
        sku("Balanced PD Capacity in Iowa", "0.1", "GiBy.mo"), sku("Hyperdisk Balanced Capacity", "0.08", "GiBy.mo")
    )
    assert adder.disk_usd_gib_month(MachineType.model_validate(machine("n2-standard-2", 2, 8))) == Decimal("0.1")
    assert adder.disk_usd_gib_month(MachineType.model_validate(machine("c4-standard-2", 2, 7))) == Decimal("0.08")
    assert till().disks_without_rate() == ("pd-balanced", "hyperdisk-balanced")


@pytest.mark.parametrize(
    ("gpu", "vcpus", "gib", "counts"),
    [
        ("nvidia-tesla-t4", 1, 3.75, [1, 2, 4]),
        ("nvidia-tesla-t4", 48, 312, [1, 2, 4]),
        ("nvidia-tesla-t4", 64, 240, [4]),
        ("nvidia-tesla-v100", 12, 78, [1, 2, 4, 8]),
        ("nvidia-tesla-v100", 16, 60, [2, 4, 8]),
        ("nvidia-tesla-p4", 32, 120, [2, 4]),
        ("nvidia-tesla-p100", 96, 360, [4]),
        ("nvidia-tesla-k80", 64, 240, []),
        ("nvidia-tesla-k80", 16, 104, [2, 4, 8]),
        ("nvidia-l4", 4, 16, []),
        ("unheard-of", 4, 16, []),
    ],
)
def test_hosts_take_what_they_may(gpu: str, vcpus: int, gib: float, counts: list[int]) -> None:
    """The number of GPUs on an N1 host is bound by its vCPUs and its memory."""
    assert list(counts_for_host(gpu, "us-central1-a", vcpus, gib, 8)) == counts


def test_zones_have_limits_of_their_own() -> None:
    """A zone's limit of cards holds, and three zones take smaller hosts with four P100."""
    assert list(counts_for_host("nvidia-tesla-t4", "us-central1-a", 4, 15, 2)) == [1, 2]
    assert list(counts_for_host("nvidia-tesla-p100", "us-east1-c", 96, 360, 8)) == []
    assert list(counts_for_host("nvidia-tesla-p100", "us-east1-c", 64, 208, 8)) == [4]


def test_every_gpu_has_memory_and_a_name_in_the_catalogue() -> None:
    """No model is known by half."""
    for model in GPU_MODELS.values():
        assert model.vram_mib >= 8_192
        assert model.catalogue_names
