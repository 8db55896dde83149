"""Azure's resource SKUs: the size of a machine type, and where this subscription may have it."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

MACHINES = "virtualMachines"
"""The resource type of machines; the list has disks and snapshots, too."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Capability(_Answer):
    name: str
    value: str = ""


class _Location(_Answer):
    location: str
    zones: tuple[str, ...] | None = ()


class _RestrictedPart(_Answer):
    locations: tuple[str, ...] | None = ()
    zones: tuple[str, ...] | None = ()


class _Restriction(_Answer):
    kind: str = Field(default="", alias="type")
    part: _RestrictedPart | None = Field(default=None, alias="restrictionInfo")
    values: tuple[str, ...] | None = ()


class ResourceSku(_Answer):
    """One SKU, as far as prices need it."""

    name: str
    resource_type: str = Field(alias="resourceType")
    locations_of: tuple[_Location, ...] | None = Field(default=(), alias="locationInfo")
    capabilities: tuple[_Capability, ...] | None = ()
    restrictions: tuple[_Restriction, ...] | None = ()

    def zones_in(self, region: str) -> Sequence[str]:
        """The zones where the subscription may have it; ("",) in a region without zones, () when nowhere."""
        here = [place for place in self.locations_of or () if place.location.casefold() == region.casefold()]
        restrictions = self.restrictions or ()
        if not here or any(r.kind == "Location" and _names(r, region) for r in restrictions):
            return ()
        offered = {zone for place in here for zone in place.zones or ()}
        closed = {zone for r in restrictions if r.kind == "Zone" and r.part for zone in r.part.zones or ()}
        return sorted(offered - closed) if offered else ("",)

    @property
    def vcpus(self) -> int:
        """The vCPUs that it shows; fewer than its size has where they are constrained."""
        return int(self._capability("vCPUsAvailable") or self._capability("vCPUs") or 0)

    @property
    def memory_gib(self) -> float:
        """Its memory; the capability says GB and means GiB."""
        return float(self._capability("MemoryGB") or 0)

    @property
    def gpu_count(self) -> int:
        """Its GPUs; a part of one counts as one."""
        return int(self._capability("GPUs") or 0)

    @property
    def arch(self) -> str:
        """x86_64 or arm64."""
        return "arm64" if self._capability("CpuArchitectureType").casefold() == "arm64" else "x86_64"

    @property
    def may_be_spot(self) -> bool:
        """The spot market has it; some types have a spot price on the list and cannot be had for it."""
        return self._capability("LowPriorityCapable").casefold() == "true"

    def _capability(self, name: str) -> str:
        return next((c.value for c in self.capabilities or () if c.name == name), "")


def _names(restriction: _Restriction, region: str) -> bool:
    """The restriction reaches the region; one that names none reaches every one."""
    named = restriction.values or (restriction.part.locations if restriction.part else None) or ()
    return not named or region.casefold() in (name.casefold() for name in named)
