"""Which template a machine boots: the job's own, the region's override, or the newest of Paperspace's Ubuntu."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from spotferry.ports.cloud import Clock, RegionSettings
from spotferry.providers.learned import Learned
from spotferry.providers.paperspace.api import Calls, Json, pages, text_of
from spotferry.providers.verdict import image_refused
from spotferry.types.errors import LaunchRefused
from spotferry.types.instance import Offer

SMALLEST_GB = 50
"""What a template without a default size needs: the smallest disk there is."""
_UBUNTU = re.compile(r"ubuntu (\d\d\.\d\d)")
_WITH_DRIVERS = re.compile(r"\bml.in.a.box\b|\bcuda\b|\bnvidia\b")
"""Names of the templates that have the drivers of a GPU."""


@dataclass(frozen=True, slots=True)
class Template:
    """What a launch must know of a template.

    Attributes:
        template_id, name: of the template.
        system: the operating system, in words.
        size_gb: the disk that it needs.
        machine_types: those that it is said to run on, and whether it does; empty: nothing is said.
    """

    template_id: str
    name: str
    system: str
    size_gb: int
    machine_types: Mapping[str, bool]

    @property
    def ubuntu(self) -> str:
        """The release of Ubuntu, "24.04"; "" for another system."""
        found = _UBUNTU.search(f"{self.system} {self.name}".lower())
        return found[1] if found else ""

    @property
    def has_drivers(self) -> bool:
        """It comes with the drivers of a GPU."""
        return bool(_WITH_DRIVERS.search(self.name.lower()))

    def runs_on(self, instance_type: str) -> bool:
        """It is not said to be unavailable on the type."""
        return self.machine_types.get(instance_type, not self.machine_types)


class Templates:
    """Resolves templates; keeps what it learned while it is fresh."""

    def __init__(self, clock: Clock) -> None:
        self._read: Learned[str, Mapping[str, Template]] = Learned(clock)

    def resolve(self, calls: Calls, settings: RegionSettings, offer: Offer, own: str) -> Template:
        """The template for the offer.

        Args:
            calls: to Paperspace.
            settings: of the region; its image override "arch/gpu" or "arch" beats the newest.
            offer: the machine that will boot it.
            own: the job's own image, the id of a template; beats everything.

        Raises:
            LaunchRefused: there is no such template, or none that fits the machine.
            ProviderError: the question failed.
        """
        with_gpu = offer.gpu_count > 0
        named = own or settings.image_for(offer.arch, with_gpu=with_gpu)
        if not named:
            return self._newest(calls, offer, with_gpu=with_gpu)
        template = self._listed(calls, "/os-templates").get(named) or self._listed(calls, "/custom-templates").get(
            named
        )
        if template is None:
            message = f"there is no template {named}: an image on Paperspace is the id of an OS or a custom template"
            raise _refused(message, offer, own=bool(own))
        return template

    def _newest(self, calls: Calls, offer: Offer, *, with_gpu: bool) -> Template:
        """Ubuntu's newest release that runs on the type; on a GPU with its drivers, where there is such a template."""
        fitting = [
            t for t in self._listed(calls, "/os-templates").values() if t.ubuntu and t.runs_on(offer.instance_type)
        ]
        if not fitting:
            raise _refused(f"Paperspace has no template with Ubuntu for {offer.instance_type}", offer, own=False)
        return max(fitting, key=lambda t: (t.has_drivers == with_gpu, t.ubuntu, t.template_id))

    def _listed(self, calls: Calls, path: str) -> Mapping[str, Template]:
        return self._read.get(path, lambda: _read(calls, path))


def _read(calls: Calls, path: str) -> Mapping[str, Template]:
    found = [_template(item, calls.region) for item in pages(calls, path, {})]
    return {template.template_id: template for template in found}


def _template(item: Json, region: str) -> Template:
    size = item.get("defaultSizeGb")
    types = item.get("availableMachineTypes")
    return Template(
        template_id=text_of(item, "id", region),
        name=str(item.get("name") or ""),
        system=str(item.get("operatingSystemLabel") or ""),
        size_gb=int(size) if isinstance(size, int | float) and size else SMALLEST_GB,
        machine_types={
            str(entry.get("machineTypeLabel")): bool(entry.get("isAvailable"))
            for entry in (types if isinstance(types, list) else [])
            if isinstance(entry, dict)
        },
    )


def _refused(message: str, offer: Offer, *, own: bool) -> LaunchRefused:
    return image_refused("TemplateNotFound", message, offer.region, own=own)
