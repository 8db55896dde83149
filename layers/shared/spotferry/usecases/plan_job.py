"""What a job would get now, without making one."""

from dataclasses import dataclass, replace

from spotferry.domain.ban_words import words_of_bans
from spotferry.domain.known_regions import refuse_unknown_regions
from spotferry.domain.placement import Limits, Plan, left_alone, plan, refuse_impossible
from spotferry.ports.cloud import Catalogue, Clock, RegionStore
from spotferry.ports.store import BanStore
from spotferry.types.job_file import JobFile
from spotferry.usecases.pool_history import ReadHistory


@dataclass(frozen=True, slots=True)
class PlanJob:
    """Finds the cheapest machine that fits a job file, and the proof.

    Attributes:
        catalogue: today's offers; it may hold those of clouds that only their prices are read of.
        regions: the launch regions that were set up.
        bans: what is left alone for a while.
        clock: tells the time.
        history: what became of earlier machines.
        launchable: the clouds that machines can be launched on; a region of any other is as good as closed.
    """

    catalogue: Catalogue
    regions: RegionStore
    bans: BanStore
    clock: Clock
    history: ReadHistory
    launchable: frozenset[str]

    def __call__(self, spec: JobFile) -> Plan:
        """The plan, as things are now.

        Raises:
            InvalidInput: it names a region that nobody has heard of.
            ImpossibleSpecs: no offer can ever fit.
        """
        refuse_unknown_regions(self.catalogue.offers(), spec.instance_specs, self._opened())
        made = self.plan(spec)
        refuse_impossible(made, spec.instance_specs)
        return made

    def plan(
        self,
        spec: JobFile,
        avoid: tuple[str, ...] = (),
        owner: str = "",
        cpu_families: frozenset[tuple[str, str]] | None = None,
    ) -> Plan:
        """The plan, whether or not anything fits.

        Args:
            spec: the job file.
            avoid: pools that this job was just taken back from.
            owner: whose machines' history tells how often pools take them back, where the objective asks; "" for none.
            cpu_families: where the job's checkpoint can go on; None: anywhere.
        """
        open_regions = frozenset(place for place in self._opened() if place[0] in self.launchable)
        providers = sorted({provider for provider, _ in open_regions})
        asks = owner and spec.objective == "expected_cost"
        limits = replace(
            Limits.of_job(spec),
            open_regions=open_regions,
            bans=self.bans.bans(providers, self.clock()),
            avoid=avoid,
            history=self.history(owner) if asks else {},
            cpu_families=cpu_families,
        )
        offers = self.catalogue.offers()
        made = plan(offers, spec.instance_specs, limits)
        pools = left_alone(offers, spec.instance_specs, limits)
        if not pools:
            return made
        asked = [name for name in providers if name in (spec.instance_specs.providers or providers)]
        words = words_of_bans(pools, self.bans.ban_reasons(asked, self.clock()))
        return made.model_copy(update={"words": made.words + words})

    def _opened(self) -> frozenset[tuple[str, str]]:
        return frozenset((settings.provider, settings.region) for settings in self.regions.regions())
