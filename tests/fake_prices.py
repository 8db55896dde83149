"""Clouds whose prices are steered by hand: a region fails, hangs, or says nonsense."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from spotferry.ports.prices import Note
from spotferry.types import Instance, Misconfigured, Offer
from spotferry.types.provider import PoolRate, PricingModel

Answer = Sequence[Offer] | Exception | Callable[[], Iterator[Offer]]


@dataclass(slots=True)
class FakePricing:
    """One cloud's prices.

    Attributes:
        answers: by region, its offers, the error that it fails with after them, or what makes them.
        oddities: told whenever a region is read.
        asked: the regions that were read.
    """

    answers: Mapping[str, Answer]
    oddities: Sequence[tuple[str, str]] = ()
    asked: list[str] = field(default_factory=list)
    note: Note = lambda *_: None

    def get_prices(self) -> Iterable[Instance]:
        """A refresh reads region by region."""
        raise AssertionError

    def regions(self) -> Sequence[str]:
        """All of them."""
        return list(self.answers)

    def offers(self, region: str) -> Iterator[Offer]:
        """What it was told to say."""
        self.asked.append(region)
        for oddity, subject in self.oddities:
            self.note(region, oddity, subject)
        answer = self.answers[region]
        if isinstance(answer, Exception):
            raise answer
        yield from answer() if callable(answer) else answer


@dataclass(slots=True)
class FakeTelling(FakePricing):
    """One cloud's prices and rates of interruptions.

    Attributes:
        rates: by region, what it tells, or what it fails with.
    """

    rates: Mapping[str, Sequence[PoolRate] | Exception] = field(default_factory=dict)

    def interruption_rates(self, region: str) -> Iterator[PoolRate]:
        """What it was told to tell."""
        found = self.rates.get(region, ())
        if isinstance(found, Exception):
            raise found
        yield from found


class FakeSources:
    """Clouds by name; one that is an exception cannot be had."""

    def __init__(self, **clouds: FakePricing | Exception) -> None:
        self.clouds = clouds

    def model(self, name: str, note: Note) -> PricingModel:
        """The cloud of this name."""
        cloud = self.clouds.get(name, Misconfigured(f"there are no prices of {name!r}"))
        if isinstance(cloud, Exception):
            raise cloud
        cloud.note = note
        return cloud
