"""The cheapest candidates of a selection, found without looking at most of them."""

from bisect import insort
from collections.abc import Iterator
from decimal import Decimal

from spotferry.domain.bitsets import members
from spotferry.domain.costs import disk_usd_hour
from spotferry.domain.offer_index import OfferIndex, TypeRow
from spotferry.domain.run_cost import Level, Terms
from spotferry.domain.selection import Selection
from spotferry.types.instance import Candidate

_NO_BOUND = Decimal("Infinity")

Ranked = tuple[Decimal, float, str, str, str, str, str, int, int]
"""What candidates are ordered by (cost of the run, more memory, names), then the numbers of the row and of its cell."""


class _Best:
    """The best candidates so far: at most `limit`; the bound is what a better one must not be above.

    Attributes:
        ranked: best first.
        bound: cost of a run.
        cap: price of an hour; what is above it is no candidate.
    """

    def __init__(self, limit: int, cap: Decimal | None) -> None:
        self.ranked: list[Ranked] = []
        self.bound = _NO_BOUND
        self.cap = _NO_BOUND if cap is None else cap
        self._limit = limit

    def add(self, ranked: Ranked) -> None:
        insort(self.ranked, ranked)
        del self.ranked[self._limit :]
        if len(self.ranked) == self._limit:
            self.bound = self.ranked[-1][0]

    def beyond(self, usd_hour: Decimal, terms: Terms) -> bool:
        """No candidate at so much an hour, or more, is among the best."""
        return usd_hour > self.cap or terms.usd(usd_hour) > self.bound


def cheapest(index: OfferIndex, selection: Selection, rows: int, limit: int) -> Iterator[tuple[Candidate, Terms]]:
    """The `limit` cheapest candidates of these rows with the terms of their runs, cheapest first.

    Rows stand by their lowest price, so the search ends at the first row that cannot do better than what was found. It
    begins with the zones that are cheapest to bring the inputs to, since little elsewhere can do better than those.
    """
    best = _Best(limit, selection.cap)
    least_disk = selection.least_disk_usd_hour(index)
    for level in selection.costing.levels:
        allowed = selection.allowed_in(level.zones)
        if not any(allowed.values()):
            continue
        for number in members(rows):
            row = index.rows[number]
            if best.beyond(row.low + least_disk, level.least):
                break
            if row.zones & allowed.get(row.example.provider, 0):
                _look_at(row, number, selection, level, best)
    for ranked in best.ranked:
        number, at = ranked[-2:]
        row = index.rows[number]
        yield index.candidate(row, at, selection.disk_of(row)), selection.costing.of(number, row, at)


def _look_at(row: TypeRow, number: int, selection: Selection, level: Level, best: _Best) -> None:
    disk_gb = selection.disk_of(row)
    least_disk = disk_usd_hour(row.low_disk, disk_gb)
    lowest = row.low + least_disk
    if best.beyond(lowest, level.least):
        return
    zones = selection.zones_left(number, row)
    for terms in selection.costing.terms(number, row, level):
        _look_in(row, number, zones, terms, (disk_gb, least_disk), best)


def _look_in(row: TypeRow, number: int, zones: int, terms: Terms, disk: tuple[int, Decimal], best: _Best) -> None:
    """Look at the cells that share these terms; `disk` is its size and its least price."""
    disk_gb, least_disk = disk
    for at in row.cells_in(zones & terms.zones):
        price, offer = row.prices[at], row.offers[at]
        if best.beyond(price + least_disk, terms):
            return
        usd_hour = price + disk_usd_hour(offer.disk_usd_gib_month, disk_gb)
        if not best.beyond(usd_hour, terms):
            names = offer.instance_type, offer.region, offer.zone, offer.provider, row.market
            best.add((terms.usd(usd_hour), -offer.memory_gib, *names, number, at))
