"""Offers and specifications for tests of placement."""

from collections.abc import Iterable
from decimal import Decimal

from spotferry.domain.placement import Limits, OfferIndex, Plan, choose, plan
from spotferry.types import Candidate, Offer, UserInstanceSpecs

NO_DISK = Decimal(0)


def an_offer(instance_type: str = "m5.large", spot: str | None = "0.03", **changes: object) -> Offer:
    """A machine with 2 vCPUs and 8 GiB in us-east-1a, whose disk costs nothing."""
    fields: dict[str, object] = {
        "provider": "aws",
        "region": "us-east-1",
        "zone": "us-east-1a",
        "instance_type": instance_type,
        "vcpus": 2,
        "memory_gib": 8,
        "spot_usd_hour": spot,
        "on_demand_usd_hour": "0.096",
        "disk_usd_gib_month": NO_DISK,
    }
    return Offer.model_validate(fields | changes)


def a_gpu_offer(instance_type: str = "g4dn.xlarge", spot: str = "0.2", **changes: object) -> Offer:
    """A machine with one T4."""
    gpu: dict[str, object] = {"gpu_name": "T4", "gpu_maker": "NVIDIA", "gpu_count": 1, "vram_mib": 16_384}
    return an_offer(instance_type, spot, **gpu | changes)


def chosen_type(offers: Iterable[Offer], limits: Limits | None = None, **specs: object) -> str | None:
    """The type that wins, after proof and bare choice were found to agree."""
    found = a_choice(offers, limits, **specs)
    return found.offer.instance_type if found else None


def a_choice(offers: Iterable[Offer], limits: Limits | None = None, **specs: object) -> Candidate | None:
    """The candidate that wins, after proof and bare choice were found to agree."""
    index, asked, held = OfferIndex(offers), UserInstanceSpecs.model_validate(specs), limits or Limits()
    found = choose(index, asked, held)
    proof = plan(index, asked, held)
    assert found == proof.chosen
    assert sum(proof.excluded.values()) + proof.fit == proof.considered
    return found


def a_plan(offers: Iterable[Offer], limits: Limits | None = None, **specs: object) -> Plan:
    """The proof over these offers."""
    return plan(OfferIndex(offers), UserInstanceSpecs.model_validate(specs), limits or Limits())
