"""Pools: the machines that a cloud sells and takes back together, and how far a refusal reaches over them."""

from spotferry.types.errors import CapacityError
from spotferry.types.instance import Instance


def pool_of(machine: Instance) -> str:
    """The pool that a machine came from, as `Candidate.pool` writes it."""
    return f"{machine.region}/{machine.availability_zone}/{machine.instance_type}"


def patterns(market: str, machine: Instance, refusal: CapacityError) -> list[tuple[str, str]]:
    """The (market, pattern) pairs that a refusal reaches."""
    family = machine.instance_type.partition(".")[0] + ".*" if "." in machine.instance_type else machine.instance_type
    match refusal.scope:
        case "none":
            return []
        case "pool":
            return [(market, pool_of(machine))]
        case "zone":
            return [(market, f"{machine.region}/{machine.availability_zone}/*")]
        case "region":
            return [(market, f"{machine.region}/*/*")]
        case "family" | "type":
            region = machine.region if refusal.scope == "family" else "*"
            return [(market, f"{region}/*/{family}")]
        case "provider":
            return [("spot", "*/*/*"), ("on_demand", "*/*/*")]
