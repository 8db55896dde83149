"""Pools: the machines that a cloud sells and takes back together, and how far a refusal reaches over them."""

from spotferry.domain.azure_types import azure_type
from spotferry.types.errors import CapacityError
from spotferry.types.instance import Instance


def pool_of(machine: Instance) -> str:
    """The pool that a machine came from, as `Candidate.pool` writes it."""
    return f"{machine.region}/{machine.availability_zone}/{machine.instance_type}"


def patterns(market: str, machine: Instance, refusal: CapacityError) -> list[tuple[str, str]]:
    """The (market, pattern) pairs that a refusal reaches."""
    if refusal.scope == "none":
        return []
    if refusal.scope == "provider":
        return [("spot", "*/*/*"), ("on_demand", "*/*/*")]
    family = _family(machine)
    reached = {
        "pool": pool_of(machine),
        "zone": f"{machine.region}/{machine.availability_zone}/*",
        "region": f"{machine.region}/*/*",
        "size": f"{machine.region}/*/{machine.instance_type}",
        "family": f"{machine.region}/*/{family}",
        "type": f"*/*/{family}",
    }
    return [(market, reached[refusal.scope])]


def _family(machine: Instance) -> str:
    """The pattern of the types that share a quota with this one; a name of no known form is a family of its own."""
    name = machine.instance_type
    if "." in name:
        return name.partition(".")[0] + ".*"
    if machine.provider == "gcp" and "-" in name and not machine.accelerator_count:
        # Quotas of GPUs are by the GPU, which types of other letters have as well, and of these letters may lack.
        return name.partition("-")[0] + "-*"
    azure = azure_type(name)
    return azure.family if azure else name
