"""The world around a refresh of prices: where prices come from, and the catalogue that is made of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from spotferry.types.instance import Offer
from spotferry.types.provider import PoolRate, PricingModel

Note = Callable[[str, str, str], None]
"""Hears of what is odd in a cloud's answers: the region, what is odd, and what it is odd about; from any thread."""


@dataclass(frozen=True, slots=True)
class Source:
    """Offers of one origin: how many, and when the oldest and the newest price was read."""

    offers: int
    oldest: datetime | None
    newest: datetime | None

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """As the API and the command show it."""
        return {"offers": self.offers, "oldest": _text(self.oldest), "newest": _text(self.newest)}


@dataclass(frozen=True, slots=True)
class RegionSource(Source):
    """One region's share of a catalogue.

    Attributes:
        tried_at: when its cloud was last asked; None for a catalogue that was not made by a refresh.
        problem: why that gave nothing, in words; the offers are then those of the last time that it went well.
    """

    tried_at: datetime | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class CatalogueInfo:
    """What a catalogue says of itself.

    Attributes:
        version: of its schema.
        built_at: no price that was read for it is older.
        regions: its share of each (provider, region).
    """

    version: int
    built_at: datetime
    regions: Mapping[tuple[str, str], RegionSource]

    @property
    def sources(self) -> Mapping[str, Source]:
        """Its share of each cloud, regions together."""
        providers = sorted({provider for provider, _ in self.regions})
        return {name: _together([r for (of, _), r in self.regions.items() if of == name]) for name in providers}

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """As the API and the command show it."""
        return {
            "version": self.version,
            "built_at": _text(self.built_at),
            "sources": {name: source.to_json() for name, source in self.sources.items()},
            "regions": [
                {
                    "provider": provider,
                    "region": region,
                    **source.to_json(),
                    "tried_at": _text(source.tried_at),
                    "problem": source.problem,
                }
                for (provider, region), source in self.regions.items()
            ],
        }


class PriceSources(Protocol):
    """The clouds whose prices can be read."""

    def model(self, name: str, note: Note) -> PricingModel:
        """The pricing model of this cloud; loads its SDK on first use.

        Raises:
            Misconfigured: there is no such cloud here, or it lacks credentials.
        """
        ...


class CatalogueDraft(Protocol):
    """A catalogue in the making; nothing of it is in force before `publish`. Not to be shared between threads."""

    def previous(self) -> CatalogueInfo:
        """The catalogue that is in force while this one is made."""
        ...

    def take(self, provider: str, region: str, offers: Iterable[Offer], tried_at: datetime) -> None:
        """Put in what a region offers now."""
        ...

    def keep(self, provider: str, region: str, tried_at: datetime, problem: str) -> None:
        """Put in the region's offers of the catalogue in force, as they are, and why there are no newer ones."""
        ...

    def take_rates(self, rates: Iterable[PoolRate]) -> None:
        """Put in what a cloud tells of interruptions in a region now."""
        ...

    def keep_rates(self, provider: str, region: str) -> None:
        """Put in the region's rates of the catalogue in force, as they are."""
        ...

    def publish(self, built_at: datetime) -> CatalogueInfo:
        """Put the catalogue into force, whole."""
        ...


class Catalogues(Protocol):
    """The catalogue in force, and the next one."""

    def draft(self) -> AbstractContextManager[CatalogueDraft]:
        """A catalogue to be made; whatever it needs on disk is gone at the end of the block."""
        ...

    def info(self) -> CatalogueInfo:
        """What the catalogue in force says of itself."""
        ...


class RefreshTrigger(Protocol):
    """Starts a refresh elsewhere."""

    def __call__(self, asked_at: datetime, asked_by: str) -> None:
        """Have prices refreshed soon; returns before they are."""
        ...


def _together(regions: Sequence[Source]) -> Source:
    return Source(
        sum(region.offers for region in regions),
        min((region.oldest for region in regions if region.oldest), default=None),
        max((region.newest for region in regions if region.newest), default=None),
    )


def _text(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
