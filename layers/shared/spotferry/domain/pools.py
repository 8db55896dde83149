"""Pools: the machines that a cloud sells and takes back together, and how far a refusal reaches over them."""

import re

from spotferry.types.errors import CapacityError
from spotferry.types.instance import Instance

_AZURE_TYPE = re.compile(r"(?P<letters>Standard_[A-Z]+)\d+(?:-\d+)?(?P<rest>[a-z]*(?:_.+)?)")
"""As in Standard_D4s_v5, of the family Dsv5, and Standard_E8-4s_v5, whose cores are constrained."""


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
    azure = _AZURE_TYPE.fullmatch(name)
    return f"{azure['letters']}*{azure['rest']}" if azure else name
