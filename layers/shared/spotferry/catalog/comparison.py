"""What changed from one catalogue to another."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from spotferry.types.instance import Market, Offer

Kind = Literal["cheaper", "dearer", "new", "gone"]
KINDS: tuple[Kind, ...] = ("cheaper", "dearer", "new", "gone")

_Identity = tuple[str, str, str, str, str, str, int, Market]
_ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Change:
    """One machine type in one zone and market whose price is another, or that came or went.

    Attributes:
        provider, region, zone, instance_type, arch, gpu_name, gpu_count: which machine.
        market: in which market.
        before: its price in the first catalogue; None when it is new.
        after: its price in the second one; None when it is gone.
    """

    provider: str
    region: str
    zone: str
    instance_type: str
    arch: str
    gpu_name: str
    gpu_count: int
    market: Market
    before: Decimal | None
    after: Decimal | None

    @property
    def kind(self) -> Kind:
        """What happened to it."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "cheaper" if self.after < self.before else "dearer"

    @property
    def factor(self) -> Decimal:
        """How many times the first price the second one is; 1 where one of them is missing."""
        return _ONE if self.before is None or self.after is None else self.after / self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two catalogues beside one another.

    Attributes:
        changes: every change: the largest moves of a price first, then what is new or gone, by name.
        same: by cloud, how many prices are what they were.
    """

    changes: tuple[Change, ...]
    same: Mapping[str, int]

    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """By cloud, how many prices are cheaper, dearer, new, gone and the same."""
        counted = Counter((change.provider, change.kind) for change in self.changes)
        providers = sorted({provider for provider, _ in counted} | set(self.same))
        return {
            name: {**{kind: counted[name, kind] for kind in KINDS}, "same": self.same.get(name, 0)}
            for name in providers
        }


def compare(before: Iterable[Offer], after: Iterable[Offer]) -> Comparison:
    """What changed, price by price."""
    old, new = dict(_prices(before)), dict(_prices(after))
    same = Counter(identity[0] for identity, price in new.items() if old.get(identity) == price)
    changes = [
        Change(*identity, before=old.get(identity), after=new.get(identity))
        for identity in old.keys() | new.keys()
        if old.get(identity) != new.get(identity)
    ]
    return Comparison(tuple(sorted(changes, key=_order)), dict(same))


def _prices(offers: Iterable[Offer]) -> Iterator[tuple[_Identity, Decimal]]:
    for offer in offers:
        machine = (
            offer.provider,
            offer.region,
            offer.zone,
            offer.instance_type,
            offer.arch,
            offer.gpu_name,
            offer.gpu_count,
        )
        if offer.spot_usd_hour is not None:
            yield (*machine, "spot"), offer.spot_usd_hour
        if offer.on_demand_usd_hour is not None:
            yield (*machine, "on_demand"), offer.on_demand_usd_hour


def _order(change: Change) -> tuple[object, ...]:
    moved = max(change.factor, _ONE / change.factor)
    machine = (change.provider, change.region, change.zone, change.instance_type, change.gpu_name, change.gpu_count)
    return (-moved, KINDS.index(change.kind), *machine, change.arch, change.market)
