"""The cheapest candidates of a selection, found without looking at most of them."""

from bisect import insort
from decimal import Decimal

from spotferry.domain.bitsets import members
from spotferry.domain.costs import disk_usd_hour
from spotferry.domain.offer_index import OfferIndex, TypeRow
from spotferry.domain.selection import Selection
from spotferry.types.instance import Candidate

_NO_BOUND = Decimal("Infinity")

Ranked = tuple[Decimal, float, str, str, str, str, str, int, int]
"""What candidates are ordered by (total price, more memory, names), then the numbers of the row and of its cell."""


class _Best:
    """The best candidates so far: at most `limit`, none above the bound, which falls as better ones come."""

    def __init__(self, limit: int, cap: Decimal | None) -> None:
        self.ranked: list[Ranked] = []
        self.bound = _NO_BOUND if cap is None else cap
        self._limit = limit

    def add(self, ranked: Ranked) -> None:
        insort(self.ranked, ranked)
        del self.ranked[self._limit :]
        if len(self.ranked) == self._limit:
            self.bound = min(self.bound, self.ranked[-1][0])


def cheapest(index: OfferIndex, selection: Selection, rows: int, limit: int) -> list[Candidate]:
    """The `limit` cheapest candidates of these rows, cheapest first.

    Rows stand by their lowest price, so the search ends at the first row that cannot do better than what was found.
    """
    best = _Best(limit, selection.cap)
    least_disk = selection.least_disk_usd_hour(index)
    for number in members(rows):
        row = index.rows[number]
        if row.low + least_disk > best.bound:
            break
        _look_at(row, number, selection, best)
    picked = ((index.rows[ranked[-2]], ranked[-1]) for ranked in best.ranked)
    return [index.candidate(row, at, selection.disk_of(row)) for row, at in picked]


def _look_at(row: TypeRow, number: int, selection: Selection, best: _Best) -> None:
    disk_gb = selection.disk_of(row)
    least_disk = disk_usd_hour(row.low_disk, disk_gb)
    if row.low + least_disk > best.bound:
        return
    for at in row.cells_in(selection.zones_left(number, row)):
        price, offer = row.prices[at], row.offers[at]
        if price + least_disk > best.bound:
            return
        total = price + disk_usd_hour(offer.disk_usd_gib_month, disk_gb)
        if total <= best.bound:
            names = offer.instance_type, offer.region, offer.zone, offer.provider, row.market
            best.add((total, -offer.memory_gib, *names, number, at))
