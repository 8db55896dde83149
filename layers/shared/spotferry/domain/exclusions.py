"""How many candidates each condition of a selection removes: in turn for the proof, alone for the one to blame."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spotferry.domain.ban_words import Pool
from spotferry.domain.bitsets import Weights, members
from spotferry.domain.offer_index import OfferIndex
from spotferry.domain.selection import Selection


@dataclass(frozen=True, slots=True)
class Tally:
    """The conditions applied in turn.

    Attributes:
        excluded: how many candidates each removed, in the order applied.
        rows: rows that meet every condition that depends on the type alone.
        fit: how many candidates are left.
    """

    excluded: dict[str, int]
    rows: int
    fit: int


def tally(index: OfferIndex, selection: Selection) -> Tally:
    """Apply all conditions in turn and count what each removes."""
    counts, rows = index.priced, index.machines
    excluded = {
        "not_a_machine": index.considered - index.sizes.total(rows),
        "no_price": index.sizes.total(rows) - counts.total(rows),
    }
    rows = _exclude(excluded, counts, rows, selection.where)
    opened = None if selection.open is None else selection.allowed
    for name, zones in (("regions", selection.regions), ("region_not_set_up", opened)):
        narrower = counts if zones is None else index.counts(zones)
        excluded[name] = counts.total(rows) - narrower.total(rows)
        counts = narrower
    rows = _exclude(excluded, counts, rows, selection.what)
    left = counts.total(rows)
    affordable = left if selection.cap is None else _total(_affordable(index, selection, rows))
    excluded["max_price_usd_hour"] = left - affordable
    excluded["banned"], excluded["avoided"] = _set_aside(index, selection, rows)
    return Tally(excluded, rows, affordable - excluded["banned"] - excluded["avoided"])


def alone(index: OfferIndex, selection: Selection) -> dict[str, int]:
    """How many of the machines that have a price each condition of asker and operator removes by itself, in order."""
    counts, rows = index.priced, index.machines
    usable = counts.total(rows)
    removed = {name: counts.total(rows & ~passing) for name, passing in selection.where.items()}
    for name, zones in (("regions", selection.regions), ("region_not_set_up", selection.open)):
        removed[name] = 0 if zones is None else usable - index.counts(zones).total(rows)
    removed |= {name: counts.total(rows & ~passing) for name, passing in selection.what.items()}
    affordable = usable if selection.cap is None else _total(_within_cap(index, selection, rows))
    return removed | {"max_price_usd_hour": usable - affordable}


def _exclude(excluded: dict[str, int], counts: Weights, rows: int, conditions: Mapping[str, int]) -> int:
    for name, passing in conditions.items():
        excluded[name] = counts.total(rows & ~passing)
        rows &= passing
    return rows


def _total(cells: Iterator[tuple[int, int]]) -> int:
    return sum(zones.bit_count() for _, zones in cells)


def _within_cap(index: OfferIndex, selection: Selection, rows: int) -> Iterator[tuple[int, int]]:
    """Each row with the zones in which it has a price within the cap; rows without any are left out."""
    reach = len(index.rows)
    if selection.cap is not None:
        reach = bisect_right(index.lows, selection.cap - selection.least_disk_usd_hour(index))
    for number in members(rows & ((1 << reach) - 1)):
        row = index.rows[number]
        if selection.cap is None:
            yield number, row.zones
        else:
            disk_prices = index.zones[row.example.provider].by_disk_price
            yield number, row.within(selection.cap, selection.disk_of(row), disk_prices)


def _affordable(index: OfferIndex, selection: Selection, rows: int) -> Iterator[tuple[int, int]]:
    """Each row with the allowed zones in which it is within the cap."""
    for number, zones in _within_cap(index, selection, rows):
        yield number, zones & selection.zones_allowed(index.rows[number])


def banned_pools(index: OfferIndex, selection: Selection) -> Iterator[Pool]:
    """What would fit and is left alone for all jobs."""
    touched = selection.rows(index) & selection.banned.touched(index)
    for number, zones in _affordable(index, selection, touched):
        row = index.rows[number]
        provider, kind = row.example.provider, row.example.instance_type
        for zone in members(zones & selection.banned.zones(number, row)):
            yield Pool(provider, row.market, (*index.zones[provider].places[zone], kind))


def _set_aside(index: OfferIndex, selection: Selection, rows: int) -> tuple[int, int]:
    """How many affordable candidates are banned, and how many of the others avoided."""
    banned = avoided = 0
    touched = rows & (selection.banned.touched(index) | selection.avoided.touched(index))
    for number, zones in _affordable(index, selection, touched):
        row = index.rows[number]
        left_alone = zones & selection.banned.zones(number, row)
        banned += left_alone.bit_count()
        avoided += (zones & selection.avoided.zones(number, row) & ~left_alone).bit_count()
    return banned, avoided
