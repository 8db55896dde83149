"""The clouds are asked for their prices, and a new catalogue is put into force."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from threading import Event

from spotferry.ports.cloud import Clock, RegionStore
from spotferry.ports.prices import CatalogueDraft, CatalogueInfo, Catalogues, Note, PriceSources
from spotferry.types.errors import Misconfigured, ProviderUnavailable
from spotferry.types.faults import words_of
from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate, PricingModel, TellsInterruptionRates
from spotferry.usecases.sound_offers import sound_offers

STALE_AFTER = timedelta(hours=24)
"""A region that keeps prices older than this, since newer ones cannot be read, is a failure."""

REGIONS_AT_ONCE = 4
"""Regions of one cloud that are read at the same time: within the clouds' rate limits, and what bounds memory."""

PATIENCE = timedelta(minutes=12)
"""How long all clouds together may take; what has not answered then keeps its prices."""

RATES_PATIENCE = timedelta(minutes=1)
"""How much longer, once prices are settled, rates of interruptions are waited for: prices do not wait for them."""
NO_RATES = "no interruption rates"
"""Oddity: a cloud that tells rates did not; those of before stay."""

_EXAMPLES = 3

Place = tuple[str, str]
"""A region: its cloud and its name."""
_Reading = dict["Future[list[Offer]]", Place]
_ReadingRates = dict["Future[list[PoolRate]]", Place]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What came of a refresh.

    Attributes:
        catalogue: what is in force now, region by region, with what came in the way.
        oddities: by cloud, what was odd in its answers and how often, with a few examples.
        stale: open regions that keep prices which are too old, in words.
    """

    catalogue: CatalogueInfo
    oddities: Mapping[str, Mapping[str, str]]
    stale: Sequence[str]

    @property
    def problems(self) -> list[str]:
        """Regions that gave nothing, in words."""
        regions = self.catalogue.regions.items()
        return [f"{provider} {region}: {found.problem}" for (provider, region), found in regions if found.problem]


@dataclass(slots=True)
class _Oddities:
    """Hears of what is odd in one cloud's answers; a lock is not needed, since each call is one append."""

    noted: list[tuple[str, str]] = field(default_factory=list)

    def note(self, region: str, oddity: str, subject: str) -> None:  # noqa: ARG002 (the subject names the place)
        """Keep it."""
        self.noted.append((oddity, subject))

    def in_words(self) -> dict[str, str]:
        """By oddity, how often and about what."""
        counts = Counter(oddity for oddity, _ in self.noted)
        examples = {name: sorted({s for oddity, s in self.noted if oddity == name})[:_EXAMPLES] for name in counts}
        return {name: f"{count}, such as {', '.join(examples[name])}" for name, count in counts.most_common()}


@dataclass(frozen=True, slots=True)
class RefreshPrices:
    """Asks every cloud that is open for launches, in all of its open regions at once.

    A region that fails, answers nothing or takes too long keeps the prices it had, with their age; no region is ever
    half new. Two refreshes at once do no harm: each puts a whole catalogue into force.

    Attributes:
        regions: the launch regions.
        sources: the clouds' pricing models.
        catalogues: where the catalogue is kept.
        clock: tells the time.
        everywhere: read all regions of these clouds, so that plans tell what the others would cost.
        patience: see `PATIENCE`.
    """

    regions: RegionStore
    sources: PriceSources
    catalogues: Catalogues
    clock: Clock
    everywhere: bool = False
    patience: timedelta = PATIENCE

    def __call__(self, asked_at: datetime | None = None) -> Refreshed | None:
        """Refresh; None when the catalogue was built after it was asked for, so that a repeated order costs nothing.

        Raises:
            Misconfigured: no region is open.
        """
        begun = self.clock()
        places = sorted({(settings.provider, settings.region) for settings in self.regions.regions()})
        if not places:
            raise Misconfigured("no launch region is set up, so there are no prices to read: open one first")
        with self.catalogues.draft() as draft:
            if asked_at is not None and draft.previous().built_at >= asked_at:
                return None
            oddities = {provider: _Oddities() for provider, _ in places}
            self._fill(draft, places, oddities, begun)
            info = draft.publish(begun)
        noted = {provider: words for provider, heard in oddities.items() if (words := heard.in_words())}
        return Refreshed(info, noted, _stale(info, places, begun))

    def _fill(
        self, draft: CatalogueDraft, places: Sequence[Place], oddities: Mapping[str, _Oddities], begun: datetime
    ) -> None:
        stop = Event()
        with _readers({provider for provider, _ in places}) as readers:
            reading: _Reading = {}
            telling: _ReadingRates = {}
            for provider, heard in oddities.items():
                wanted = [region for of, region in places if of == provider]
                try:
                    model = self.sources.model(provider, heard.note)
                    wanted = sorted({*wanted, *model.regions()}) if self.everywhere else wanted
                except Exception as error:  # noqa: BLE001 (whatever one cloud does, the others are not to blame)
                    for region in sorted({*wanted, *self._known(draft, provider)}):
                        draft.keep(provider, region, begun, words_of(error))
                        draft.keep_rates(provider, region)
                    continue
                for region in wanted:
                    read = partial(_read, model, provider, region, begun, heard.note, stop)
                    reading[readers[provider].submit(read)] = (provider, region)
                if isinstance(model, TellsInterruptionRates):
                    for region in wanted:
                        tell = partial(_tell, model, provider, region, stop)
                        telling[readers[provider].submit(tell)] = (provider, region)
            self._settle(draft, reading, stop, begun)
            _settle_rates(draft, telling, stop, oddities)

    def _known(self, draft: CatalogueDraft, provider: str) -> set[str]:
        """What a cloud that does not even name its regions may keep beside those that are open."""
        return {region for of, region in draft.previous().regions if of == provider and self.everywhere}

    def _settle(self, draft: CatalogueDraft, reading: _Reading, stop: Event, begun: datetime) -> None:
        """Put in each region as it comes, and let go of it."""
        try:
            for future in as_completed(list(reading), timeout=self.patience.total_seconds()):
                provider, region = reading.pop(future)
                try:
                    draft.take(provider, region, future.result(), begun)
                except Exception as error:  # noqa: BLE001 (as above)
                    draft.keep(provider, region, begun, words_of(error))
        except TimeoutError:
            stop.set()
            for provider, region in reading.values():
                draft.keep(provider, region, begun, f"no whole answer within {self.patience}")


def _settle_rates(
    draft: CatalogueDraft, telling: _ReadingRates, stop: Event, oddities: Mapping[str, _Oddities]
) -> None:
    """Put in each region's rates as they come; those that do not come stay as they were."""
    try:
        for future in as_completed(list(telling), timeout=RATES_PATIENCE.total_seconds()):
            provider, region = telling.pop(future)
            try:
                draft.take_rates(future.result())
            except Exception as error:  # noqa: BLE001 (rates that cannot be read do no harm to prices)
                oddities[provider].note(region, NO_RATES, f"{region}: {words_of(error)}")
                draft.keep_rates(provider, region)
    except TimeoutError:
        stop.set()
        for provider, region in telling.values():
            oddities[provider].note(region, NO_RATES, f"{region}: no whole answer in time")
            draft.keep_rates(provider, region)


@contextmanager
def _readers(providers: set[str]) -> Iterator[Mapping[str, ThreadPoolExecutor]]:
    """Threads for each cloud; those that hang are not waited for."""
    pools = {name: ThreadPoolExecutor(REGIONS_AT_ONCE, thread_name_prefix=f"prices-{name}") for name in providers}
    try:
        yield pools
    finally:
        for pool in pools.values():
            pool.shutdown(wait=False, cancel_futures=True)


def _read(model: PricingModel, provider: str, region: str, begun: datetime, note: Note, stop: Event) -> list[Offer]:
    """One region's offers, whole.

    Raises:
        ProviderUnavailable: the cloud named none, or it took too long.
        Exception: whatever the pricing model raises.
    """
    offers = sound_offers(_until(stop, model.offers(region)), provider, region, begun, note)
    if stop.is_set():
        raise ProviderUnavailable("Late", "nobody waits for it any more", region)
    if not offers:
        raise ProviderUnavailable("NoOffers", "the cloud named no price that can be used", region)
    return offers


def _tell(model: TellsInterruptionRates, provider: str, region: str, stop: Event) -> list[PoolRate]:
    """One region's rates, whole; what speaks of another place is no answer.

    Raises:
        ProviderUnavailable: the cloud told none, or it took too long.
        Exception: whatever the pricing model raises.
    """
    rates: list[PoolRate] = []
    for rate in () if stop.is_set() else model.interruption_rates(region):
        if stop.is_set():
            break
        if (rate.provider, rate.region) == (provider, region):
            rates.append(rate)
    if stop.is_set():
        raise ProviderUnavailable("Late", "nobody waits for it any more", region)
    if not rates:
        raise ProviderUnavailable("NoRates", "the cloud told no rate that can be used", region)
    return rates


def _until(stop: Event, offers: Iterator[Offer]) -> Iterator[Offer]:
    for offer in offers:
        if stop.is_set():
            return
        yield offer


def _stale(info: CatalogueInfo, places: Sequence[Place], now: datetime) -> list[str]:
    """Open regions that keep failing; how old the prices of a list are that was read just now is the cloud's affair."""
    failed = [(place, source) for place in places if (source := info.regions[place]).problem]
    return [
        f"{provider} {region}: prices of {source.oldest.isoformat() if source.oldest else 'no time'}, {source.problem}"
        for (provider, region), source in failed
        if source.oldest is None or now - source.oldest > STALE_AFTER
    ]
